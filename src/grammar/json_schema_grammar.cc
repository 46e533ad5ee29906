#include "grammar/json_schema_grammar.h"

#include <algorithm>

#include "grammar/schema_rules.h"

namespace ebb {

Result<JsonGrammar> json_schema_grammar(const nlohmann::ordered_json& schema) {
  SchemaRules rules;
  EBB_ASSIGN_OR_RETURN(const std::string rule, rules.add_schema(schema));
  rules.grammar().add("root", rule);
  EBB_ASSIGN_OR_RETURN(std::string grammar, rules.grammar().finish());
  return JsonGrammar{.grammar = std::move(grammar), .unsupported = rules.notes().unsupported};
}

bool is_taken_though_strict(std::string_view unsupported) { return unsupported.starts_with("multipleOf "); }

const std::string* JsonGrammar::refused_if_strict() const {
  const auto found = std::ranges::find_if_not(unsupported, is_taken_though_strict);
  return found == unsupported.end() ? nullptr : &*found;
}

}  // namespace ebb
