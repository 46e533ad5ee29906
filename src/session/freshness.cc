#include "session/freshness.h"

#include <algorithm>
#include <utility>

#include "base/to_size.h"

namespace ebb {
namespace {

// Tokens of a run that are computed again though they rely on nothing that changed: what stood before them does no more.
constexpr std::int32_t kBehindEdit = 16;

}  // namespace

Freshness::Freshness(Reliances before, Span edited, std::vector<TokenRun> runs)
    : before_(std::move(before)), edit_(edited.begin), runs_(std::move(runs)) {
  const std::int32_t n_tokens = before_.n_slice_tokens();
  changed_.resize(to_size((edited.end.value() + n_tokens - 1) / n_tokens));
  std::vector<bool> stands(to_size(edited.n_tokens()));
  for (const TokenRun& run : runs_) std::fill_n(stands.begin() + (run.from - edit_.value()), run.n_tokens, true);
  for (std::int32_t i = 0; i < edited.n_tokens(); ++i) {
    if (!stands[to_size(i)]) changed_[to_size(before_.slice_at(edited.begin + i))] = true;
  }
}

bool Freshness::is_stale(Span before) const {
  const auto relied_on = before_.of(before_.slice_at(before.begin));
  if (!relied_on || is_behind_edit(before.begin)) return true;
  return std::ranges::any_of(*relied_on, [&](std::int32_t slice) { return changed_[to_size(slice)]; });
}

void Freshness::note_changed(Span before) { changed_[to_size(before_.slice_at(before.begin))] = true; }

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
