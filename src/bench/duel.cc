#include "bench/duel.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"

namespace ebb {

double logits_difference(std::span<const float> a, std::span<const float> b) {
  EBB_CHECK(a.size() == b.size() && !b.empty(), "{} logits against {}", a.size(), b.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
  const auto [low, high] = std::minmax_element(b.begin(), b.end());
  const double range = double{*high} - double{*low};
  return range > 0.0 ? largest / range : largest;
}

Duel::Duel(Subject& a, Subject& b, std::int32_t n_vocab, std::uint32_t seed)
    : a_(a), b_(b), n_vocab_(n_vocab), random_(seed) {
  EBB_CHECK(a.n_resident() == 0 && b.n_resident() == 0 && n_vocab > 0, "{} and {} tokens are resident already",
            a.n_resident(), b.n_resident());
}

std::span<const Token> Duel::tokens_at(std::int32_t begin, std::int32_t n) {
  while (std::cmp_less(tokens_.size(), begin + n)) {
    tokens_.emplace_back(static_cast<std::int32_t>(random_() % static_cast<std::uint32_t>(n_vocab_)));
  }
  return std::span<const Token>(tokens_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(n));
}

Status Duel::fill(std::int32_t n_tokens, std::int32_t chunk) {
  EBB_CHECK(n_tokens >= depth_ && chunk > 0, "from {} back to {} tokens", depth_, n_tokens);
  while (depth_ < n_tokens) {
    const std::int32_t n = std::min(chunk, n_tokens - depth_);
    for (Subject* subject : {&a_, &b_}) {
      EBB_RETURN_IF_ERROR(subject->append(tokens_at(depth_, n)));
      on_step();
    }
    depth_ += n;
  }
  return {};
}

Result<double> Duel::time_one(Subject& subject, std::int32_t n_tokens, std::int32_t piece) {
  std::span<const Token> tokens = tokens_at(depth_, n_tokens);
  const Stopwatch watch;
  while (!tokens.empty()) {
    const std::size_t n = std::min(tokens.size(), static_cast<std::size_t>(piece));
    EBB_RETURN_IF_ERROR(subject.append(tokens.first(n)));
    // What a sampler would read; libllama waits here for what it may still be computing.
    EBB_CHECK(std::cmp_equal(subject.last_logits().size(), n_vocab_), "{} logits of {}", subject.last_logits().size(),
              n_vocab_);
    tokens = tokens.subspan(n);
  }
  return watch.elapsed_ms();
}

Result<PairedTimes> Duel::time(std::int32_t n_tokens, std::int32_t piece, std::int32_t n_rounds) {
  PairedTimes times;
  for (std::int32_t round = 0; round <= n_rounds; ++round) {
    const bool a_begins = round % 2 == 0;
    if (round % 2 == 1) EBB_RETURN_IF_ERROR(beside_round());
    Subject& first = a_begins ? a_ : b_;
    Subject& second = a_begins ? b_ : a_;
    EBB_ASSIGN_OR_RETURN(const double first_ms, time_one(first, n_tokens, piece));
    on_step();
    if (round > 0) amid_round();
    EBB_ASSIGN_OR_RETURN(const double second_ms, time_one(second, n_tokens, piece));
    on_step();
    last_difference_ = logits_difference(a_.last_logits(), b_.last_logits());
    EBB_RETURN_IF_ERROR(a_.truncate(depth_));
    EBB_RETURN_IF_ERROR(b_.truncate(depth_));
    if (round == 0) continue;
    if (round % 2 == 0) EBB_RETURN_IF_ERROR(beside_round());
    times.a_ms.push_back(a_begins ? first_ms : second_ms);
    times.b_ms.push_back(a_begins ? second_ms : first_ms);
  }
  return times;
}

Result<PairedTimes> Duel::time_prompt(std::int32_t n_tokens, std::int32_t n_rounds) {
  return time(n_tokens, n_tokens, n_rounds);
}

Result<PairedTimes> Duel::time_decode(std::int32_t n_tokens, std::int32_t n_rounds) {
  return time(n_tokens, 1, n_rounds);
}

}  // namespace ebb
