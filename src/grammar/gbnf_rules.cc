#include "grammar/gbnf_rules.h"

#include <algorithm>

namespace ebb {

// A rule may be empty once every item of one of its alternatives may. Each rule that turns out so is told to the
// alternatives that name it, so that the work grows with the grammar only.
std::vector<bool> find_empty(const std::vector<GbnfRule>& rules) {
  struct Pending {
    std::size_t owner = 0;
    std::size_t n_not_empty = 0;
  };
  std::vector<Pending> pending;
  std::vector<std::vector<std::size_t>> named_in(rules.size());  // rule -> places in `pending`
  std::vector<std::size_t> found;
  std::vector<bool> may_be_empty(rules.size(), false);
  const auto settle = [&](const Pending& alternative) {
    if (alternative.n_not_empty > 0 || may_be_empty[alternative.owner]) return;
    may_be_empty[alternative.owner] = true;
    found.push_back(alternative.owner);
  };
  for (std::size_t i = 0; i < rules.size(); ++i) {
    for (const GbnfAlternative& items : rules[i].alternatives) {
      pending.push_back({.owner = i, .n_not_empty = 0});
      for (const GbnfItem& item : items) {
        if (item.optional) continue;
        ++pending.back().n_not_empty;
        if (item.rule) named_in[*item.rule].push_back(pending.size() - 1);
      }
      settle(pending.back());
    }
  }
  while (!found.empty()) {
    const std::size_t rule = found.back();
    found.pop_back();
    for (const std::size_t place : named_in[rule]) {
      --pending[place].n_not_empty;
      settle(pending[place]);
    }
  }
  return may_be_empty;
}

namespace {

using Rules = std::vector<GbnfRule>;

// Peels off rules whose beginnings are all known; what remains begins with itself. On the way, counts in how many ways
// each rule can begin: libllama walks all of them when it compiles, and keeps one parse for each when it runs.
std::optional<GbnfRuleFault> find_beginning_fault(const Rules& rules, std::size_t most_ways) {
  const std::vector<bool> may_be_empty = find_empty(rules);
  std::vector<std::vector<std::size_t>> begins_in(rules.size());  // rule -> rules that can begin with it
  std::vector<std::size_t> n_unknown(rules.size(), 0);
  std::vector<std::size_t> n_ways(rules.size(), 1);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    for (const GbnfAlternative& items : rules[i].alternatives) {
      for (const GbnfItem& item : items) {
        if (item.rule) {
          begins_in[*item.rule].push_back(i);
          ++n_unknown[i];
        } else {
          ++n_ways[i];
        }
        if (!item.optional && !(item.rule && may_be_empty[*item.rule])) break;
      }
    }
  }
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (n_unknown[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    const std::size_t rule = ready.back();
    ready.pop_back();
    if (n_ways[rule] > most_ways) return GbnfRuleFault{rule, "can begin in too many ways"};
    for (const std::size_t beginner : begins_in[rule]) {
      n_ways[beginner] = std::min(n_ways[beginner] + n_ways[rule], most_ways + 1);
      if (--n_unknown[beginner] == 0) ready.push_back(beginner);
    }
  }
  const auto stuck = std::find_if(n_unknown.begin(), n_unknown.end(), [](std::size_t n) { return n > 0; });
  if (stuck == n_unknown.end()) return std::nullopt;
  return GbnfRuleFault{static_cast<std::size_t>(stuck - n_unknown.begin()),
                       "begins with itself, or with a rule that does (left recursion)"};
}

}  // namespace

std::optional<GbnfRuleFault> find_fault(const std::vector<GbnfRule>& rules, std::size_t most_ways) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!rules[i].defined) return GbnfRuleFault{i, "is not defined"};
  }
  return find_beginning_fault(rules, most_ways);
}

}  // namespace ebb
