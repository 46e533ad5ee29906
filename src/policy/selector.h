// Selector: chooses which cold blocks of a session come back, from evidence.
//
// Pure: it sees words in common, meanings in common and shares of attention, never text, tensors or blocks' bytes, and moves nothing.
// What it looks at that it does not choose is told as well, so that a person can see why a block did not come. A list of selectors
// is what a person names: "fused" (the default), "lexical", "lexical+digest:least=0.5", "none". Each chooses by itself, in the order of
// the list, and what an earlier one chose the later ones need not.
//
//   identity        blocks that the caller names                                                            (select_named.cc)
//   lexical         rare words in common with a cue                                                         (select_lexical.cc)
//   embedding       a sentence that means what a cue means, by an embedding model                           (select_embedding.cc)
//   digest          the share that the prompt's last queries would give a block, by 2-bit sketches of keys  (select_digest.cc)
//   arkvale, quest  the same by a bound over the block's keys: their cuboid-mean, their box
//   representative  InfLLM's: the mean query times the mean of a block's few representative keys, by layer
//   evoke           EVOKE's: the four that are likest what was said, of those that are liker than all that is hot (select_evoke.cc)
//
// Thread rule: values and pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "policy/parameters.h"
#include "policy/select.h"

namespace ebb {

// What keys are scored by that left (model/key_scorer.h).
enum class DigestForm : std::uint8_t { kSketch, kCuboid, kBox, kRepresentative };

// What a selector wants to know; nothing else is found out for it.
struct SelectorAsk {
  bool names = false;
  bool words = false;
  // Then it can choose only behind the queries that ask, which are computed by then.
  bool queries = false;
  // And again by those of the reply, while it is written: that takes so much beside what writing takes; 0: not.
  double writing = 0.0;
  // Words of the reply as well, when it has said one that is rare.
  bool reply_words = false;
  DigestForm form = DigestForm::kSketch;
  bool meanings = false;
  // Milliseconds that it waits for those of blocks that are not there yet.
  double most_wait_ms = 0.0;

  friend bool operator==(const SelectorAsk&, const SelectorAsk&) = default;
};

// The score of the head that looks at the block most (model/key_scorer.h), and of each: 0 where the block is hot in it, and others lack it.
struct BlockShare {
  BlockIndex block;
  double share = 0.0;
  // [layer * n_kv_heads + KV head]; none: they were not told apart.
  std::vector<float> by_head = {};
};

// How much a block is like a cue: the greatest cosine of one of its sentences and the cue, of those whose vectors are there.
struct BlockLikeness {
  BlockIndex block;
  double cosine = 0.0;
};
struct CueLikeness {
  double weight = 1.0;
  std::vector<BlockLikeness> blocks;  // in any order
};

struct RecallEvidence {
  // [block]: the share of its heads in which it is not hot; 0: hot. Of all full blocks of the session.
  std::span<const double> missing;
  // Each where it was asked for.
  std::span<const BlockIndex> named;
  std::span<const CueRanking> words;
  std::span<const BlockShare> shares;
  std::span<const CueLikeness> meanings;
  // That much may come back, in whole blocks.
  std::int32_t max_blocks = 0;
  // Blocks behind one that may hold what its words speak of, beside the one before it.
  std::int32_t reach = 1;
};

enum class Verdict : std::uint8_t {
  kAsks,    // what is asked stands in it: it comes or stays before all others
  kRecall,  // cold, and is to come
  kKeep,    // hot, and is to stay
  kWeak,    // its score is too low, by itself or beside the best
  kBeyond,  // as good, but more than the most
};
[[nodiscard]] std::string_view verdict_name(Verdict verdict);

struct Considered {
  BlockIndex block;
  // In the selector's own unit: BM25's of words, a share of attention of digests, a cosine times the cue's weight of
  // embeddings, 1 of names.
  double score = 0.0;
  Verdict verdict = Verdict::kWeak;
  // Of what is to come: in these heads; none: in all.
  std::vector<std::int32_t> heads = {};
};

class Selector {
 public:
  virtual ~Selector() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual SelectorAsk asks() const = 0;
  // What it chose, best first, then what it did not, best first; at most max_blocks and what is worth telling beyond.
  [[nodiscard]] virtual std::vector<Considered> select(const RecallEvidence& evidence) const = 0;
};

struct SelectorKind {
  std::string_view name;
  std::span<const Parameter> parameters;
  std::string_view summary;
  std::unique_ptr<const Selector> (*make)(const ParameterValues& values);
};

// All there are, for help.
[[nodiscard]] std::span<const SelectorKind> selector_kinds();

class SelectorList {
 public:
  // None.
  SelectorList() = default;
  // "none", "fused", or NAME or NAME:parameters, several joined by '+'; each once. kNotFound names what there is.
  static Result<SelectorList> parse(std::string_view text);
  // "fused"; where an embedding model is there, by meanings too.
  [[nodiscard]] static SelectorList fused(bool has_meanings = false);

  // As parse() takes it.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool is_fused() const { return text_ == "fused"; }
  [[nodiscard]] std::span<const std::shared_ptr<const Selector>> all() const { return selectors_; }
  [[nodiscard]] bool asks_queries() const;
  // SelectorAsk's, the most of all.
  [[nodiscard]] double writing_share() const;
  [[nodiscard]] bool asks_reply_words() const;
  [[nodiscard]] bool asks_meanings() const;
  // SelectorAsk's, the most of all.
  [[nodiscard]] double most_wait_ms() const;

 private:
  std::string text_ = "none";
  std::vector<std::shared_ptr<const Selector>> selectors_;
};

inline constexpr std::string_view kIdentity = "identity";
inline constexpr std::string_view kEmbedding = "embedding";

// At most so many blocks are told that were not chosen.
inline constexpr std::size_t kMostTold = 16;

// The kinds' makers and parameters, for the registry.
extern const std::span<const Parameter> kDigestParameters;
extern const std::span<const Parameter> kLexicalParameters;
extern const std::span<const Parameter> kEvokeParameters;
extern const std::span<const Parameter> kEmbeddingParameters;
[[nodiscard]] std::unique_ptr<const Selector> make_identity(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<const Selector> make_lexical(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<const Selector> make_embedding(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<const Selector> make_digest(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<const Selector> make_arkvale(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<const Selector> make_quest(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<const Selector> make_representative(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<const Selector> make_evoke(const ParameterValues& values);

}  // namespace ebb
