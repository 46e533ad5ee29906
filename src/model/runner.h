// Runner: computes steps of a model over frames.
//
// A step takes new tokens of one or several sessions, writes their K and V into the frames that their tables already
// hold for them, attends to everything hot there, and gives logits. It does not know sessions, policies or names, and
// it never changes a table. Graphs are kept and reused while the shape of a step stays the same.
//
// Thread rule: one thread at a time; the backend's own threads do the work.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/span.h"
#include "base/status.h"
#include "cache/frame_memory.h"
#include "cache/frame_tables.h"
#include "cache/sight.h"
#include "device/backend.h"
#include "model/model.h"
#include "model/step_mass.h"
#include "model/step_reliances.h"

namespace ebb {

struct SequenceInput {
  // Consecutive tokens, at `first`, first + 1, ...; the tables hold their entries already. At least one.
  std::span<const Token> tokens;
  Position first;
  // Anchor of the first token; the others follow one by one. Not given: its position. Queries and keys are rotated for
  // their anchors; order, causality, windows and splits go by positions. What the model takes for the distance of two
  // tokens is the difference of their anchors.
  std::optional<Position> anchor = std::nullopt;
  // The sequence's block tables; they must not change until the step is over.
  const FrameTables* tables = nullptr;
  // What the tokens leave out. All hide the same: blocks that lie wholly inside are as if they were not there, and no other reaches
  // into it. Blocks of squares are those that all of which is in this step; not where attention is composed.
  Sight sight;
  // Logits are given for the last n_outputs tokens; 0 where only K and V are wanted.
  std::int32_t n_outputs = 1;
  // Attention mass is given for the last n_mass_rows tokens together; 0 where no policy asks. A step in which nobody
  // asks is computed as if there were no such thing. On the CPU's own kernels asking changes no bit of logits, K or V,
  // and takes n_kv_heads floats of memory for each row of the step and hot block. Where attention is composed it takes
  // n_heads floats for each row and hot token, and what a window hides is read too: ask in short steps.
  std::int32_t n_mass_rows = 0;
  // The last of those, which are told apart (model/step_mass.h).
  std::int32_t n_window_rows = 0;
  // The queries of all tokens are added to these, of the sequence and of nobody else; null where no policy asks, and then nothing
  // is done. Asking changes no bit of logits, K or V on the CPU's own kernels; where attention is composed it takes
  // n_layers * n_heads * head_dim_k floats for each row of the step, which are read back. Of a step that ends with an error some
  // layers may have been added.
  QueryMoments* queries = nullptr;
  // The last of them are copied to these, which are of the sequence and of nobody else; null where nobody asks. As with `queries`.
  TailQueries* tail_queries = nullptr;
  // Into how many slices each block is cut whose mass is wanted too; divides the block size. 0: none. On the CPU's own
  // kernels it takes 32 bytes for each slice and KV head of one layer, 16 of the others, and changes no other bit.
  std::int32_t n_slices = 0;
  // What the tokens rely on is added to these, of the sequence and of nobody else; null where nobody asks. Not where attention is
  // composed. Changes no bit of what is computed; of a step that ends with an error some may have been added.
  StepReliances* reliances = nullptr;
};

struct RunnerOptions {
  // The most rows of one step. More rows: better matrix products, more memory for activations.
  std::int32_t max_rows = 512;
};

class Runner {
 public:
  // The frame layout of a model: as our kernels read it on the CPU, as rows elsewhere. `composed` asks for rows and
  // ggml's operations on the CPU too, for tests.
  static FrameLayout layout_for(const Model& model, const Backend& backend, RowType type, std::int32_t block_size,
                                bool composed = false);

  // All three must outlive the runner; memory.layout() must be one of layout_for()'s.
  static Result<std::unique_ptr<Runner>> create(const Model& model, Backend& backend, FrameMemory& memory,
                                                const RunnerOptions& options);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Computes one step. kInvalidArgument for token ids outside the vocabulary or too many rows; kCancelled after
  // Backend::request_cancel(): the frames of the step's tokens are then undefined and must be forgotten.
  Status run(std::span<const SequenceInput> inputs);

  [[nodiscard]] std::int32_t max_rows() const;
  // Whether attention is composed of ggml's operations, which give of mass no more than sums over rows.
  [[nodiscard]] bool is_composed() const;
  // Rows of logits of the last run, in the order of inputs and tokens; valid until the next run.
  [[nodiscard]] std::int32_t n_outputs() const;
  // [n_vocab]
  [[nodiscard]] std::span<const float> logits(std::int32_t output) const;

  // Attention mass of the last run, for input `input` of it, if that asked for n_mass_rows > 0; valid until the next
  // run or a change of its tables. A head's entry has, for each row, the sum over the query heads of the group of their
  // probabilities of the entry's tokens: the sums of all entries add up to n_mass_rows * n_heads / n_kv_heads. Hidden
  // blocks have no entry. Bits do not depend on the number of threads.
  [[nodiscard]] std::optional<SequenceMass> mass(std::int32_t input) const;
  // Bytes of activations and scratch memory, weights and frames aside.
  [[nodiscard]] std::size_t compute_bytes() const;

 private:
  struct State;
  explicit Runner(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ebb
