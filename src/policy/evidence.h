// Evidence: the numbers that policies may look at. Never tensors, never text.
//
// A snapshot of one session's hot blocks, taken before a choice; choosing changes nothing.
//
//   blocks   what is known of a block as a whole: its place, who said it, how firmly it is held
//   scopes   what is known of the blocks in those heads that choose together: all of the session, a layer's, or one head
//
// Columns of a scope stand beside its rows; one that the policy did not ask for is empty (policy/policy.h, Ask).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/span.h"

namespace ebb {

// Who said it.
enum class Source : std::uint8_t { kSystem, kUser, kAssistant, kTool };

// How firmly a block is held.
enum class Hold : std::uint8_t {
  kNone,
  kProtected,  // a sink, recent, the system's, or of the reply under way: leaves only when nothing else can
  kKept,       // asked for by the turn under way: leaves last
  kPinned,     // by the caller, or still written to: never leaves
};

// Which heads choose together, that is, have one order of leaving.
enum class Scope : std::uint8_t { kSession, kLayer, kHead };

struct BlockEvidence {
  BlockIndex block;
  Span span;
  Hold hold = Hold::kNone;
  Source source = Source::kUser;
  // Given by the caller; 1 is normal, more stays longer.
  double priority = 1.0;
  // The session's step in which the block was last written, recalled or notably looked at by attention.
  std::int64_t last_access = 0;
  // What attention gives it lately: share of the mass, decayed from step to step; none where nobody measures it.
  std::optional<double> attention;
  // Cosine, 0..1, of its words and what the session's last messages are about; none where there are no words.
  std::optional<double> focus;
  // 1 when it was recalled, fading with each turn.
  double recovery = 0.0;
};

// A block as the heads of one scope have it.
struct ScopeRow {
  // Into Evidence::blocks.
  std::int32_t block = 0;
  // That come free when it leaves these heads.
  std::int32_t n_frames = 1;
};

// Of the tokens of each row, by channel: [row][n_dims].
struct ChannelColumns {
  std::size_t n_dims = 0;
  std::vector<float> least;
  std::vector<float> greatest;
  std::vector<float> mean;

  [[nodiscard]] std::span<const float> of(const std::vector<float>& column, std::size_t row) const {
    return std::span(column).subspan(row * n_dims, n_dims);
  }
};

// Attention mass of the rows' slices, each of n_tokens tokens: [row][n_slices]. Columns as ScopeEvidence has them for rows.
// A slice that begins behind its block's last token says nothing.
struct SliceColumns {
  std::int32_t n_tokens = 0;
  std::size_t n_slices = 0;  // of a full block; 0: none are told apart
  std::vector<double> total;
  std::vector<double> n_queries;
  std::vector<double> window_mean;
  std::vector<double> window_max;
  std::vector<double> last;

  [[nodiscard]] std::span<const double> of(const std::vector<double>& column, std::size_t row) const {
    return std::span(column).subspan(row * n_slices, n_slices);
  }
  // How many slices of a block have tokens.
  [[nodiscard]] std::size_t n_begun(Span block) const {
    return static_cast<std::size_t>((block.n_tokens() + n_tokens - 1) / n_tokens);
  }
};

struct ScopeEvidence {
  // The session: 0. A layer: its index. A head: layer * n_kv_heads + KV head.
  std::int32_t index = 0;
  // In position order.
  std::vector<ScopeRow> rows;
  // Attention mass, summed over the query heads of the scope. Since the block was first looked at:
  std::vector<double> total;
  // by so many queries,
  std::vector<double> n_queries;
  // by the last queries that were asked for: their mean and their largest,
  std::vector<double> window_mean;
  std::vector<double> window_max;
  // and by the very last one.
  std::vector<double> last;
  // The same by slice.
  SliceColumns slices;
  // The most that one query gave it when what the session had been told was read again.
  std::vector<double> reread;
  // From what the frames of full blocks hold. Rows whose frames were not read have zeros: blocks that are written to, or computed
  // again.
  std::vector<bool> is_read;
  // The mean length of a block's keys, over the heads of the scope;
  std::vector<double> key_norm;
  // the mean of its keys, each divided by its length, [row][n_key_dims]: of one head of the scope behind the other, [row][n_key_heads]
  // [n_key_dims / n_key_heads], with zeros where the block is not hot in a head.
  std::vector<float> key_direction;
  std::size_t n_key_dims = 0;
  std::size_t n_key_heads = 1;
  // Of scopes of one head: by channel, a block's keys and values;
  ChannelColumns keys;
  ChannelColumns values;
  // and the mean length of its values behind the output matrix of their layer, |v W_O|.
  std::vector<double> output_length;
  // Of full blocks in scopes of one head, means over a block's tokens: what each query to come is expected to give a token,
  std::vector<double> expected;
  // that times the length of the token's value,
  std::vector<double> expected_value;
  // and that length alone. The first tokens, where attention rests, are no part of any.
  std::vector<double> value_length;
};

struct Evidence {
  // In position order; hot in any head.
  std::vector<BlockEvidence> blocks;
  std::vector<ScopeEvidence> scopes;
  std::int32_t n_layers = 1;
  // That the session has, with or without rows: 1, n_layers or n_layers * n_kv_heads.
  std::int32_t n_scopes = 1;
  // For which room is made: the same number in every head, as far as is known.
  std::int32_t n_new_frames = 0;
  // Tokens of a full block: the grain in which is chosen.
  std::int32_t grain = 64;
  // Where the next token goes.
  Position end;

  [[nodiscard]] const BlockEvidence& block(const ScopeRow& row) const {
    return blocks[static_cast<std::size_t>(row.block)];
  }
};

}  // namespace ebb
