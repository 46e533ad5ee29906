#include "cli/nearest_flag.h"

#include <algorithm>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/split_text.h"
#include "cli/llama_flags.h"

namespace ebb {
namespace {

// Letters to change, add or drop (Levenshtein 1966).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

std::string_view bare(std::string_view flag) { return flag.substr(std::min(flag.find_first_not_of('-'), flag.size())); }

}  // namespace

std::string hint_at(const CLI::App& command, std::string_view given) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  if (command.get_name() == "serve") {
    for (const LlamaFlag& flag : llama_flags()) {
      if (flag.does == LlamaFlag::Does::kRefused || flag.does == LlamaFlag::Does::kNoEffect) continue;
      const std::vector<std::string_view> its = split_text(flag.names, ' ');
      names.insert(names.end(), its.begin(), its.end());
    }
  }
  const std::string_view wanted = bare(given.substr(0, given.find('=')));
  if (const LlamaFlag* const known = find_llama_flag(given); known != nullptr && command.get_name() != "serve") {
    const bool is_ours = known->does == LlamaFlag::Does::kSame || known->does == LlamaFlag::Does::kOwn;
    if (!is_ours) return fmt::format(": {}", known->says);
  }
  const std::string* nearest = nullptr;
  // Of few letters most flags are a few letters away.
  std::size_t least = std::max<std::size_t>(2, wanted.size() / 3 + 1);
  for (const std::string& name : names) {
    if (bare(name).size() == 1) continue;
    const bool is_begun = wanted.size() >= 3 && bare(name).starts_with(wanted);
    const std::size_t n = is_begun ? 1 : distance(bare(name), wanted);
    if (n >= least) continue;
    least = n;
    nearest = &name;
  }
  return nearest == nullptr ? std::string() : fmt::format("; did you mean {}?", *nearest);
}

}  // namespace ebb
