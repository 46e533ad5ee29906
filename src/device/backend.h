// Backend: one ggml backend (a CPU or an accelerator) that computes graphs.
//
// On the CPU the threads are ours where a graph allows it (decisions/0035): ggml's own spin between operations, and all wait for the one that
// another program keeps from running. It does not know models, caches or what a graph means. ggml reports through its log; errors of a
// computation travel as Status. Thread rule: one thread at a time computes; request_cancel() may be called from any thread or signal handler.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/team.h"
#include "device/row_slices.h"

struct ggml_backend;
struct ggml_backend_device;
struct ggml_cgraph;

namespace ebb {

class Backend {
 public:
  // `name` is "cpu" or a device name as ggml lists it ("CUDA0"). n_threads: 1..512, or 0 for one per physical core.
  static Result<std::unique_ptr<Backend>> open(std::string_view name, std::int32_t n_threads);
  // The names that open() takes on this machine.
  static std::vector<std::string> names();

  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  [[nodiscard]] ggml_backend* handle() const { return handle_; }
  [[nodiscard]] ggml_backend_device* device() const { return device_; }
  [[nodiscard]] bool is_cpu() const { return is_cpu_; }
  [[nodiscard]] std::int32_t n_threads() const { return team_.n_threads(); }
  // Operations of ours in a graph share their parts among these: share_operation().
  [[nodiscard]] Team& team() { return team_; }

  // Computes the nodes of an allocated graph and waits. kCancelled when request_cancel() was called; what the graph
  // writes is then undefined.
  Status compute(ggml_cgraph* graph);

  // Stops the computation under way, and refuses further ones until clear_cancel(). Safe in a signal handler.
  void request_cancel() { cancel_.store(true, std::memory_order_relaxed); }
  void clear_cancel() { cancel_.store(false, std::memory_order_relaxed); }
  [[nodiscard]] bool cancel_requested() const { return cancel_.load(std::memory_order_relaxed); }

 private:
  Backend(ggml_backend* handle, ggml_backend_device* device, bool is_cpu, std::int32_t n_threads);
  void set_threads_of_ggml(std::int32_t n_threads);

  ggml_backend* handle_;
  ggml_backend_device* device_;
  bool is_cpu_;
  Team team_;
  RowSlices slices_;
  std::atomic<bool> cancel_{false};
};

// What an operation of ours in a graph does: operation(part, n_parts) for each part. ggml calls it as thread `ith` of `nth`: as the only one, which
// then shares it among the team, or as one of ggml's threads, each of which is a part.
template <class Operation>
void share_operation(Team& team, int ith, int nth, const Operation& operation) {
  if (nth > 1) return operation(ith, nth);
  const std::int32_t n_parts = team.n_threads();
  team.run(n_parts, [&](std::int32_t part) { operation(part, n_parts); });
}

// Physical cores that this process may run on (the affinity mask bounds it), at least 1.
[[nodiscard]] std::int32_t default_threads();

}  // namespace ebb
