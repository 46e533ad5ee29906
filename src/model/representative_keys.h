// Representative keys: InfLLM's score of a block (arXiv 2402.04617), by what a digest keeps of its keys.
//
//   query             the mean over the rows, turned to stand kDistance behind the block's begin, whichever block: InfLLM's one distance
//   representatives   of a block and KV head: the kRepresentatives keys of its sketch with the largest logits for the group's queries together
//   score             of a block and layer: query times the mean of the representatives, on average over the layer's query heads;
//                     told as its part of the softmax over blocks, the same for every KV head: a layer chooses as one
//
// InfLLM takes for representatives the keys that the queries right behind them looked at most, and keeps whole keys; here the queries
// that ask choose, from 2 bits a channel. The first is kinder to it.
//
// It knows no session. Thread rule: pure functions.
#pragma once

#include <span>
#include <vector>

#include "model/key_scorer.h"

namespace ebb {

// InfLLM's repr_topk, and the far end of the window that it turns queries to: of the models here, a block's length or so behind.
inline constexpr std::size_t kRepresentatives = 4;
inline constexpr std::int32_t kRepresentativeDistance = 128;

// [block][layer * n_kv_heads + KV head], as KeyScorer::score; 0 of layers that slide.
[[nodiscard]] std::vector<float> score_representatives(const QuerySetup& setup, const TailQueries& queries, Span rows,
                                                       std::span<const KeyScorer::Block> blocks,
                                                       const KeyDigestLayout& layout);

}  // namespace ebb
