#include "engine/token_sketch.h"

#include <algorithm>

namespace ebb {
namespace {

constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15ULL;

constexpr std::uint64_t power_of_base(std::size_t n) {
  std::uint64_t power = 1;
  for (std::size_t i = 0; i < n; ++i) power *= kBase;
  return power;
}

// The factor of the token that leaves a run.
constexpr std::uint64_t kLeaving = power_of_base(TokenSketch::kRun);

constexpr std::uint64_t value_of(Token token) { return static_cast<std::uint64_t>(token.value()) + 1; }

std::uint64_t hash_run(std::span<const Token> run) {
  std::uint64_t hash = 0;
  for (const Token token : run) hash = hash * kBase + value_of(token);
  return hash;
}

// Spreads a rolling hash, of which texts may choose the small ones, over all numbers (the finisher of MurmurHash3).
constexpr std::uint64_t spread(std::uint64_t hash) {
  hash = (hash ^ (hash >> 33)) * 0xFF51AFD7ED558CCDULL;
  hash = (hash ^ (hash >> 33)) * 0xC4CEB9FE1A85EC53ULL;
  return hash ^ (hash >> 33);
}

}  // namespace

void TokenSketch::follow(std::span<const Token> text) {
  const bool goes_on =
      n_tokens_ >= kRun && text.size() >= n_tokens_ && hash_run(text.subspan(n_tokens_ - kRun, kRun)) == last_run_;
  if (!goes_on) {
    least_.clear();
    n_tokens_ = 0;
    if (text.size() < kRun) return;
    last_run_ = hash_run(text.first(kRun));
    n_tokens_ = kRun;
    add(spread(last_run_));
  }
  for (; n_tokens_ < text.size(); ++n_tokens_) {
    last_run_ = last_run_ * kBase + value_of(text[n_tokens_]) - value_of(text[n_tokens_ - kRun]) * kLeaving;
    add(spread(last_run_));
  }
}

void TokenSketch::add(std::uint64_t hash) {
  if (least_.size() == kMost && hash >= least_.back()) return;
  const auto place = std::ranges::lower_bound(least_, hash);
  if (place != least_.end() && *place == hash) return;
  least_.insert(place, hash);
  if (least_.size() > kMost) least_.pop_back();
}

double TokenSketch::likeness(const TokenSketch& other) const {
  auto ours = least_.begin();
  auto theirs = other.least_.begin();
  int n_of_both = 0;
  int n_of_any = 0;
  for (; n_of_any < static_cast<int>(kMost); ++n_of_any) {
    const bool ours_ended = ours == least_.end();
    const bool theirs_ended = theirs == other.least_.end();
    if (ours_ended && theirs_ended) break;
    const bool takes_ours = theirs_ended || (!ours_ended && *ours <= *theirs);
    const bool takes_theirs = ours_ended || (!theirs_ended && *theirs <= *ours);
    if (takes_ours && takes_theirs) ++n_of_both;
    if (takes_ours) ++ours;
    if (takes_theirs) ++theirs;
  }
  return n_of_any == 0 ? 0.0 : static_cast<double>(n_of_both) / n_of_any;
}

}  // namespace ebb
