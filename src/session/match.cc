#include "session/match.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace ebb {
namespace {

// Tokens of a stretch that is cut in two ways, on either side. More: hostile text costs more to compare. Less: a long
// word that was cut otherwise counts as an edit.
constexpr std::size_t kMostCutOtherwise = 64;

std::string text_of(const Vocabulary& vocabulary, std::span<const Token> tokens) {
  Result<std::string> text = vocabulary.detokenize(tokens, SpecialTokens::kShow);
  return text.ok() ? *std::move(text) : std::string();
}

// The bytes of a token of text; nothing for control tokens, which are no text.
std::optional<std::string> bytes_of(const Vocabulary& vocabulary, Token token) {
  Result<std::string> piece = vocabulary.piece(token, SpecialTokens::kHide);
  if (!piece.ok() || piece->empty()) return std::nullopt;
  return *std::move(piece);
}

// Tokens as one text: where each ends in it, and which of them are control tokens.
struct TokenText {
  struct End {
    std::size_t n_bytes = 0;
    std::size_t n_controls = 0;  // among the tokens up to here
  };
  std::string text;
  std::vector<End> ends;
  std::vector<Token> controls;
};

TokenText token_text(const Vocabulary& vocabulary, std::span<const Token> tokens) {
  TokenText said;
  for (const Token token : tokens) {
    if (!bytes_of(vocabulary, token)) said.controls.push_back(token);
    const Result<std::string> piece = vocabulary.piece(token, SpecialTokens::kShow);
    if (piece.ok()) said.text += *piece;
    said.ends.push_back({.n_bytes = said.text.size(), .n_controls = said.controls.size()});
  }
  return said;
}

// How many tokens end so many bytes behind the beginning; 0: none ends there.
std::size_t n_tokens_to(const TokenText& said, std::size_t n_bytes) {
  const auto end = std::ranges::lower_bound(said.ends, n_bytes, {}, &TokenText::End::n_bytes);
  return end == said.ends.end() || end->n_bytes != n_bytes ? 0 : static_cast<std::size_t>(end - said.ends.begin()) + 1;
}

// How many first tokens are the same. They are compared many at a time, which is ten times faster than one by one.
std::size_t count_same(std::span<const Token> a, std::span<const Token> b) {
  constexpr std::size_t kAtOnce = 256;
  static_assert(std::has_unique_object_representations_v<Token>);
  const std::size_t n_both = std::min(a.size(), b.size());
  std::size_t n = 0;
  while (n_both - n >= kAtOnce && std::memcmp(&a[n], &b[n], kAtOnce * sizeof(Token)) == 0) n += kAtOnce;
  while (n < n_both && a[n] == b[n]) ++n;
  return n;
}

class Matcher {
 public:
  Matcher(const Vocabulary& vocabulary, std::span<const Token> held, std::span<const Token> history)
      : vocabulary_(vocabulary), held_(held), history_(history) {}

  Match match(std::span<const Span> replies, const SameReply& same_reply) {
    while (true) {
      skip_same_ids(replies);
      if (skip_same_bytes()) continue;
      if (!skip_same_reply(same_reply)) return at_;
    }
  }

 private:
  [[nodiscard]] bool at_end() const { return at_.n_held == std::ssize(held_) || at_.n_said == std::ssize(history_); }

  void skip_same_ids(std::span<const Span> replies) {
    while (true) {
      while (n_replies_ < replies.size() && replies[n_replies_].begin.value() <= at_.n_held) {
        reply_ = replies[n_replies_].begin.value() == at_.n_held ? std::optional(at_) : std::nullopt;
        ++n_replies_;
      }
      if (at_end() || held_[index(at_.n_held)] != history_[index(at_.n_said)]) return;
      ++at_.n_held;
      ++at_.n_said;
    }
  }

  // Up to the first place where both are cut.
  bool skip_same_bytes() {
    Match next = at_;
    std::string held;
    std::string said;
    do {
      const bool held_is_behind = held.size() <= said.size();
      std::int32_t& n = held_is_behind ? next.n_held : next.n_said;
      const std::span<const Token> tokens = held_is_behind ? held_ : history_;
      const std::int32_t first = held_is_behind ? at_.n_held : at_.n_said;
      if (n == std::ssize(tokens) || index(n - first) == kMostCutOtherwise) return false;
      const std::optional<std::string> bytes = bytes_of(vocabulary_, tokens[index(n)]);
      if (!bytes) return false;
      (held_is_behind ? held : said) += *bytes;
      ++n;
      const std::size_t n_both = std::min(held.size(), said.size());
      if (std::string_view(held).substr(0, n_both) != std::string_view(said).substr(0, n_both)) return false;
    } while (held.size() != said.size());
    at_ = next;
    return true;
  }

  // A reply ends with its end-of-generation token, in what the model wrote and in what a template makes of it.
  bool skip_same_reply(const SameReply& same_reply) {
    if (!reply_) return false;
    const Match begin = *std::exchange(reply_, std::nullopt);
    const auto end_of = [&](std::span<const Token> tokens, std::int32_t from) -> std::optional<std::int32_t> {
      const auto rest = tokens.subspan(index(from));
      const auto end = std::ranges::find_if(rest, [&](Token token) { return vocabulary_.is_end_of_generation(token); });
      if (end == rest.end()) return std::nullopt;
      return from + static_cast<std::int32_t>(end - rest.begin());
    };
    const auto held_end = end_of(held_, begin.n_held);
    const auto said_end = end_of(history_, begin.n_said);
    if (!held_end && said_end && same_reply.broken_off != nullptr) {
      return skip_broken_off(begin, *said_end, same_reply);
    }
    // Behind an edit in the middle of an earlier reply, this one is not where the texts part.
    if (same_reply.whole == nullptr || !held_end || !said_end || *held_end < at_.n_held || *said_end < at_.n_said)
      return false;
    const auto text = [&](std::span<const Token> tokens, std::int32_t from, std::int32_t end) {
      return text_of(vocabulary_, tokens.subspan(index(from), index(end - from)));
    };
    if (!same_reply.whole(text(held_, begin.n_held, *held_end), text(history_, begin.n_said, *said_end))) return false;
    at_ = {.n_held = *held_end, .n_said = *said_end};
    return true;
  }

  // Of what is held of a reply that broke off, all whole tokens that say what whole tokens of its mended form say.
  bool skip_broken_off(const Match& begin, std::int32_t said_end, const SameReply& same_reply) {
    if (at_.n_held == std::ssize(held_) || said_end < at_.n_said) return false;
    const TokenText held = token_text(vocabulary_, held_.subspan(index(begin.n_held)));
    const TokenText said =
        token_text(vocabulary_, history_.subspan(index(begin.n_said), index(said_end - begin.n_said)));
    const auto first_other = std::ranges::mismatch(held.controls, said.controls).in1;
    const auto n_same_controls = static_cast<std::size_t>(first_other - held.controls.begin());
    Match farthest = at_;
    for (const auto& [n_written, n_said] : same_reply.broken_off(held.text, said.text)) {
      const std::size_t to_held = n_tokens_to(held, n_written);
      const std::size_t to_said = n_tokens_to(said, n_said);
      if (to_held == 0 || to_said == 0) continue;
      // Text that looks like a control token is none.
      const std::size_t n_controls = held.ends[to_held - 1].n_controls;
      if (n_controls > n_same_controls || n_controls != said.ends[to_said - 1].n_controls) continue;
      const Match place = {.n_held = begin.n_held + static_cast<std::int32_t>(to_held),
                           .n_said = begin.n_said + static_cast<std::int32_t>(to_said)};
      if (place.n_held >= farthest.n_held && place.n_said >= farthest.n_said) farthest = place;
    }
    return std::exchange(at_, farthest) != farthest;
  }

  static std::size_t index(std::int32_t n) { return static_cast<std::size_t>(n); }

  const Vocabulary& vocabulary_;
  std::span<const Token> held_;
  std::span<const Token> history_;
  Match at_;
  std::size_t n_replies_ = 0;
  // Where the reply that at_ lies in, or behind, begins in both.
  std::optional<Match> reply_;
};

// Hashes of all runs of n tokens, by where they begin.
std::vector<std::uint64_t> hash_runs(std::span<const Token> tokens, std::size_t n) {
  constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15ULL;
  const auto value = [](Token token) { return static_cast<std::uint64_t>(token.value()) + 1; };
  std::uint64_t leaving = 1;
  for (std::size_t i = 1; i < n; ++i) leaving *= kBase;
  std::vector<std::uint64_t> hashes;
  if (tokens.size() >= n) hashes.reserve(tokens.size() - n + 1);
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i >= n) hash -= value(tokens[i - n]) * leaving;
    hash = hash * kBase + value(tokens[i]);
    if (i + 1 >= n) hashes.push_back(hash);
  }
  return hashes;
}

}  // namespace

std::int32_t count_common(std::span<const Token> computed, std::span<const Token> waiting,
                          std::span<const Token> prompt) {
  const std::size_t n_computed = count_same(computed, prompt);
  if (n_computed < computed.size()) return static_cast<std::int32_t>(n_computed);
  return static_cast<std::int32_t>(n_computed + count_same(waiting, prompt.subspan(n_computed)));
}

Match match_history(const Vocabulary& vocabulary, std::span<const Token> held, std::span<const Span> replies,
                    std::span<const Token> history, const SameReply& same_reply) {
  return Matcher(vocabulary, held, history).match(replies, same_reply);
}

RunIndex::RunIndex(std::span<const Token> before, std::int32_t n_least) : text_(before), n_(n_least) {
  EBB_CHECK(n_least > 0, "runs of {} tokens", n_least);
  std::int32_t at = 0;
  for (const std::uint64_t hash : hash_runs(before, static_cast<std::size_t>(n_least)))
    places_.emplace_back(hash, at++);
  std::ranges::sort(places_);
  // 16 bits for each run, so that one in 16 that is not there looks as if it were.
  const auto n_bits = std::max(1, static_cast<std::int32_t>(std::bit_width(16 * places_.size())));
  known_.resize(std::size_t{1} << n_bits);
  known_shift_ = 64 - n_bits;
  for (const auto& [hash, place] : places_) known_[hash >> known_shift_] = true;
}

bool RunIndex::may_have(std::uint64_t hash) const { return known_[hash >> known_shift_]; }

// The place, of those around `wanted` that have a run of that hash, whose text agrees longest with `rest`.
RunIndex::Found RunIndex::find(std::uint64_t hash, std::span<const Token> rest, std::int32_t wanted) const {
  constexpr std::ptrdiff_t kPlaces = 2;  // before `wanted`, and as many behind
  const auto middle = std::ranges::lower_bound(places_, std::pair(hash, wanted));
  const auto first = middle - std::min(kPlaces, middle - places_.begin());
  const auto end = middle + std::min(kPlaces, places_.end() - middle);
  Found best;
  for (auto place = first; place != end; ++place) {
    if (place->first != hash) continue;
    const auto there = text_.subspan(static_cast<std::size_t>(place->second));
    const auto n_same = static_cast<std::int32_t>(std::ranges::mismatch(there, rest).in1 - there.begin());
    if (n_same >= n_ && n_same > best.n_tokens) best = {.place = place->second, .n_tokens = n_same};
  }
  return best;
}

std::vector<TokenRun> RunIndex::find_runs(std::span<const Token> now) const {
  const std::vector<std::uint64_t> hashes = hash_runs(now, static_cast<std::size_t>(n_));
  std::vector<TokenRun> runs;
  std::size_t at = 0;
  std::int32_t wanted = 0;  // where the text goes on if the edit replaced as many tokens
  while (at < hashes.size()) {
    const Found found = may_have(hashes[at]) ? find(hashes[at], now.subspan(at), wanted) : Found();
    if (found.n_tokens > 0) {
      runs.push_back({.from = found.place, .to = static_cast<std::int32_t>(at), .n_tokens = found.n_tokens});
      wanted = found.place;
    }
    const std::int32_t n_passed = std::max(1, found.n_tokens);
    at += static_cast<std::size_t>(n_passed);
    wanted += n_passed;
  }
  return runs;
}

std::vector<TokenRun> find_runs(std::span<const Token> before, std::span<const Token> now, std::int32_t n_least) {
  return RunIndex(before, n_least).find_runs(now);
}

}  // namespace ebb
