// KeyScorer: which share of their attention queries would give each block, were all of them hot: what recall by digests goes by.
//
//   logit   q k / scale, of keys as a digest has them (model/key_digest.h): the sketch's, each by itself; or one for the block, its
//           bound over ArkVale's cuboid-mean or Quest's box, sum over channels of max(q lo, q hi)
//   share   of a block, for a row and query head: its part of the softmax over all keys of all blocks that were given
//   often   of a query head: the mean over rows of the largest share that a cold block has
//   score   of a block and KV head: the largest share that any row gives it that counts, times 1 - often, in any query head of the group
//
// The largest and not the sum: a question's subject is looked up by a few rows in a few heads, which give one block nearly all;
// the others spread what they have over everything. Measured on the bundled model, 40 facts among 39 blocks: the block that tells the
// fact is first by the largest share in 97 of 100 with exact keys, 90 with sketches, 20 with cuboids, 15 with boxes; by summed
// shares in 33 with exact keys. And a head that looks at cold blocks whatever is said, tells little by doing so: of 64 rows that end with a
// question, shares of 0.6 find the fact in 92 of 100 and 2.4 other blocks, these scores find it in 92 and 0.3 others.
//
// Where blocks are many, all are bounded by cuboids first and the best of each head are scored by their keys: kMostSketched, and of a large
// model as many as kMostProducts let, so that a look costs no more than some tokens of a prompt.
// Cost: n_rows * query heads * n_dims * (2 blocks + sketched keys) products of bytes (model/head_score.h), heads by several threads.
//
// It is of one model and keeps nothing of it; it knows no session. Thread rule: all const functions may run at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/key_digest.h"
#include "model/query_setup.h"
#include "model/tail_queries.h"

namespace ebb {

class Model;

enum class KeyEstimate : std::uint8_t { kSketch, kCuboid, kBox, kRepresentative };

// What one look may take: products of all heads together. 10 ms on two threads of a Zen 4 server with VNNI; of a large model as many as
// a dozen of its tokens take, which are less than what a look is for. Where blocks are many, fewer of them are scored by their sketches, and of
// the queries the last ones alone are asked.
inline constexpr double kMostProducts = 1.25e9;
inline constexpr double kMostLookTokens = 12.0;
// Blocks of a head that are scored by their sketches. Fewer: what cuboids rank low is not found (of 39 blocks they rank the fact's
// among the first 16 in 81 of 100).
inline constexpr std::size_t kMostSketched = 512;
inline constexpr std::size_t kLeastSketched = 32;
// Queries that are asked, whatever that takes, while blocks can be fewer; and whatever it takes.
inline constexpr std::int32_t kFewQueries = 24;
inline constexpr std::int32_t kLeastQueries = 8;

class KeyBounds;

class KeyScorer {
 public:
  // A token takes so many products beside what every token takes.
  explicit KeyScorer(QuerySetup setup, double n_weights = 0.0) : setup_(std::move(setup)), n_weights_(n_weights) {}
  KeyScorer(const Model& model, std::int32_t n_threads);

  // For the last n_rows queries of a sequence of this model.
  [[nodiscard]] TailQueries make_queries(std::int32_t n_rows) const { return {setup_.shape, n_rows}; }

  struct Block {
    // [layer][KV head][KeyDigestLayout::bytes()]
    std::span<const std::byte> digests;
    // Another one for other bytes; KeyBounds goes by it.
    std::uint64_t digest_id = 0;
    // Of its begin, when the digest was made; kRepresentative alone goes by it (model/representative_keys.h).
    Position anchor{0};
    // By how many anchors its keys have been turned since. Where blocks have more than 8 such numbers the nearest multiple of a power of two, which
    // makes them 8 at most, stands for each (but for kRepresentative): a look takes the queries anew for each of them.
    std::int32_t n_turned = 0;
    // And not the session's first, which heads look at when they look for nothing.
    bool is_cold = false;
    // Of `rows`, those before this one are not counted: right behind a block, heads look at it for what goes on there.
    std::int32_t first_row = 0;
  };
  // [block][layer * n_kv_heads + KV head]: 0 of layers that slide, and of what was not among the best by its cuboid. `kept`: what was kept
  // of earlier looks at blocks of this session; null: nothing is.
  [[nodiscard]] std::vector<float> score(const TailQueries& queries, Span rows, std::span<const Block> blocks,
                                         const KeyDigestLayout& layout, KeyEstimate estimate,
                                         KeyBounds* kept = nullptr) const;
  // Whether a look by sketches at so many blocks goes by their bounds first.
  [[nodiscard]] bool needs_bounds(std::int32_t n_rows, std::size_t n_blocks, const KeyDigestLayout& layout) const {
    return extent(n_rows, n_blocks, layout).n_sketched < n_blocks;
  }
  // How many tokens of the model are computed one by one in the time of so many products, about.
  [[nodiscard]] double in_tokens(double n_products) const;
  // And in the time that scoring by sketches takes.
  [[nodiscard]] double cost_in_tokens(std::int32_t n_rows, std::size_t n_blocks, const KeyDigestLayout& layout) const;

 private:
  // How much of what is asked for a look has the time for.
  struct Extent {
    std::int32_t n_rows = 0;
    std::size_t n_sketched = 0;
  };
  [[nodiscard]] Extent extent(std::int32_t n_rows, std::size_t n_blocks, const KeyDigestLayout& layout) const;
  // Of a query row with all bounds, and with the sketches of so many.
  [[nodiscard]] double n_products(std::size_t n_blocks, std::size_t n_sketched, const KeyDigestLayout& layout) const;

  QuerySetup setup_;
  double n_weights_;
};

// Of layer * n_kv_heads + KV head.
inline std::span<const std::byte> digest_of(const KeyScorer::Block& block, const KeyDigestLayout& layout,
                                            std::size_t head) {
  return block.digests.subspan(head * layout.bytes(), layout.bytes());
}

}  // namespace ebb
