#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "grammar/schema_rules.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kNothing = "\"\"";

std::string path_of(const std::string& path, std::string_view key) { return fmt::format("{}/{:.60}", path, key); }

char32_t take_char(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t n = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  char32_t code = n == 1 ? lead : lead & (0x7FU >> n);
  for (std::size_t i = 1; i < n && i < text.size(); ++i)
    code = (code << 6) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  text.remove_prefix(std::min(n, text.size()));
  return code;
}

}  // namespace

// Members in the order of the schema; then required keys that it does not describe.
Result<std::optional<std::vector<SchemaWriter::Member>>> SchemaWriter::add_members(const Json& schema,
                                                                                   const std::string& path,
                                                                                   std::vector<std::string>& keys) {
  const Json properties = schema.value("properties", Json::object());
  const Json required = schema.value("required", Json::array());
  if (!properties.is_object() || !required.is_array()) {
    return error(Code::kInvalidArgument, "schema, {}: properties must be an object, required a list", path);
  }
  std::set<std::string> needed;
  for (const Json& key : required) {
    if (!key.is_string()) return error(Code::kInvalidArgument, "schema, {}: required must list strings", path);
    needed.insert(key.get<std::string>());
  }
  const std::string sp = add_space(rules_, syntax_);
  std::vector<Member> members;
  const auto add = [&](const std::string& key, const Json& value) -> Result<bool> {
    EBB_ASSIGN_OR_RETURN(const auto rule, add_inner(value, path_of(path, key)));
    keys.push_back(key);
    const bool is_needed = needed.erase(key) > 0;
    if (!rule) return !is_needed;  // an optional key that nothing matches is never written
    const std::string name = grammar_literal(written_key(syntax_, key));
    members.push_back({.rule = rules_.add_fresh(fmt::format("{} {} {}", name, sp, *rule)), .required = is_needed});
    return true;
  };
  for (const auto& [key, value] : properties.items()) {
    EBB_ASSIGN_OR_RETURN(const bool can_match, add(key, value));
    if (!can_match) return std::optional<std::vector<Member>>();
  }
  const Json others = schema.value("additionalProperties", Json(true));
  for (const Json& key : required) {
    if (!needed.contains(key.get<std::string>())) continue;
    EBB_ASSIGN_OR_RETURN(const bool can_match, add(key.get<std::string>(), others));
    if (!can_match) return std::optional<std::vector<Member>>();
  }
  return std::optional(std::move(members));
}

// A string that is none of the keys, each character in its shortest form, so that no key can be written in disguise.
std::string SchemaWriter::add_other_key(const std::vector<std::string>& keys) {
  const StringChars chars = StringChars::of_keys(syntax_);
  const std::string any = rules_.add(syntax_.rule("key-char"), *chars.expression(CharSet().inverse()));
  // Where two keys part, by what they share: the characters that may follow, and whether a key ends there.
  struct Node {
    std::map<char32_t, std::size_t> next;
    bool is_key = false;
  };
  std::vector<Node> tree(1);
  for (const std::string& key : keys) {
    std::size_t at = 0;
    for (std::string_view rest = key; !rest.empty();) {
      const char32_t c = take_char(rest);
      const auto [child, is_new] = tree[at].next.emplace(c, tree.size());
      at = child->second;
      if (is_new) tree.emplace_back();
    }
    tree[at].is_key = true;
  }
  std::vector<std::string> names(tree.size());
  for (std::size_t i = tree.size(); i-- > 0;) {  // children first
    std::vector<CharRange> known;
    std::vector<std::string> ways;
    for (const auto& [c, child] : tree[i].next) {
      known.emplace_back(c, c);
      if (const auto text = chars.expression(CharSet({{c, c}}))) ways.push_back(*text + " " + names[child]);
    }
    if (const auto others = chars.expression(CharSet(std::move(known)).inverse()))
      ways.push_back(*others + " " + any + "*");
    const bool may_be_empty = i > 0 || !syntax_.has_bare_keys;
    if (!tree[i].is_key && may_be_empty) ways.emplace_back(kNothing);
    names[i] = rules_.add_fresh(fmt::format("{}", fmt::join(ways, " | ")));
  }
  return names[0];
}

SchemaWriter::Expression SchemaWriter::add_extra_member(const Json& schema, const std::string& path,
                                                        const std::vector<std::string>& keys) {
  const auto extra = schema.find("additionalProperties");
  if (extra == schema.end() || *extra == false) return std::optional<std::string>();
  EBB_ASSIGN_OR_RETURN(const auto value, add_inner(*extra, path + "/additionalProperties"));
  if (!value) return value;
  std::string key = keys.empty() ? add_any_key(rules_, syntax_) : add_other_key(keys);
  if (!keys.empty() && !syntax_.has_bare_keys) key = string_around(kJsonSyntax, key);
  return std::optional(rules_.add_fresh(fmt::format("{} \":\" {} {}", key, add_space(rules_, syntax_), *value)));
}

// Behind the opening brace, rule i says what may come while no member was written and members 0..i-1 were passed over:
// member i and all that may follow it, or, if it may be skipped, what rule i + 1 says.
std::string SchemaWriter::write_object(const std::vector<Member>& members, const std::optional<std::string>& extra) {
  const std::string sp = add_space(rules_, syntax_);
  std::string rest{kNothing};  // what may follow member i
  std::string first{kNothing};
  if (extra) {
    rest = rules_.add_fresh(fmt::format("(\",\" {} {})*", sp, *extra));
    first = rules_.add_fresh(fmt::format("({} {})?", *extra, rest));
  }
  for (std::size_t i = members.size(); i-- > 0;) {
    const Member& member = members[i];
    const std::string way = member.rule + " " + rest;
    first = rules_.add_fresh(member.required ? way : fmt::format("{} | {}", way, first));
    rest = rules_.add_fresh(fmt::format("(\",\" {} {}){} {}", sp, member.rule, member.required ? "" : "?", rest));
  }
  return rules_.add_fresh(fmt::format("\"{{\" {} \"}}\"", first));
}

SchemaWriter::Expression SchemaWriter::add_object(const Json& schema, const std::string& path) {
  const bool described = schema.contains("properties") || schema.contains("required");
  const Json extra = schema.value("additionalProperties", Json(!described));
  if (!described && extra == true) return std::optional(add_any_object(rules_, syntax_));
  std::vector<std::string> keys;
  EBB_ASSIGN_OR_RETURN(const auto members, add_members(schema, path, keys));
  if (!members) return std::optional<std::string>();
  EBB_ASSIGN_OR_RETURN(const auto more, add_extra_member(schema, path, keys));
  return std::optional(write_object(*members, more));
}

// The first items have rules of their own, the others one; which of them must come is known by their place.
SchemaWriter::Expression SchemaWriter::add_array(const Json& schema, const std::string& path) {
  EBB_ASSIGN_OR_RETURN(const auto min_items, find_count(schema, "minItems", path));
  EBB_ASSIGN_OR_RETURN(const auto max_items, find_most(schema, "maxItems", path));
  const std::size_t least = min_items.value_or(0);
  std::size_t most = max_items.value_or(GrammarRules::kUnlimited);
  const Json prefix = schema.value("prefixItems", Json::array());
  if (!prefix.is_array()) return error(Code::kInvalidArgument, "schema, {}: prefixItems must be a list", path);
  if (schema.contains("items") && schema["items"].is_array()) {  // draft 7
    notes_.add(fmt::format("items as a list at {}", path));
  }
  std::vector<std::string> own;
  for (const Json& item : prefix) {
    if (own.size() >= most) break;
    EBB_ASSIGN_OR_RETURN(const auto rule, add_inner(item, path_of(path, "prefixItems")));
    if (!rule) {
      most = own.size();
      break;
    }
    own.push_back(*rule);
  }
  std::optional<std::string> other;
  const bool is_closed = !prefix.empty() && !schema.contains("items") && least <= own.size();
  if (most > own.size() && !is_closed) {
    const bool is_plain = schema.contains("items") && !schema["items"].is_array();
    EBB_ASSIGN_OR_RETURN(other, add_inner(is_plain ? schema["items"] : Json(true), path + "/items"));
  }
  if (!other) most = std::min(most, own.size());
  if (least > most) return std::optional<std::string>();

  // From the back: what may follow item i.
  const std::string sp = add_space(rules_, syntax_);
  std::string rest{kNothing};
  if (other && most > std::max<std::size_t>(own.size(), 1)) {
    const std::string next = rules_.add_fresh(fmt::format("\",\" {} {}", sp, *other));
    const std::size_t n_before = std::max<std::size_t>(own.size(), 1);
    const std::size_t to = most == GrammarRules::kUnlimited ? most : most - n_before;
    rest = rules_.add_fresh(rules_.repeat(next, least > n_before ? least - n_before : 0, to));
  }
  if (own.empty() && other && most > 0) own.push_back(*other);
  for (std::size_t i = own.size(); i-- > 0;) {
    const std::string way = fmt::format("{}{} {}", i == 0 ? "" : "\",\" " + sp + " ", own[i], rest);
    rest = rules_.add_fresh(i < least ? way : fmt::format("({})?", way));
  }
  return std::optional(rules_.add_fresh(fmt::format("\"[\" {} \"]\"", rest)));
}

}  // namespace ebb
