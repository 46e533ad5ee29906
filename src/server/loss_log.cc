#include "server/loss_log.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace ebb {
namespace {

constexpr std::string_view kHidden = "...";

bool is_plain(std::string_view name) {
  return std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  });
}

// With what stands between quotes as `say` has it, and without bytes that end a line.
template <class Say>
std::string with_quoted(std::string_view warning, Say say) {
  std::string text;
  while (!warning.empty()) {
    const std::size_t begin = std::min(warning.find('\''), warning.size());
    text += warning.substr(0, begin);
    const std::size_t end = begin < warning.size() ? warning.find('\'', begin + 1) : std::string_view::npos;
    if (begin == warning.size()) break;
    text += fmt::format("'{}'", say(warning.substr(begin + 1, end == std::string_view::npos ? end : end - begin - 1)));
    warning = end == std::string_view::npos ? std::string_view() : warning.substr(end + 1);
  }
  std::ranges::replace_if(
      text, [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }, ' ');
  return text;
}

std::string with_plain_names(std::string_view warning) {
  return with_quoted(warning, [](std::string_view name) { return is_plain(name) ? name : kHidden; });
}

// What stands in front of its reason.
std::string kind_of(std::string_view warning) {
  const std::string text = with_plain_names(warning);
  const std::size_t reason = text.find('\'') == std::string::npos ? text.find(": ") : std::string::npos;
  return text.substr(0, std::min(reason, LossLog::kMostBytes));
}

std::string line_of(std::string_view warning) {
  std::string text = with_plain_names(warning);
  if (text.size() > LossLog::kMostBytes) text = text.substr(0, LossLog::kMostBytes) + std::string(kHidden);
  return text;
}

}  // namespace

void LossLog::note(std::span<const std::string> warnings) {
  if (!tell_) return;
  for (const std::string& warning : warnings) note_one(warning);
}

void LossLog::note_one(const std::string& warning) {
  std::string name = kind_of(warning);
  std::string line;
  {
    const std::scoped_lock lock(mutex_);
    if (kinds_.size() >= kMostKinds && !kinds_.contains(name)) name.clear();
    const Clock::time_point now = now_();
    const auto [kind, is_new] = kinds_.try_emplace(std::move(name), Kind{.told_at = now});
    if (!is_new && now - kind->second.told_at < kPause) {
      ++kind->second.n_since;
      return;
    }
    const std::int64_t n_before = std::exchange(kind->second.n_since, 0);
    kind->second.told_at = now;
    line = fmt::format("a request lost something: {}{}", line_of(warning),
                       n_before > 0 ? fmt::format(" (and {} more since it was told)", n_before) : "");
  }
  tell_(line);
}

}  // namespace ebb
