// The rules of a GBNF grammar, as far as it matters what they can begin with.
//
// It does not know the grammar's text, only which rules follow each other. The matcher follows these beginnings at every
// character: a rule that begins with itself would never come to one.
//
// Thread rule: functions without state.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ebb {

struct GbnfItem {
  std::optional<std::size_t> rule;  // none: characters or a token
  bool optional = false;            // may occur zero times
};
using GbnfAlternative = std::vector<GbnfItem>;

struct GbnfRule {
  std::string name;       // empty: a group in parentheses
  std::size_t begin = 0;  // where it is first named, in bytes
  bool defined = false;
  std::vector<GbnfAlternative> alternatives;
};

struct GbnfRuleFault {
  std::size_t rule = 0;
  std::string_view what;  // continues "rule 'x' "
};

// For each rule, whether it matches the empty text. Work grows with the rules' total size only.
[[nodiscard]] std::vector<bool> find_empty(const std::vector<GbnfRule>& rules);

// The first rule that is not defined, begins with itself, or begins in more than `most_ways`. Work and memory grow with
// the rules' total size only.
[[nodiscard]] std::optional<GbnfRuleFault> find_fault(const std::vector<GbnfRule>& rules, std::size_t most_ways);

}  // namespace ebb
