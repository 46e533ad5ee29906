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
  places_[part.name].push_back(parts_.size());
  parts_.push_back(std::move(part));
}

void Parts::extend_last(std::int32_t n_tokens) {
  EBB_CHECK(!parts_.empty() && n_tokens >= 0, "{} tokens for {} parts", n_tokens, parts_.size());
  parts_.back().span.end = parts_.back().span.end + n_tokens;
}

void Parts::truncate(Position end) {
  while (!parts_.empty() && parts_.back().span.begin >= end) {
    const auto found = places_.find(parts_.back().name);
    found->second.pop_back();
    if (found->second.empty()) places_.erase(found);
    parts_.pop_back();
  }
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
  const auto found = places_.find(name);
  if (found == places_.end()) return spans;
  for (const std::size_t place : found->second) spans.push_back(parts_[place].span);
  return spans;
}

template <class Change>
std::int32_t Parts::change(std::string_view name, Change change) {
  const auto found = places_.find(name);
  if (found == places_.end()) return 0;
  for (const std::size_t place : found->second) change(parts_[place]);
  return static_cast<std::int32_t>(found->second.size());
}

std::int32_t Parts::set_pinned(std::string_view name, bool pinned) {
  return change(name, [&](Part& part) { part.pinned = pinned; });
}

std::int32_t Parts::set_priority(std::string_view name, double priority) {
  EBB_CHECK(std::isfinite(priority) && priority >= 0.0, "priority {}", priority);
  return change(name, [&](Part& part) { part.priority = priority; });
}

std::int32_t Parts::hold_as_asked(std::span<const PromptPart> asked) {
  struct Firmness {
    bool pinned = false;
    double priority = 1.0;
  };
  std::map<std::string_view, Firmness> by_name;
  for (const PromptPart& part : asked) {
    if (!part.pinned && part.priority == 1.0) continue;
    Firmness& asked_for = by_name[part.name];
    asked_for.pinned |= part.pinned;
    if (part.priority != 1.0) asked_for.priority = part.priority;
  }
  std::int32_t n_visited = 0;
  for (const auto& [name, asked_for] : by_name) {
    EBB_CHECK(std::isfinite(asked_for.priority) && asked_for.priority >= 0.0, "priority {}", asked_for.priority);
    n_visited += change(name, [&](Part& part) {
      part.pinned |= asked_for.pinned;
      if (asked_for.priority != 1.0) part.priority = asked_for.priority;
    });
  }
  return n_visited;
}

}  // namespace ebb
