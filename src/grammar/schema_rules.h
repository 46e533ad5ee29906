// SchemaRules: adds grammar rules for JSON Schemas to a grammar.
//
// What is enforced, and what is only noted, is said in grammar/json_schema_grammar.h. Several schemas may share one grammar
// (the tools of a request).
//
// Thread rule: one thread at a time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "grammar/grammar_rules.h"
#include "grammar/schema_flatten.h"
#include "grammar/value_syntax.h"
#include "nlohmann/json.hpp"

namespace ebb {

class SchemaRules {
 public:
  using Json = nlohmann::ordered_json;

  // Bounds on what is looked at: levels of the document, and values in it.
  static constexpr int kMaxDocumentDepth = 100;
  static constexpr std::size_t kMaxDocumentValues = 10000;

  [[nodiscard]] GrammarRules& grammar() { return rules_; }
  [[nodiscard]] const SchemaNotes& notes() const { return notes_; }

  // Adds what matches the schema; returns the rule's name. `title` stands in front of paths in messages and notes.
  // kInvalidArgument for what is no schema, or one that is too large or that nothing matches.
  [[nodiscard]] Result<std::string> add_schema(const Json& schema, const std::string& title = "#");
  // A part of a schema: `schema` stands somewhere in `root`, to which its $refs refer.
  [[nodiscard]] Result<std::string> add_part(const Json& root, const Json& schema, const std::string& title,
                                             const ValueSyntax& syntax = kJsonSyntax);
  // The same as an expression that may stand in a sequence; nothing: no value matches.
  [[nodiscard]] Result<std::optional<std::string>> find_part(const Json& root, const Json& schema,
                                                             const std::string& title, const ValueSyntax& syntax);

 private:
  GrammarRules rules_;
  SchemaNotes notes_;
};

// Rules for the schemas of one document. `path` is where a schema stands, for messages.
class SchemaWriter {
 public:
  using Json = nlohmann::ordered_json;
  // A rule's name or an expression that may stand in a sequence; nothing: no value matches.
  using Expression = Result<std::optional<std::string>>;

  // `n_values`: how many values the document has.
  SchemaWriter(const Json& root, std::size_t n_values, const ValueSyntax& syntax, GrammarRules& rules,
               SchemaNotes& notes)
      : syntax_(syntax), rules_(rules), notes_(notes), flattener_(root, n_values, notes) {}

  [[nodiscard]] Expression add_value(const Json& schema, const std::string& path);

 private:
  // schema_rules.cc
  Expression add_reference(const Json& reference, const std::string& path);
  Expression add_alternatives(const std::vector<Json>& list, const std::string& path);
  Expression add_plain(const Json& schema, const std::string& path);
  Expression add_values(const Json& schema, const std::string& path);
  Expression add_typed(std::string_view type, const Json& schema, const std::string& path);
  Expression add_inner(const Json& schema, const std::string& path);
  // As find_count; more than a grammar can count to is noted, and no limit.
  Result<std::optional<std::size_t>> find_most(const Json& schema, const char* keyword, const std::string& path);
  Result<std::vector<std::string>> find_types(const Json& schema, const std::string& path);
  std::optional<std::string> literal(const Json& value);
  // schema_scalars.cc
  Expression add_string(const Json& schema, const std::string& path);
  Expression add_format(const std::string& format, const std::string& path);
  Expression add_number(const Json& schema, const std::string& path, bool integer);
  // schema_containers.cc
  struct Member {
    std::string rule;  // key and value
    bool required = false;
  };
  Expression add_object(const Json& schema, const std::string& path);
  Result<std::optional<std::vector<Member>>> add_members(const Json& schema, const std::string& path,
                                                         std::vector<std::string>& keys);
  Expression add_extra_member(const Json& schema, const std::string& path, const std::vector<std::string>& keys);
  std::string add_other_key(const std::vector<std::string>& keys);
  std::string write_object(const std::vector<Member>& members, const std::optional<std::string>& extra);
  Expression add_array(const Json& schema, const std::string& path);

  const ValueSyntax& syntax_;
  GrammarRules& rules_;
  SchemaNotes& notes_;
  SchemaFlattener flattener_;
  std::map<std::string, std::string> references_;  // schemas with a $ref, as text -> their rule
  std::vector<std::string> here_;                  // those being added whose values begin at this place
  int depth_ = 0;
};

// kInvalidArgument for a schema that is larger or deeper than SchemaRules looks at.
[[nodiscard]] Status check_schema_size(const nlohmann::ordered_json& schema);

// A count that a schema gives, such as maxLength; nothing if it does not. kInvalidArgument for what is no count.
[[nodiscard]] Result<std::optional<std::size_t>> find_count(const nlohmann::ordered_json& schema, const char* keyword,
                                                            const std::string& path);

}  // namespace ebb
