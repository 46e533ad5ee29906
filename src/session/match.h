// match: what of a whole prompt a session holds already, and what of the rest it held before an edit. Pure functions on
// tokens; they move nothing.
//
// A client says its whole history again each time, and not token for token: what a model wrote comes back cut into
// other tokens, and its calls with other white space. What says the same is held as the model wrote it.
//
//   held      |-- the same ids --|-- other ids, same bytes --|-- a reply that means the same --|-- something else ...
//   history   |------------------|---------------------------|---------------------------------|-- ...
//
// So is a reply that broke off inside a call and comes back mended, up to there.
//
// Thread rule: functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/span.h"
#include "text/vocabulary.h"

namespace ebb {

// How many first tokens of `prompt` are those that the session computed, then those that wait in it.
[[nodiscard]] std::int32_t count_common(std::span<const Token> computed, std::span<const Token> waiting,
                                        std::span<const Token> prompt);

// What is the same of a reply as the model wrote it and as the client says it now, whatever its calls' white space. Null: nothing but what has
// the same bytes.
struct SameReply {
  // Whether all of it is.
  std::function<bool(std::string_view written, std::string_view said)> whole = nullptr;
  // Of one that broke off: places, in bytes of both, such that what is said behind one may stand behind what was written up to there.
  std::function<std::vector<std::pair<std::size_t, std::size_t>>(std::string_view written, std::string_view said)>
      broken_off = nullptr;
};

// The first n_held tokens that a session holds stand for the first n_said of a history.
struct Match {
  std::int32_t n_held = 0;
  std::int32_t n_said = 0;

  friend bool operator==(const Match&, const Match&) = default;
};

// `replies`: where assistants speak in `held`, in order. Control tokens are the same only by their ids: text that looks
// like one is none.
[[nodiscard]] Match match_history(const Vocabulary& vocabulary, std::span<const Token> held,
                                  std::span<const Span> replies, std::span<const Token> history,
                                  const SameReply& same_reply = {});

// Tokens [to, to + n_tokens) of a text are [from, from + n_tokens) of another.
struct TokenRun {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int32_t n_tokens = 0;

  friend bool operator==(const TokenRun&, const TokenRun&) = default;
};

// Where the runs of n_least tokens of a text begin. The text must outlive it.
class RunIndex {
 public:
  RunIndex(std::span<const Token> before, std::int32_t n_least);

  // Runs of at least n_least tokens of `now` that stand in the text, in the order of `now`, without overlap there. Of
  // several places in the text, near where the last run would go on, the one with which `now` agrees longest.
  [[nodiscard]] std::vector<TokenRun> find_runs(std::span<const Token> now) const;

 private:
  struct Found {
    std::int32_t place = 0;
    std::int32_t n_tokens = 0;  // 0: none
  };
  [[nodiscard]] Found find(std::uint64_t hash, std::span<const Token> rest, std::int32_t wanted) const;
  [[nodiscard]] bool may_have(std::uint64_t hash) const;

  std::span<const Token> text_;
  std::int32_t n_;
  // A bit for each number that a hash's upper bits can be, set where a run's are: most runs that stand nowhere in the
  // text are told by it, which costs a tenth of looking for them.
  std::vector<bool> known_;
  std::int32_t known_shift_ = 0;
  std::vector<std::pair<std::uint64_t, std::int32_t>> places_;  // by the hash of the run that begins there
};

// RunIndex::find_runs() for one text only.
[[nodiscard]] std::vector<TokenRun> find_runs(std::span<const Token> before, std::span<const Token> now,
                                              std::int32_t n_least);

}  // namespace ebb
