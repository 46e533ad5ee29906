#include "session/parts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace ebb {

void Parts::add(Part part) {
  EBB_CHECK(parts_.empty() || parts_.back().span.end <= part.span.begin, "a part at {} behind {}",
            part.span.begin.value(), parts_.back().span.end.value());
  EBB_CHECK(std::isfinite(part.priority) && part.priority >= 0.0, "priority {}", part.priority);
  parts_.push_back(std::move(part));
}

void Parts::extend_last(std::int32_t n_tokens) {
  EBB_CHECK(!parts_.empty() && n_tokens >= 0, "{} tokens for {} parts", n_tokens, parts_.size());
  parts_.back().span.end = parts_.back().span.end + n_tokens;
}

void Parts::truncate(Position end) {
  while (!parts_.empty() && parts_.back().span.begin >= end) parts_.pop_back();
  if (!parts_.empty()) parts_.back().span.end = std::min(parts_.back().span.end, end);
}

Part Parts::merged(Span span) const {
  Part result{.span = span, .priority = 0.0};
  const auto first =
      std::partition_point(parts_.begin(), parts_.end(), [&](const Part& part) { return part.span.end <= span.begin; });
  std::int32_t most = 0;
  for (auto part = first; part != parts_.end() && part->span.begin < span.end; ++part) {
    const std::int32_t n = intersect(part->span, span).n_tokens();
    if (n == 0) continue;
    result.priority = std::max(result.priority, part->priority);
    result.pinned |= part->pinned;
    if (n > most) {
      most = n;
      result.span = part->span;
      result.source = part->source;
      result.name = part->name;
    }
  }
  if (most == 0) result.priority = 1.0;
  return result;
}

std::vector<Span> Parts::find(std::string_view name) const {
  std::vector<Span> spans;
  for (const Part& part : parts_) {
    if (part.name == name) spans.push_back(part.span);
  }
  return spans;
}

std::int32_t Parts::set_pinned(std::string_view name, bool pinned) {
  std::int32_t n = 0;
  for (Part& part : parts_) {
    if (part.name != name) continue;
    part.pinned = pinned;
    ++n;
  }
  return n;
}

std::int32_t Parts::set_priority(std::string_view name, double priority) {
  EBB_CHECK(std::isfinite(priority) && priority >= 0.0, "priority {}", priority);
  std::int32_t n = 0;
  for (Part& part : parts_) {
    if (part.name != name) continue;
    part.priority = priority;
    ++n;
  }
  return n;
}

}  // namespace ebb
