// A JSON Schema taken apart: allOf, anyOf, oneOf and $ref resolved into a list of plain schemas.
//
// A value matches the schema if it matches one of the list (oneOf is read as anyOf: a grammar cannot say "not both").
// A plain schema has none of those keywords; or it is {"$ref": …} alone, so that recursion stays a reference. What
// is merged is exact for the keywords of the least set (schema_rules.h).
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "nlohmann/json.hpp"

namespace ebb {

// What a schema asks for and a grammar does not enforce.
struct SchemaNotes {
  // "not at #/properties/a", "pattern at #: look-around". Each once.
  std::vector<std::string> unsupported;
  void add(std::string note);
};

class SchemaFlattener {
 public:
  using Json = nlohmann::ordered_json;

  // Hostile schemas: levels of $ref and combinators at one place, alternatives of one place, schemas looked at in all.
  static constexpr int kMaxDepth = 64;
  static constexpr std::size_t kMaxAlternatives = 256;
  static constexpr std::size_t kMaxSteps = 20000;

  // Root and notes must outlive the flattener. `n_values`: how many values the root has; each merge may copy them all.
  SchemaFlattener(const Json& root, std::size_t n_values, SchemaNotes& notes)
      : root_(root), notes_(notes), merge_steps_(1 + n_values / 200) {}

  // `path` is where the schema stands, for messages. An empty list: nothing matches.
  [[nodiscard]] Result<std::vector<Json>> flatten(const Json& schema, const std::string& path) {
    return flatten_at(schema, path, 0);
  }
  // The schema that a local $ref means; kInvalidArgument if there is none.
  [[nodiscard]] Result<const Json*> find_target(const Json& reference, const std::string& path) const;

 private:
  Result<std::vector<Json>> flatten_at(const Json& schema, const std::string& path, int depth);
  Result<std::vector<Json>> flatten_any(const Json& list, const std::string& path, int depth);
  Result<std::vector<Json>> without_references(std::vector<Json> list, const std::string& path, int depth);
  Result<std::vector<Json>> product(std::vector<Json> a, std::vector<Json> b, const std::string& path, int depth);
  Status split(const Json& schema, const std::string& path, Json& plain, Json& combined);

  const Json& root_;
  SchemaNotes& notes_;
  std::size_t merge_steps_;  // that one merge counts for
  std::size_t n_steps_ = 0;
};

// Both plain schemas at once; nothing if no value can match both.
[[nodiscard]] std::optional<nlohmann::ordered_json> merge_schemas(const nlohmann::ordered_json& a,
                                                                  const nlohmann::ordered_json& b,
                                                                  const std::string& path, SchemaNotes& notes);

}  // namespace ebb
