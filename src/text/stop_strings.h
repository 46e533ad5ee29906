// StopStrings: finds the first stop string in a text that comes in pieces.
//
// Text that may be the beginning of a stop string is held back until it is clear, and no more than that; so no byte of
// a stop string is ever given out, however the text was cut. The match is that of the whole text: the earliest
// beginning wins, of several at the same place the longest. A shorter stop string is therefore not reported while a
// longer one, or one that began earlier, may still come about.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ebb {

class StopStrings {
 public:
  // Bounds on what a request may ask for: each byte of text costs up to all bytes of all stop strings.
  static constexpr std::size_t kMaxStrings = 32;
  static constexpr std::size_t kMaxStringBytes = 1024;

  struct Output {
    // Safe to show: it holds no part of a stop string that may still match.
    std::string text;
    // Set once, when a stop string was found: its index. What follows it is dropped.
    std::optional<std::size_t> match;
  };

  // kInvalidArgument for an empty stop string or more or longer ones than the bounds.
  [[nodiscard]] static Result<StopStrings> create(std::vector<std::string> strings);

  // After a match, everything is swallowed.
  [[nodiscard]] Output push(std::string_view text);
  // The end of the text: what was held back, up to a stop string that was waiting for a longer one.
  [[nodiscard]] Output flush();
  // The stop string that a match has the index of.
  [[nodiscard]] const std::string& string(std::size_t index) const { return strings_[index]; }
  [[nodiscard]] std::size_t n_held() const { return held_.size(); }
  [[nodiscard]] bool matched() const { return matched_; }
  void reset();

 private:
  explicit StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {}
  Output scan(bool at_end);

  std::vector<std::string> strings_;
  std::string held_;
  bool matched_ = false;
};

}  // namespace ebb
