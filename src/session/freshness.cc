#include "session/freshness.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/to_size.h"

namespace ebb {
namespace {

// Tokens of a run that are computed again though they rely on nothing that changed: what stood before them does no more.
constexpr std::int32_t kBehindEdit = 16;

// Behind every position.
constexpr Position kNowhere{INT32_MAX};

}  // namespace

Freshness::Freshness(Reliances before, Span edited, std::vector<TokenRun> runs)
    : before_(std::move(before)), edit_(edited.begin), runs_(std::move(runs)) {
  const std::int32_t n_tokens = before_.n_slice_tokens();
  // The first place of each token of before, of which some are said again, elsewhere or several times.
  std::vector<Position> places(to_size(edited.n_tokens()), kNowhere);
  for (const TokenRun& run : runs_) {
    for (std::int32_t i = 0; i < run.n_tokens; ++i) {
      Position& place = places[to_size(run.from - edit_.value() + i)];
      place = std::min(place, Position(run.to + i));
    }
  }
  stand_until_.resize(to_size((edited.end.value() + n_tokens - 1) / n_tokens), Position(0));
  for (std::int32_t i = 0; i < edited.n_tokens(); ++i) {
    Position& until = stand_until_[to_size(before_.slice_at(edited.begin + i))];
    until = std::max(until, places[to_size(i)]);
  }
}

// What is relied on and stands behind whoever relies on it now does no more stand before it.
bool Freshness::is_stale(Span before, Position now) const {
  const auto relied_on = before_.of(before_.slice_at(before.begin));
  if (!relied_on || is_behind_edit(before.begin)) return true;
  return std::ranges::any_of(*relied_on, [&](std::int32_t slice) { return stand_until_[to_size(slice)] >= now; });
}

void Freshness::note_changed(Span before) { stand_until_[to_size(before_.slice_at(before.begin))] = kNowhere; }

std::optional<std::vector<std::int32_t>> Freshness::reliances_now(Span before) const {
  const auto relied_on = before_.of(before_.slice_at(before.begin));
  if (!relied_on) return std::nullopt;
  std::vector<std::int32_t> now;
  for (const std::int32_t slice : *relied_on) add_now(slice, now);
  return now;
}

Span Freshness::first_piece(Span before) const {
  const std::int32_t n_tokens = before_.n_slice_tokens();
  return {before.begin, std::min(before.end, Position((before_.slice_at(before.begin) + 1) * n_tokens))};
}

// Where the session goes on as it was, nothing was edited.
bool Freshness::is_behind_edit(Position before) const {
  return std::ranges::any_of(runs_, [&](const TokenRun& run) {
    const std::int32_t n_behind = before.value() - run.from;
    const bool goes_on = run.from == edit_.value() && run.to == run.from;
    return !goes_on && n_behind >= 0 && n_behind < std::min(kBehindEdit, run.n_tokens);
  });
}

// A slice of before may lie across slices of now, and in several runs.
void Freshness::add_now(std::int32_t slice, std::vector<std::int32_t>& now) const {
  const std::int32_t n_tokens = before_.n_slice_tokens();
  const Span tokens = {Position(slice * n_tokens), Position((slice + 1) * n_tokens)};
  const auto add = [&](Span place) {
    if (place.empty()) return;
    for (std::int32_t s = before_.slice_at(place.begin); s <= before_.slice_at(place.end - 1); ++s) {
      const auto at = std::ranges::lower_bound(now, s);
      if (at == now.end() || *at != s) now.insert(at, s);
    }
  };
  add(intersect(tokens, {Position(0), edit_}));
  for (const TokenRun& run : runs_) {
    const Span in_run = intersect(tokens, {Position(run.from), Position(run.from + run.n_tokens)});
    if (!in_run.empty()) add({in_run.begin + (run.to - run.from), in_run.end + (run.to - run.from)});
  }
}

}  // namespace ebb
