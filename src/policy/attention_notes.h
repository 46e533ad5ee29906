// AttentionNotes: what attention gave the blocks of one sequence, by head, as a policy asked for it.
//
// Each step gives, for the queries that are observed, every block's mass in every head where it is hot. What a policy wants
// of it is kept and no more:
//
//   totals   [head][block]   mass since the block was first looked at, and by how many queries; where a step's mass is pooled
//                            (Ask::pool_ahead), a layer's stand in its first head
//   window   [step][head]    the last observed steps whose queries together are as many as the window
//   reread   [head][block]   the most that one query gave the block when the session was read again
//
//   slices   [head][block][slice] totals, [step][head][block][slice] window, where a policy asks for slices
//
// Notes outlive residency: a block that leaves and comes back has what it had. They cost 16 bytes a block and head for
// totals, 4 for what is read again, and 12 for each step of the window, beside K and V of 2 * head_dim * block_size values. Slices
// cost 12 bytes a slice and head for totals, and for each step of the window 4 where it is of one query, else 4 to 12: with a
// window of 32 queries, of slices of one token, 128 bytes a token and head once 32 were decoded. A step costs O(hot blocks or
// slices of all heads), and nothing where nobody asks.
//
// It knows no model and no session. Thread rule: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/span.h"
#include "base/status.h"
#include "policy/policy.h"

namespace ebb {

// Of one block in one head.
struct NotedMass {
  double total = 0.0;
  double n_queries = 0.0;
  double window_sum = 0.0;
  double window_max = 0.0;
  double last = 0.0;
  // 0: it came since.
  double reread = 0.0;
  // By how many queries of the window; 0: it came since.
  std::int32_t n_in_window = 0;
};

// All notes as they are written down: those of a session at rest.
struct AttentionImage {
  struct Entry {
    std::int32_t head = 0;
    std::int32_t block = 0;
    float total = 0.0F;
    float n_queries = 0.0F;
    float window_sum = 0.0F;
    float window_max = 0.0F;
    float last = 0.0F;
    float reread = 0.0F;
    std::int32_t n_in_window = 0;
  };
  // By rising head, then block.
  std::vector<Entry> entries;
  // Totals are those of layers, pooled step by step, and stand in first heads (Ask::pool_ahead).
  bool is_pooled = false;

  // The same by slice, [entry][n_slices] each; columns that nobody asked for are empty.
  struct Slices {
    std::int32_t n_slices = 0;
    // Of the positions that the window's steps were told of: slices from there on came since.
    std::int32_t end = 0;
    std::vector<float> total;
    std::vector<float> n_queries;
    std::vector<float> window_sum;
    std::vector<float> window_max;
    std::vector<float> last;
  };
  Slices slices;
  [[nodiscard]] static constexpr auto columns() {
    return std::array{&Slices::total, &Slices::n_queries, &Slices::window_sum, &Slices::window_max, &Slices::last};
  }
};

// A block's share of the attention of all hot blocks, as followed from step to step.
[[nodiscard]] double follow_share(double before, double now);
// Whether it is what each of n_blocks would have if all had the same, or more: then the block was looked at.
[[nodiscard]] bool is_notable_share(double share, std::size_t n_blocks);

class AttentionNotes {
 public:
  // `block_size`: of a full block, by which slices are counted; 1 where there are none. `n_in_layer`: heads of a layer, for what
  // they have together.
  AttentionNotes(std::size_t n_heads, const Ask& ask, std::int32_t block_size = 1, std::size_t n_in_layer = 1);

  // What comes behind a step of a prompt.
  struct Behind {
    std::int32_t n_tokens = 0;
    // Queries that the next step gives before anything is chosen, as far as can be told; 0: something may be chosen first.
    std::int32_t n_next_queries = 0;
  };
  // How many of a step's queries are observed, its last ones: none of those that the next step pushes out of the window before
  // anyone looks, where nothing but the window or the last query is asked for. Where the next step does not come after all, what
  // this one computed is of the blocks that came since.
  [[nodiscard]] std::int32_t n_observed(std::int32_t n_rows, const Behind& behind) const;

  // What a step's observed queries gave the blocks of a head: all together, those of the window together and at most, and the
  // very last. Blocks rise.
  struct HeadStep {
    std::span<const BlockIndex> blocks;
    std::span<const float> sum;
    std::span<const float> window_sum;
    std::span<const float> window_max;
    std::span<const float> last;
    // By slice, [block][n_slices] each; empty where none are asked for.
    struct {
      std::span<const float> sum, window_sum, window_max, last;
    } slices;
  };
  struct StepQueries {
    // The positions of the observed ones.
    Span observed;
    // How many of them, the last, are in the window.
    std::int32_t n_window = 0;
  };
  // A step: its queries and how many tokens a full block has, then every head once, by rising head.
  void begin_step(const StepQueries& queries, std::int32_t block_size);
  void add(std::size_t head, const HeadStep& step);

  // What one query gave the blocks of a head at most, while a piece of the session was read again. Blocks rise.
  void add_reread(std::size_t head, std::span<const BlockIndex> blocks, std::span<const float> most);

  // Of rising blocks in a head.
  [[nodiscard]] std::vector<NotedMass> noted(std::size_t head, std::span<const BlockIndex> blocks) const;
  // The columns that `ask` wants, for a scope of n_heads heads from `first` on whose rows are these rising blocks.
  void fill(const Ask& ask, std::size_t first, std::size_t n_heads, std::span<const BlockIndex> blocks,
            ScopeEvidence& scope) const;
  // Forgets this block and all behind it; but of its first n_kept tokens what slices say, which is then what the block has:
  // their sums, and of the largest the largest.
  void forget(BlockIndex from, std::int32_t n_kept = 0);

  [[nodiscard]] AttentionImage image() const;
  // kDamaged for what no image() gives: unordered, not finite, negative, or of heads and blocks that there are not. An image
  // without what is asked here leaves that unknown. Totals by head are pooled as if one step had given them, where pooled
  // ones are asked for; pooled ones say nothing of heads.
  Status restore(const AttentionImage& image, std::int32_t n_blocks);

 private:
  struct Total {
    double sum = 0.0;
    std::int64_t n_queries = 0;
  };
  struct Step {
    std::int32_t n_queries = 0;
    std::vector<std::size_t> begins;  // [head] and the end: where a head's blocks begin
    std::vector<BlockIndex> blocks;
    std::vector<float> sum;
    std::vector<float> max;
    std::vector<float> last;
    // Slices from this position on were not there yet.
    Position end;
    // [block][slice]. Of a single query all three are the sum, and only that is kept; else what nobody asks for is not.
    bool is_single = false;
    std::vector<float> slice_sum;
    std::vector<float> slice_max;
    std::vector<float> slice_last;

    void add(BlockIndex block, float s, float m, float l);
    [[nodiscard]] const std::vector<float>& max_of_slices() const { return is_single ? slice_sum : slice_max; }
    [[nodiscard]] const std::vector<float>& last_of_slices() const { return is_single ? slice_sum : slice_last; }
  };
  struct SliceTotals {
    std::vector<double> sum;
    std::vector<std::int32_t> n_queries;
  };
  // Of rising blocks in a head, [block][slice].
  struct NotedSlices {
    std::vector<double> total, n_queries, window_sum, window_max, last;
    std::vector<std::int32_t> n_in_window;
  };

  void add_totals(std::size_t head, const HeadStep& step);
  // A layer's heads of the step under way, and what they gave together.
  struct Pass {
    std::vector<BlockIndex> blocks;
    std::vector<double> sums;  // [block][slice], or [block]
  };
  // attention_notes_pooled.cc
  void add_to_pass(std::size_t head, const HeadStep& step);
  void note_pass(std::size_t first_head);
  [[nodiscard]] std::vector<double> pool(const Pass& pass) const;
  void pool_totals();

  void add_window(const Step& step, std::size_t head, std::span<const BlockIndex> blocks, bool is_newest,
                  std::vector<NotedMass>& noted) const;
  void drop_old_steps();

  // attention_notes_slices.cc
  void add_slice_totals(std::size_t head, const HeadStep& step);
  void add_slices_to(Step& kept, const HeadStep& step) const;
  [[nodiscard]] NotedSlices noted_slices(std::size_t head, std::span<const BlockIndex> blocks) const;
  void add_slice_window(const Step& step, std::size_t head, std::span<const BlockIndex> blocks,
                        NotedSlices& noted) const;
  void fill_slices(const Ask& ask, std::size_t first, std::size_t n_heads, std::span<const BlockIndex> blocks,
                   SliceColumns& columns) const;
  void forget_slice_totals(BlockIndex from, std::size_t n_kept);
  void keep_slices(const Step& from, std::size_t at, std::size_t n_kept, Step& to) const;
  [[nodiscard]] Position begin_of(BlockIndex block, std::size_t slice) const;
  void put_slices(AttentionImage& image) const;
  [[nodiscard]] Status check_slices(const AttentionImage& image, std::int32_t n_blocks) const;
  void restore_slices(const AttentionImage& image, Step& window);

  std::size_t n_heads_;
  std::size_t n_in_layer_;
  Ask ask_;
  [[nodiscard]] bool keeps_steps() const { return ask_.window > 0 || ask_.last; }

  Span queries_;  // of the step under way
  std::int32_t block_size_ = 1;
  std::size_t n_slices_ = 0;
  std::vector<SliceTotals> slice_totals_;  // [head]
  std::vector<std::vector<Total>> totals_;
  Pass pass_;
  std::deque<Step> steps_;
  std::vector<std::vector<float>> reread_;
};

}  // namespace ebb
