// Pace: how many rows of prompts a step may have, so that replies that are written meanwhile do not stand still for long.
//
//   time of a step = time of a step that only writes + rows of prompts x time of a row
//
// Where nobody writes, a step has as many rows as there is room for. It knows how long the last steps took; no sessions.
// Thread rule: a value.
#pragma once

#include <cstdint>

namespace ebb {

class Pace {
 public:
  // most_ms: what a step may take while replies are written, where it would not take a quarter of that by itself; 0: no bound.
  explicit Pace(double most_ms) : most_ms_(most_ms) {}

  struct Step {
    std::int32_t n_writing = 0;  // rows of replies
    std::int32_t n_prompt_rows = 0;
    double ms = 0.0;
  };
  void note(const Step& step);
  // Rows of prompts beside so many of replies, of max_rows.
  [[nodiscard]] std::int32_t prompt_rows(std::int32_t n_writing, std::int32_t max_rows) const;

 private:
  double most_ms_;
  // Of steps that only wrote, and of a row of a prompt beside them; 0: not known yet.
  double writing_ms_ = 0.0;
  double row_ms_ = 0.0;
  std::int32_t n_last_rows_ = 0;  // of prompts
};

}  // namespace ebb
