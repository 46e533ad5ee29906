// Parts: who said which positions of a session, under which name, and how firmly they are held.
//
// A part is a run of positions given by one caller at once: a message, a file, what a tool returned, a reply. Blocks cut
// the session without regard to parts, so a block may hold the ends of several; it is as firmly held as the firmest and has
// the source of the one with most of its tokens. It does not know what is hot. Thread rule: as its session's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/span.h"
#include "policy/evidence.h"
#include "session/prompt.h"

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
  // Parts that are said again, and asked now to be held more firmly: by name, since a reply that is held as written has
  // other positions than in what says it again. Those of one name are visited once, however often it is said; returned is
  // how many were.
  std::int32_t hold_as_asked(std::span<const PromptPart> asked);

 private:
  template <class Change>
  std::int32_t change(std::string_view name, Change change);

  std::vector<Part> parts_;  // in position order
  // Where in parts_ each name stands, in order.
  std::map<std::string, std::vector<std::size_t>, std::less<>> places_;
};

}  // namespace ebb
