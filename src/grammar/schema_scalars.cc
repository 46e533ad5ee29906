#include <algorithm>
#include <iterator>
#include <utility>

#include "grammar/json_rules.h"
#include "grammar/number_rules.h"
#include "grammar/pattern_rules.h"
#include "grammar/schema_rules.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

// The stricter of `minimum` and `exclusiveMinimum` (`sign` 1), or of the two above (`sign` -1).
Result<std::optional<NumberBound>> find_bound(const Json& schema, const char* inclusive, const char* exclusive,
                                              int sign, const std::string& path, SchemaNotes& notes) {
  std::optional<NumberBound> bound;
  for (const char* keyword : {inclusive, exclusive}) {
    const auto found = schema.find(keyword);
    if (found == schema.end()) continue;
    if (found->is_boolean()) {  // draft 4
      notes.add(fmt::format("{} as a boolean at {}", keyword, path));
      continue;
    }
    if (!found->is_number()) return error(Code::kInvalidArgument, "schema, {}: {} must be a number", path, keyword);
    const auto decimal = Decimal::parse(found->dump());
    if (!decimal) {
      notes.add(fmt::format("{} of {} at {}", keyword, found->dump(), path));
      continue;
    }
    const bool is_exclusive = keyword == exclusive;
    const int order = bound ? sign * decimal->compare(bound->value) : 1;
    if (order > 0 || (order == 0 && is_exclusive)) bound = NumberBound{.value = *decimal, .exclusive = is_exclusive};
  }
  return bound;
}

}  // namespace

SchemaWriter::Expression SchemaWriter::add_number(const Json& schema, const std::string& path, bool integer) {
  EBB_ASSIGN_OR_RETURN(const auto least, find_bound(schema, "minimum", "exclusiveMinimum", 1, path, notes_));
  EBB_ASSIGN_OR_RETURN(const auto most, find_bound(schema, "maximum", "exclusiveMaximum", -1, path, notes_));
  if (!least && !most) return std::optional(integer ? add_integer_rule(rules_) : add_number_rule(rules_));
  const auto between = integer ? integer_between(least, most) : number_between(least, most);
  if (!between) return between;
  return std::optional(rules_.add_fresh(*between));
}

// Formats that are patterns (RFC 791, 4291, 1123, 5321 without quotes and addresses in brackets; ISO 8601 without weeks beside others).
constexpr std::pair<std::string_view, std::string_view> kFormatPatterns[] = {
    {"ipv4", "^((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])$"},
    {"ipv6",
     "^(([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}|"
     "([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|"
     "([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}|"
     "[0-9a-fA-F]{1,4}:(:[0-9a-fA-F]{1,4}){1,6}|:((:[0-9a-fA-F]{1,4}){1,7}|:))$"},
    {"hostname", "^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?([.][a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?){0,15}$"},
    {"email",
     "^[a-zA-Z0-9_%+-]{1,32}([.][a-zA-Z0-9_%+-]{1,32}){0,7}@[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
     "([.][a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?){1,7}$"},
    {"duration",
     "^P([0-9]{1,9}W|([0-9]{1,9}Y([0-9]{1,9}M)?([0-9]{1,9}D)?|[0-9]{1,9}M([0-9]{1,9}D)?|[0-9]{1,9}D)"
     "(T([0-9]{1,9}H([0-9]{1,9}M)?([0-9]{1,9}S)?|[0-9]{1,9}M([0-9]{1,9}S)?|[0-9]{1,9}S))?|"
     "T([0-9]{1,9}H([0-9]{1,9}M)?([0-9]{1,9}S)?|[0-9]{1,9}M([0-9]{1,9}S)?|[0-9]{1,9}S))$"},
};

SchemaWriter::Expression SchemaWriter::add_format(const std::string& format, const std::string& path) {
  const auto add = [&](const char* name, const std::string& body) { return rules_.add(name, body); };
  if (format == "uuid") {
    add_hex_rule(rules_);
    return std::optional(add("uuid", "hex{8} \"-\" hex{4} \"-\" hex{4} \"-\" hex{4} \"-\" hex{12}"));
  }
  const auto* const pattern =
      std::ranges::find(kFormatPatterns, format, &std::pair<std::string_view, std::string_view>::first);
  if (pattern != std::end(kFormatPatterns)) {
    EBB_ASSIGN_OR_RETURN(std::string expression, pattern_expression(rules_, pattern->second, syntax_));
    return std::optional(add(std::string(format).c_str(), expression));
  }
  if (format != "date" && format != "time" && format != "date-time") {
    notes_.add(fmt::format("format {:.40} at {}", format, path));
    return std::optional<std::string>();
  }
  add("day", "\"0\" [1-9] | [12] [0-9]");
  add("date",
      "[0-9]{4} \"-\" ((\"01\" | \"03\" | \"05\" | \"07\" | \"08\" | \"10\" | \"12\") \"-\" (day | \"30\" | \"31\") | "
      "(\"04\" | \"06\" | \"09\" | \"11\") \"-\" (day | \"30\") | \"02-\" day)");
  add("clock", "([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9]");
  add("time", "clock \":\" [0-5] [0-9] (\".\" [0-9]{1,9})? (\"Z\" | [+-] clock)");
  if (format == "date-time") return std::optional(add("date-time", "date \"T\" time"));
  return std::optional(format);
}

SchemaWriter::Expression SchemaWriter::add_string(const Json& schema, const std::string& path) {
  EBB_ASSIGN_OR_RETURN(const auto least, find_count(schema, "minLength", path));
  EBB_ASSIGN_OR_RETURN(const auto most, find_most(schema, "maxLength", path));
  std::optional<std::string> inside;
  if (const auto pattern = schema.find("pattern"); pattern != schema.end()) {
    if (!pattern->is_string()) return error(Code::kInvalidArgument, "schema, {}: pattern must be a string", path);
    Result<std::string> expression = pattern_expression(rules_, pattern->get_ref<const std::string&>(), syntax_);
    if (expression.ok()) {
      inside = std::move(expression).value();
    } else {
      notes_.add(fmt::format("pattern at {}: {}", path, expression.status().message()));
    }
  }
  if (const auto format = schema.find("format"); format != schema.end()) {
    if (!format->is_string()) return error(Code::kInvalidArgument, "schema, {}: format must be a string", path);
    if (inside) {
      notes_.add(fmt::format("format beside pattern at {}", path));
    } else {
      EBB_ASSIGN_OR_RETURN(inside, add_format(format->get<std::string>(), path));
    }
  }
  if (inside) {
    if (least || most) notes_.add(fmt::format("minLength or maxLength beside pattern or format at {}", path));
    return std::optional(rules_.add_fresh(string_around(syntax_, *inside)));
  }
  if (!least && !most) return std::optional(add_any_string(rules_, syntax_));
  const std::size_t from = least.value_or(0);
  const std::size_t to = most.value_or(GrammarRules::kUnlimited);
  if (from > to) return std::optional<std::string>();
  if (const auto text = add_string_between(rules_, syntax_, from, to)) return std::optional(rules_.add_fresh(*text));
  notes_.add(fmt::format("minLength or maxLength of many characters, as this template writes strings, at {}", path));
  return std::optional(add_any_string(rules_, syntax_));
}

}  // namespace ebb
