// Attention over block tables: softmax(scale * Q K^T) V of a batch of several sessions, and the writing of K and V.
//
// It sees tensors, block tables and frames; it does not know policies, sessions or names. It reads hot tokens in
// position order whatever frames they lie in (law 3), so that evict + recall at the original position gives bitwise the
// same result.
//
// What is promised about bits, on the CPU: the output of one query depends only on its own vector, its position, the
// window and the K/V it sees with their block boundaries. Thread count, frame indices, the cut of a prompt into chunks
// and the company in a batch change nothing, and neither does the instruction set chosen at run time:
//   score    s = (scale * log2 e) * (q . k)        fma over dimensions 0, 1, 2, ...
//   block    m' = max(m, max s);  a = 2^(m - m');  p = 2^(s - m');  l = l * a + sum p;  O = O * a + sum p v
//            sum p: 16 sums over slots j, j+16, ..., then a fixed tree; p v: fma onto O * a over slots 0, 1, ...
//   split  blocks in position order, from m = -inf, l = 0, O = 0 (cache/block_table.h)
//   result   splits merged in order: m' = max(m, m_s);  l = l * 2^(m - m') + l_s * 2^(m_s - m');  O likewise;
//            then O * (1 / l)
// In frames that seal (cache/frame_layout.h) a query sees the block that holds its own position as f16, and every
// earlier one sealed: that too depends on positions alone. A step that fills a block has it in both forms; the f16 rows
// of blocks that begin and end within the step lie in the scratch memory, one layer at a time.
//
// A block or split of which the query sees nothing leaves m, l and O untouched; a query that sees nothing at all gets
// zeros. 2^x is a polynomial of ours, exactly 1 at 0. K and V that a query does not see are not used for it, not even
// times zero, so that what lies in unwritten slots does not matter.
//
// Sequences of one row each whose tables begin in the same frames attend as a cohort (attention_cohorts.h): what they
// have in common is read once for all of them, up to the first block that one of them does not see wholly. In a window
// that hides the beginning of it they therefore share nothing, and sequences of several rows never do.
//
// Thread rule: an AttentionStep is filled by one thread, then read by all threads of the op.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "cache/block_table.h"
#include "cache/frame_layout.h"
#include "cache/sight.h"
#include "model/attention_cohorts.h"

namespace ebb {

class QueryMoments;
class TailQueries;
class SliceMass;
class StepReliances;
class SquareChoice;

// Consecutive rows of the batch that belong to one session and hold consecutive positions.
struct SequenceRows {
  std::int32_t row_begin = 0;
  std::int32_t n_rows = 0;
  Position first;
  // The last rows whose logits are wanted.
  std::int32_t n_outputs = 0;
  // The last rows whose attention mass is wanted (model/step_mass.h).
  std::int32_t n_mass_rows = 0;
  // The last of these, of which sums and maxima are wanted apart.
  std::int32_t n_window_rows = 0;
  // What the rows' queries are added to (model/query_moments.h); null where nobody asks.
  QueryMoments* queries = nullptr;
  // What the last of them are copied to (model/tail_queries.h); null where nobody asks.
  TailQueries* tail_queries = nullptr;
  // Into how many slices each block is cut whose mass is wanted too (model/slice_mass.h); divides the block size. 0: none.
  std::int32_t n_slices = 0;
  // What all rows rely on is added to these (model/step_reliances.h); null where nobody asks.
  StepReliances* reliances = nullptr;
  // What the rows leave out of their tables; of what is hidden, the tables have no entries.
  Sight sight;

  [[nodiscard]] bool asks_slices() const { return n_slices > 0 && n_mass_rows > 0; }
  [[nodiscard]] bool asks_queries() const { return queries != nullptr || tail_queries != nullptr; }
};

// One step of the model: which rows belong to whom, and what each sees. Filled anew for each step; kept at a fixed
// address, because graphs are reused and point at it.
struct AttentionStep {
  std::int32_t n_layers = 0;
  std::int32_t n_kv_heads = 0;
  std::vector<SequenceRows> sequences;
  // [sequence][layer][kv head]; each already holds the entries of the rows of this step.
  std::vector<BlockTable> tables;
  // First byte of frame 0; frame f lies at frames + f * layout.frame_bytes().
  std::byte* frames = nullptr;
  // First byte of open frame 0, the others behind it likewise; null for layouts that do not seal.
  std::byte* open_frames = nullptr;
  // For AttentionTensors::mass; >= the longest table. 0 when nobody asks for mass or for what rows rely on.
  std::int32_t mass_stride = 0;

  [[nodiscard]] BlockTable table(std::size_t sequence, LayerIndex layer, HeadIndex head) const {
    return tables[(sequence * static_cast<std::size_t>(n_layers) + layer.index()) *
                      static_cast<std::size_t>(n_kv_heads) +
                  head.index()];
  }
  [[nodiscard]] bool asks_slices() const {
    return mass_stride > 0 &&
           std::ranges::any_of(sequences, [](const SequenceRows& rows) { return rows.asks_slices(); });
  }
  [[nodiscard]] bool asks_reliances() const {
    return std::ranges::any_of(sequences, [](const SequenceRows& rows) { return rows.reliances != nullptr; });
  }
  // Whether anybody asks what rows gave single slots.
  [[nodiscard]] bool asks_slots() const { return asks_slices() || asks_reliances(); }
};

// What differs between layers and stays the same from step to step.
struct AttentionShape {
  FrameLayout layout;  // KeyOrder::kByDim
  std::int32_t n_heads = 0;
  std::int32_t n_kv_heads = 0;
  float scale = 1.0F;
  // A query at position p sees positions in (p - window, p]; 0 means no window.
  std::int32_t window = 0;
};

// The tensors of one layer in one step, f32, contiguous within a head; strides in floats.
struct AttentionTensors {
  const float* q = nullptr;  // [row][head][head_dim_k]
  std::size_t q_row_stride = 0, q_head_stride = 0;
  const float* k = nullptr;  // [row][kv head][head_dim_k], already rotated
  std::size_t k_row_stride = 0, k_head_stride = 0;
  const float* v = nullptr;  // [row][kv head][head_dim_v]
  std::size_t v_row_stride = 0, v_head_stride = 0;
  float* out = nullptr;  // [row][head][head_dim_v]
  std::size_t out_row_stride = 0, out_head_stride = 0;
  // Null unless a policy asks: attention mass, [row][kv head][AttentionStep::mass_stride], at [e] that of entry e of
  // the row's block table: the sum over the query heads of the group of their probabilities of its tokens, so that a
  // row's entries add up to the number of heads in the group. 0 for what the row does not see; past the table, and for
  // rows that do not ask, nothing is written. In float: sum over heads of
  // (sum p * 2^(m of the block - final m)) * (1 / final l).
  float* mass = nullptr;
  // Where the slices' mass goes, of sequences that ask; needs `mass`.
  SliceMass* slices = nullptr;
  // Behind the last layer nothing reads the rows that ask neither for logits nor for mass: with it, what they give may be
  // left as it is in `out`.
  bool last_layer = false;
  // What blocks of rows look at (model/square_choice.h), chosen for this layer; null: at everything.
  const SquareChoice* squares = nullptr;
};

// Scratch memory and work counters of attention: allocated by their owner before the step, because an op inside a
// graph gets none. One layer at a time uses it, which a graph guarantees.
class AttentionScratch {
 public:
  // Makes room for every layer of the step with `n_threads` threads, and never shrinks; finds the step's cohorts. Call
  // it when the step is filled, once per shape, before write_kv(). Bytes are bounded by n_threads * O(tile) + 16 MB;
  // mass adds 8 bytes per query head and table entry of the tiles at work, and a layout that seals the f16 rows of the
  // step in one layer.
  void reserve(const AttentionShape& shape, const AttentionStep& step, std::int32_t n_threads);
  [[nodiscard]] std::size_t bytes() const;

  // Memory was short for one of a step's threads: what the step computes is nothing. An op of a graph must not throw,
  // since other threads wait for it at the graph's barriers. From any thread.
  void note_short() { is_short_.store(true, std::memory_order_relaxed); }
  // Whether it was since the last call; begins anew. Between steps.
  [[nodiscard]] bool take_short();

 private:
  friend struct AttentionWork;
  friend class BlockForms;
  Cohorts cohorts_;  // of the step
  // One item of work at a time is taken from here (attention_plan.h).
  std::atomic<std::int32_t> next_item_{0};
  // Finished splits of each tile; whoever completes a tile sets it back to 0.
  std::vector<std::int32_t> arrivals_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> step_rows_;  // attention_forms.h
  std::atomic<bool> is_short_{false};
};

// Writes the K and V rows of the step into their frames (quantising as ggml does), or into open rows, and then seals
// what is full. Call from threads ith = 0..n_threads-1 of one op; all must have returned before attend() of the same
// layer starts. Also resets the scratch's work counter.
void write_kv(const AttentionShape& shape, const AttentionStep& step, LayerIndex layer, const AttentionTensors& tensors,
              AttentionScratch& scratch, std::int32_t ith, std::int32_t n_threads);

// Computes `out` (and `mass`) of the layer; what a row does not look at gives it nothing and has none of its mass. Call from threads ith = 0..n_threads-1 of one op, after write_kv().
void attend(const AttentionShape& shape, const AttentionStep& step, LayerIndex layer, const AttentionTensors& tensors,
            AttentionScratch& scratch, std::int32_t ith, std::int32_t n_threads);

// Instruction set of the kernels: chosen once from the processor, or forced for tests (which refuses what is missing).
enum class KernelSet : std::uint8_t { kPortable, kAvx2, kAvx512 };
[[nodiscard]] const char* kernel_set_name(KernelSet set);
[[nodiscard]] KernelSet best_kernel_set();
[[nodiscard]] KernelSet current_kernel_set();
[[nodiscard]] bool try_set_kernel_set(KernelSet set);

}  // namespace ebb
