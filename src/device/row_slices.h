// RowSlices: computes a graph on the CPU by a team, ggml's operations slice by slice of their rows.
//
// Operations that look at one row at a time, one behind the other, are a chain: a thread takes some rows through all of a chain, while they are
// in its caches. Operations of ours are called by the caller's thread alone, and share themselves (share_operation). So no thread waits for
// another but at a chain's end. Each output has the bits that ggml gives it, whatever the slices. It does not know what a graph means.
// Thread rule: one graph at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/team.h"

struct ggml_cgraph;
struct ggml_tensor;

namespace ebb {

class RowSlices {
 public:
  // The team outlives it.
  explicit RowSlices(Team& team);
  ~RowSlices();
  RowSlices(const RowSlices&) = delete;
  RowSlices& operator=(const RowSlices&) = delete;

  // Whether all operations of the graph are ours, go by rows or do nothing. Others (products of ggml's) take ggml's own threads.
  [[nodiscard]] static bool can_compute(ggml_cgraph* graph);

  // Operations on n_rows rows are sliced, those on others are computed whole. False when it was stopped, or an operation failed; what the graph
  // writes is then undefined. `is_stopped` is asked between chains.
  [[nodiscard]] bool compute(ggml_cgraph* graph, std::int64_t n_rows, const std::function<bool()>& is_stopped);

 private:
  class Slot;
  [[nodiscard]] bool compute_chain(const std::vector<ggml_tensor*>& chain, std::int64_t n_rows);

  Team& team_;
  // One of each slice of a chain.
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace ebb
