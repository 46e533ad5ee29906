#include "server/format_fields.h"

#include "grammar/json_schema_grammar.h"

namespace ebb {
namespace {

void check_strict(JsonFields& holder, const Json& schema) {
  if (!holder.boolean("strict", false)) return;
  const Result<JsonGrammar> grammar = json_schema_grammar(schema);
  if (!grammar.ok()) {
    holder.refuse("schema", grammar.status().message());
  } else if (const std::string* const refused = grammar->refused_if_strict(); refused != nullptr) {
    holder.refuse("strict", fmt::format("'{}' is not enforced", *refused));
  }
}

// Null: no JSON is asked for.
Json read_response_format(JsonFields& format) {
  const std::string type = format.needed_text("type");
  if (type == "text") return nullptr;
  if (type == "json_object") {
    const Json* schema = format.find("schema");
    return schema == nullptr ? Json{{"type", "object"}} : *schema;
  }
  if (type != "json_schema") {
    format.refuse("type", "must be text, json_object or json_schema");
    return nullptr;
  }
  // Responses has the schema at the top.
  std::optional<JsonFields> inside = format.object("json_schema");
  JsonFields& holder = inside ? *inside : format;
  const Json* schema = holder.find("schema");
  if (schema == nullptr) {
    format.refuse("json_schema", "must be an object with a 'schema'");
    return nullptr;
  }
  check_strict(holder, *schema);
  return *schema;
}

}  // namespace

Result<FormatFields> read_format_fields(const Json& body) {
  JsonFields given(body);
  FormatFields fields;
  fields.grammar = given.text("grammar");
  if (std::optional<JsonFields> format = given.object("response_format")) fields.schema = read_response_format(*format);
  if (const Json* schema = given.find("json_schema"); schema != nullptr) {
    if (!fields.schema.is_null()) given.refuse("json_schema", "'response_format' asks for JSON already");
    fields.schema = *schema;
  }
  if (!fields.grammar.empty() && !fields.schema.is_null()) {
    given.refuse("grammar", "cannot be given together with a schema");
  }
  EBB_RETURN_IF_ERROR(given.status());
  return fields;
}

void add_warnings(const std::vector<std::string>& unsupported, std::vector<std::string>& warnings) {
  for (const std::string& what : unsupported) warnings.push_back("schema keyword not enforced: " + what);
}

}  // namespace ebb
