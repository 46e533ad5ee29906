#include "session/reliances.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/to_size.h"

namespace ebb {
namespace {

// Instead of a count.
constexpr std::uint32_t kOnAll = 0xFFFFFFFF;

}  // namespace

Result<Reliances> Reliances::restore(std::int32_t n_slice_tokens, Position end,
                                     std::vector<std::optional<std::vector<std::int32_t>>> slices) {
  Reliances restored(n_slice_tokens);
  restored.end_at(end);
  if (std::ssize(slices) != restored.n_slices()) {
    return error(Code::kDamaged, "{} slices of {} tokens for {} tokens", slices.size(), n_slice_tokens, end.value());
  }
  for (std::int32_t s = 0; s < restored.n_slices(); ++s) {
    std::optional<std::vector<std::int32_t>>& on = slices[to_size(s)];
    if (!on) continue;
    const bool is_sound = on->size() <= kMostReliances && std::ranges::is_sorted(*on, std::ranges::less_equal()) &&
                          (on->empty() || (on->front() >= 0 && on->back() < s));
    if (!is_sound) return error(Code::kDamaged, "slice {} of a session relies on what does not stand before it", s);
    restored.slice(s) = {.on_all = false, .on = *std::move(on)};
  }
  return restored;
}

void Reliances::put(std::int32_t slice, ByteWriter& out) const {
  const auto on = of(slice);
  out.put(on ? static_cast<std::uint32_t>(on->size()) : kOnAll);
  if (on) out.put_bytes(std::as_bytes(*on));
}

Result<std::optional<std::vector<std::int32_t>>> Reliances::get(ByteReader& in) {
  const auto n = in.get<std::uint32_t>();
  if (in.ok() && n == kOnAll) return std::optional<std::vector<std::int32_t>>();
  if (!in.ok() || n > kMostReliances) return error(Code::kDamaged, "a slice that relies on {} others", n);
  std::vector<std::int32_t> on;
  for (std::uint32_t i = 0; i < n; ++i) on.push_back(in.get<std::int32_t>());
  if (!in.ok()) return error(Code::kDamaged, "a slice that relies on {} others, which are not all there", n);
  return std::optional(std::move(on));
}

std::optional<std::span<const std::int32_t>> Reliances::of(std::int32_t slice) const {
  if (slice < 0 || slice >= n_slices() || slices_[to_size(slice)].on_all) return std::nullopt;
  return slices_[to_size(slice)].on;
}

void Reliances::add(Span rows, std::span<const SliceReliance> found) {
  EBB_CHECK(!rows.empty(), "a step without rows");
  end_at(rows.begin);
  end_ = std::max(end_, rows.end);
  slice(slice_at(rows.end - 1));
  for (const SliceReliance& one : found) rely(slice(one.of), one.on);
}

void Reliances::add(Span rows, std::span<const std::int32_t> on) {
  EBB_CHECK(!rows.empty(), "rows of nothing");
  end_at(rows.begin);
  end_ = std::max(end_, rows.end);
  for (std::int32_t s = slice_at(rows.begin); s <= slice_at(rows.end - 1); ++s) {
    Slice& here = slice(s);
    for (const std::int32_t earlier : on) {
      if (earlier < s) rely(here, earlier);
    }
  }
}

void Reliances::end_at(Position end) {
  if (end <= end_) return;
  for (std::int32_t s = slice_at(end_); s <= slice_at(end - 1); ++s) slice(s) = {.on_all = true, .on = {}};
  end_ = end;
}

void Reliances::forget(Span rows) {
  for (std::int32_t s = slice_at(rows.begin); s < std::min(n_slices(), slice_at(rows.end - 1) + 1); ++s) {
    slice(s) = {.on_all = true, .on = {}};
  }
}

void Reliances::cut(Position end) {
  if (end >= end_) return;
  end_ = end;
  slices_.resize(to_size((end.value() + n_slice_tokens_ - 1) / n_slice_tokens_));
}

Reliances::Slice& Reliances::slice(std::int32_t index) {
  if (index >= n_slices()) slices_.resize(to_size(index + 1));
  return slices_[to_size(index)];
}

void Reliances::rely(Slice& slice, std::int32_t on) {
  if (slice.on_all) return;
  const auto at = std::ranges::lower_bound(slice.on, on);
  if (at != slice.on.end() && *at == on) return;
  slice.on.insert(at, on);
  if (slice.on.size() > kMostReliances) slice = {.on_all = true, .on = {}};
}

}  // namespace ebb
