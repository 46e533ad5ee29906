// A JSON Schema as a GBNF grammar (docs: what of it is enforced).
//
// Enforced: type and lists of types, enum, const, properties, required, additionalProperties, items, prefixItems,
// min/maxItems and min/maxLength up to 512000, minimum and maximum and their exclusive forms for integers and numbers,
// pattern,
// the formats date, time, date-time and uuid, allOf, anyOf, local $ref (recursive), $defs. What the grammar lets through
// is valid by the schema, but for oneOf, which is read as anyOf, and for what is listed as unsupported.
//
// Narrower than the standard, so that a model invents less and cannot stall:
//   objects    no keys but those of the schema, unless additionalProperties says otherwise; keys in its order, optional
//              ones may be left out; required keys without a schema come last. {"type": "object"} alone is any object.
//   arrays     with prefixItems no more items than those, unless items or minItems says otherwise
//   no type    the type that the keywords speak of; without any, every value
//   space      at most one behind ':' and ',', none elsewhere
//   numbers    at most 16 digits before and after the point, no exponent where bounded
//   pattern, format, keys beside additionalProperties   characters in their shortest JSON form
//
// Annotations (title, description, default, examples, $schema, x-…) are passed over. Every other keyword that is not
// enforced is listed, so that a strict request can be refused and others warned.
//
// Thread rule: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "nlohmann/json.hpp"

namespace ebb {

struct JsonGrammar {
  std::string grammar;  // begins at "root"
  // "not at #/properties/a", "pattern at #: look-around": asked for and not enforced.
  std::vector<std::string> unsupported = {};

  // The first of them that a strict request is refused for; null: none.
  [[nodiscard]] const std::string* refused_if_strict() const;
};

// Is what is not enforced taken all the same? Which numbers are multiples no grammar says, and OpenAI takes it.
[[nodiscard]] bool is_taken_though_strict(std::string_view unsupported);

// kInvalidArgument, saying where, for what is no schema, nothing can match, or is too large or too deep; kUnsupported where
// the grammar would be too large.
[[nodiscard]] Result<JsonGrammar> json_schema_grammar(const nlohmann::ordered_json& schema);

}  // namespace ebb
