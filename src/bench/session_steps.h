// What benches do with sessions: given tokens in place of sampled ones, so that every arm computes the same.
//
// It drives turns and the runner as the engine does, without samplers and text. Thread rule: the engine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "engine/engine.h"
#include "session/turn.h"

namespace ebb {

// Far above what one run saves: the RAM tier must drop nothing that is measured.
inline constexpr std::size_t kAmpleRamBytes = std::size_t{64} << 30;

// Blocks that so many tokens begin.
[[nodiscard]] constexpr std::int32_t whole_blocks(std::int32_t n_tokens, std::int32_t block_size) {
  return (n_tokens + block_size - 1) / block_size;
}

// Any tokens of the vocabulary; the same seed, the same tokens.
[[nodiscard]] std::vector<Token> make_random_tokens(std::int32_t n_vocab, std::int32_t n, std::uint32_t seed);

// A turn whose prompt they are; nothing is generated.
Status compute_tokens(Engine& engine, Session& session, std::span<const Token> tokens);
// A turn that decodes them one by one, as if each had been sampled from the logits before it. `look`, where given, is
// called with the logits behind each token. Milliseconds, `look` included.
using LogitsLook = std::function<void(std::size_t i, std::span<const float> logits)>;
Result<double> decode_tokens(Engine& engine, Session& session, std::span<const Token> tokens,
                             const LogitsLook& look = nullptr);
// Decodes the tokens of several sessions together: step i computes the i-th token of all, tokens[session][i]. The
// logits of a step are in the order of the sessions. Milliseconds.
Result<double> decode_together(Engine& engine, std::span<Session* const> sessions,
                               std::span<const std::vector<Token>> tokens);
// Decodes `first` and then always the likeliest token; gives the n tokens that come behind `first`. What ends a reply
// ends nothing here. `look`: as above, the i-th token generated being the likeliest of the i-th logits.
Result<std::vector<Token>> decode_greedily(Engine& engine, Session& session, Token first, std::int32_t n,
                                           const LogitsLook& look = nullptr);
// A turn that evicts these and does nothing else.
void evict_blocks(Session& session, std::span<const BlockIndex> blocks);
// A turn that has these back, by a forward pass where nothing but their tokens remains, and nothing else.
Result<Acts> recall_blocks(Engine& engine, Session& session, std::span<const BlockIndex> blocks);
// The session forgets what lies at `end` and behind.
void cut_session(Session& session, Position end);

}  // namespace ebb
