// What a session's client no longer wants in sight: where it stands, and how it leaves.
#include <algorithm>

#include "session/session.h"

namespace ebb {
namespace {

void add_merged(Span span, std::vector<Span>& spans) {
  if (span.empty()) return;
  if (!spans.empty() && spans.back().end >= span.begin) {
    spans.back().end = std::max(spans.back().end, span.end);
  } else {
    spans.push_back(span);
  }
}

Span shifted(Span span, std::int32_t shift) { return {span.begin + shift, span.end + shift}; }

}  // namespace

// A reply that is held as it was written has other tokens than the prompt, and what stands behind it another place: found by its part's
// name. What is found nowhere stays in sight.
std::vector<Span> Session::find_cleared(const Prompt& prompt, std::int32_t n_held, Position begin) const {
  std::vector<Span> spans;
  if (prompt.cleared().empty()) return spans;
  const auto stands = [&](Span said, std::int32_t shift) {
    const Span held = shifted(said, shift);
    if (held.begin < Position(0) || held.end > end()) return false;
    return std::ranges::equal(prompt.tokens().subspan(said.begin.index(), static_cast<std::size_t>(said.n_tokens())),
                              tokens().subspan(held.begin.index(), static_cast<std::size_t>(held.n_tokens())));
  };
  std::int32_t shift = 0;
  auto cleared = prompt.cleared().begin();
  const auto add = [&](Span said, std::int32_t by, bool is_new) {
    if (said.empty()) return;
    while (cleared != prompt.cleared().end() && cleared->end <= said.begin) ++cleared;
    for (auto one = cleared; one != prompt.cleared().end() && one->begin < said.end; ++one) {
      const Span both = intersect(*one, said);
      if (is_new || stands(both, by)) add_merged(shifted(both, by), spans);
    }
  };
  Position first(0);
  for (const PromptPart& part : prompt.parts()) {
    const Span said = {first, first + part.n_tokens};
    first = said.end;
    const Span old = intersect(said, {Position(0), Position(n_held)});
    if (!old.empty() && !stands(old, shift)) {
      for (const Span place : said_.find(part.name)) {
        if (stands(old, place.begin - said.begin)) shift = place.begin - said.begin;
      }
    }
    add(old, shift, false);
    add(intersect(said, {Position(n_held), said.end}), begin.value() - n_held, true);
  }
  return spans;
}

bool Session::is_cleared(BlockIndex block) const {
  if (cleared_.empty() || !hot().is_full(block)) return false;
  const Span span = hot().span(block);
  const auto behind = std::ranges::upper_bound(cleared_, span.begin, {}, &Span::begin);
  return behind != cleared_.begin() && std::prev(behind)->end >= span.end;
}

void Session::let_go_cleared(Span among, Acts& acts) {
  std::vector<BlockIndex> blocks;
  auto span = std::ranges::upper_bound(cleared_, among.begin, {}, &Span::end);
  for (; span != cleared_.end() && span->begin < among.end; ++span) {
    const std::int32_t first =
        (std::max(span->begin.value(), among.begin.value() - block_size() + 1) + block_size() - 1) / block_size();
    const std::int32_t end = std::min(span->end.value() / block_size(), n_blocks());
    for (std::int32_t b = std::max(0, first); b < end && b * block_size() < among.end.value(); ++b) {
      const BlockIndex block(b);
      if (hot().is_full(block) && hot().n_hot_frames(block) > 0 && !is_pinned(block)) blocks.push_back(block);
    }
  }
  if (!blocks.empty()) acts += evict(blocks);
}

}  // namespace ebb
