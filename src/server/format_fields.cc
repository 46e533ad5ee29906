#include "server/format_fields.h"

#include "text/json_schema_grammar.h"

namespace ebb {
namespace {

Status wrong_format(std::string_view what) {
  return error(Code::kInvalidArgument, "Field 'response_format': {}", what);
}

Status read_response_format(const Json& format, FormatFields& fields) {
  if (!format.is_object() || !format.contains("type") || !format["type"].is_string()) {
    return wrong_format("must be an object with a 'type'");
  }
  const Json& type = format["type"];
  if (type == "text") return {};
  if (type == "json_object") {
    fields.schema =
        format.contains("schema") && !format["schema"].is_null() ? format["schema"] : Json{{"type", "object"}};
    return {};
  }
  if (type != "json_schema") return wrong_format("'type' must be text, json_object or json_schema");
  // Responses has the schema at the top.
  const Json& holder = format.contains("json_schema") ? format["json_schema"] : format;
  if (!holder.is_object() || !holder.contains("schema") || holder["schema"].is_null()) {
    return wrong_format("'json_schema' must be an object with a 'schema'");
  }
  fields.schema = holder["schema"];
  Fields inner(holder, "response_format.json_schema");
  const bool is_strict = inner.boolean("strict", false);
  EBB_RETURN_IF_ERROR(inner.status());
  if (!is_strict) return {};
  EBB_ASSIGN_OR_RETURN(const JsonGrammar grammar, json_schema_grammar(fields.schema));
  if (grammar.unsupported.empty()) return {};
  return wrong_format(fmt::format("is strict, and '{}' is not enforced", grammar.unsupported.front()));
}

}  // namespace

Result<FormatFields> read_format_fields(const Json& body) {
  Fields given(body);
  FormatFields fields;
  fields.grammar = given.text("grammar");
  EBB_RETURN_IF_ERROR(given.status());
  if (const Json* format = given.find("response_format"); format != nullptr) {
    EBB_RETURN_IF_ERROR(read_response_format(*format, fields));
  }
  if (const Json* schema = given.find("json_schema"); schema != nullptr) {
    if (!fields.schema.is_null()) {
      return error(Code::kInvalidArgument, "Field 'json_schema': 'response_format' asks for JSON already");
    }
    fields.schema = *schema;
  }
  if (!fields.grammar.empty() && !fields.schema.is_null()) {
    return error(Code::kInvalidArgument, "Field 'grammar': cannot be given together with a schema");
  }
  return fields;
}

void add_warnings(const std::vector<std::string>& unsupported, std::vector<std::string>& warnings) {
  for (const std::string& what : unsupported) warnings.push_back("schema keyword not enforced: " + what);
}

}  // namespace ebb
