#include "cli/nearest_flag.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/split_text.h"
#include "cli/llama_flags.h"

namespace ebb {
namespace {

// Letters to change, add, drop or swap with the next one (optimal string alignment: Damerau 1964, no letter twice).
int distance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1);
  std::vector<int> last(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int changed = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({changed, last[j] + 1, row[j - 1] + 1});
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

std::string_view dashes(std::string_view name) { return name.substr(0, name.find_first_not_of('-')); }

// Its letters: --ctx_size is a --ctx-size.
std::string letters(std::string_view name) {
  std::string some;
  for (const char c : name) {
    if (c != '-' && c != '_') some.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return some;
}

// How far a name is from what was given, the least first; none: too far to be meant. Of names as far the one is meant that the
// given one goes on from, then one with as many dashes.
std::optional<int> remoteness(std::string_view name, std::string_view given) {
  constexpr int kOfALetter = 4;
  constexpr int kGoesOn = 2;
  const std::string its = letters(name);
  const std::string wanted = letters(given);
  const bool goes_on = wanted.starts_with(its);
  const bool is_begun = wanted.size() >= 3 && its.starts_with(wanted);
  // Of few letters most names are a few letters away.
  const int most = wanted.size() > 2 ? static_cast<int>(std::max<std::size_t>(1, given.size() / 3)) : goes_on ? 1 : 0;
  const bool is_letter_of_long = its.size() == 1 && dashes(given) != "-";
  int n = distance(its, wanted);
  if (is_begun) n = std::min(n, 1);
  if (n > most || is_letter_of_long) return std::nullopt;
  return n * kOfALetter - (goes_on ? kGoesOn : 0) - (dashes(name) == dashes(given) ? 1 : 0);
}

// "": none is near.
std::string nearest(const std::vector<std::string>& names, std::string_view given) {
  std::string best;
  std::optional<int> least;
  for (const std::string& name : names) {
    const std::optional<int> far = remoteness(name, given);
    if (!far || (least && *far >= *least)) continue;
    least = far;
    best = name;
  }
  return best;
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  if (command.get_name() != "serve") return names;
  for (const LlamaFlag& flag : llama_flags()) {
    const std::vector<std::string_view> its = split_text(flag.names, ' ');
    names.insert(names.end(), its.begin(), its.end());
  }
  return names;
}

constexpr std::string_view kOwn = "EBB_";
constexpr std::string_view kLlamas = "LLAMA_ARG_";

// Read by scripts and tests, and not by the server.
constexpr std::array<std::string_view, 9> kOfScripts = {"EBB_BUILD_DIR",      "EBB_CACHE",          "EBB_CHECK",
                                                        "EBB_CMAKE_ARGS",     "EBB_JOBS",           "EBB_LLAMA_PACKAGE",
                                                        "EBB_RANDOM_SECONDS", "EBB_LLAMA_QUESTION", "EBB_LOG_LINES"};

// Without what they all begin with.
std::vector<std::string> variables_of(const CLI::App& serve, std::string_view beginning) {
  std::vector<std::string> names;
  if (beginning == kOwn) {
    for (const CLI::Option* option : serve.get_options()) {
      if (!option->get_envname().empty()) names.push_back(option->get_envname().substr(kOwn.size()));
    }
    return names;
  }
  for (const LlamaFlag& flag : llama_flags()) {
    if (flag.variable.empty()) continue;
    const bool when_off = flag.variable.starts_with('!');
    const std::string name(flag.variable.substr(when_off ? 1 : 0));
    names.push_back(name);
    if (when_off) names.push_back("NO_" + name);
  }
  return names;
}

}  // namespace

std::string hint_at(const CLI::App& command, std::string_view given) {
  if (const LlamaFlag* const known = find_llama_flag(given); known != nullptr && command.get_name() != "serve") {
    const bool is_ours = known->does == LlamaFlag::Does::kSame || known->does == LlamaFlag::Does::kOwn;
    if (!is_ours) return fmt::format(": {}", known->says);
  }
  const std::string meant = nearest(flags_of(command), given.substr(0, given.find('=')));
  return meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant);
}

std::vector<std::string> notes_on_variables(const CLI::App& serve, std::span<const std::string> set) {
  std::vector<std::string> notes;
  for (const std::string& name : set) {
    const std::string_view beginning = name.starts_with(kOwn) ? kOwn : name.starts_with(kLlamas) ? kLlamas : "";
    if (beginning.empty() || std::ranges::find(kOfScripts, name) != kOfScripts.end()) continue;
    const std::vector<std::string> known = variables_of(serve, beginning);
    const std::string bare = name.substr(beginning.size());
    if (std::ranges::find(known, bare) != known.end()) continue;
    const std::string meant = nearest(known, bare);
    notes.push_back(fmt::format("{} has no effect: no flag has this variable{}", name,
                                meant.empty() ? "" : fmt::format("; did you mean {}{}?", beginning, meant)));
  }
  return notes;
}

}  // namespace ebb
