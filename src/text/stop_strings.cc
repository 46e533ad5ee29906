#include "text/stop_strings.h"

#include <utility>

namespace ebb {

Result<StopStrings> StopStrings::create(std::vector<std::string> strings) {
  if (strings.size() > kMaxStrings) {
    return error(Code::kInvalidArgument, "{} stop strings; at most {} are taken", strings.size(), kMaxStrings);
  }
  for (std::size_t i = 0; i < strings.size(); ++i) {
    if (strings[i].empty() || strings[i].size() > kMaxStringBytes) {
      return error(Code::kInvalidArgument, "stop string {} has {} bytes; it must have 1 to {}", i, strings[i].size(),
                   kMaxStringBytes);
    }
  }
  return StopStrings(std::move(strings));
}

StopStrings::Output StopStrings::push(std::string_view text) {
  if (matched_) return {};
  held_ += text;
  return scan(false);
}

StopStrings::Output StopStrings::flush() {
  if (matched_) return {};
  return scan(true);
}

void StopStrings::reset() {
  held_.clear();
  matched_ = false;
}

// Places are decided from left to right. A place is open while some stop string could still come about there: what
// follows it is then a beginning of that string. The first open place stops the scan, because a match further right
// would not be the earliest; everything before it is safe.
StopStrings::Output StopStrings::scan(bool at_end) {
  const std::string_view text = held_;
  for (std::size_t place = 0; place < text.size(); ++place) {
    const std::string_view rest = text.substr(place);
    std::optional<std::size_t> longest;
    bool open = false;
    for (std::size_t i = 0; i < strings_.size(); ++i) {
      const std::string_view stop = strings_[i];
      if (rest.starts_with(stop)) {
        if (!longest || stop.size() > strings_[*longest].size()) longest = i;
      } else if (stop.starts_with(rest)) {
        open = true;
      }
    }
    if (open && !at_end) {
      Output output{.text = std::string(text.substr(0, place)), .match = {}};
      held_.erase(0, place);
      return output;
    }
    if (longest) {
      Output output{.text = std::string(text.substr(0, place)), .match = longest};
      held_.clear();
      matched_ = true;
      return output;
    }
  }
  return {.text = std::exchange(held_, {}), .match = {}};
}

}  // namespace ebb
