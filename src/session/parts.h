// Parts: who said which positions of a session, under which name, and how firmly they are held.
//
// A part is a run of positions given by one caller at once: a message, a file, what a tool returned, a reply. Blocks cut
// the session without regard to parts, so a block may hold the ends of several; it is as firmly held as the firmest and has
// the source of the one with most of its tokens. It does not know what is hot. Thread rule: as its session's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/span.h"
#include "policy/evidence.h"

namespace ebb {

struct Part {
  Span span;
  Source source = Source::kUser;
  // As given by the caller ("file:config.py"), or derived ("turn3", "reply3"). Several parts may share a name.
  std::string name;
  // Finite and not negative; 1 is normal, more stays longer.
  double priority = 1.0;
  bool pinned = false;
};

class Parts {
 public:
  // Behind all others; parts may touch and may leave gaps.
  void add(Part part);
  // The last part goes on for n_tokens.
  void extend_last(std::int32_t n_tokens);
  // Forgets what lies at `end` and beyond.
  void truncate(Position end);

  [[nodiscard]] const std::vector<Part>& all() const { return parts_; }
  // What the parts that overlap `span` make of it; `span` is kept with the largest overlap.
  [[nodiscard]] Part merged(Span span) const;
  [[nodiscard]] std::vector<Span> find(std::string_view name) const;
  // How many parts have the name; they change now and for the blocks that they get later.
  std::int32_t set_pinned(std::string_view name, bool pinned);
  std::int32_t set_priority(std::string_view name, double priority);

 private:
  std::vector<Part> parts_;  // in position order
};

}  // namespace ebb
