// Backend: one ggml backend (a CPU or an accelerator) that computes graphs.
//
// It does not know models, caches or what a graph means. ggml reports through its log; errors of a computation travel as
// Status. Thread rule: one thread at a time computes; request_cancel() may be called from any thread or signal handler.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

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
  [[nodiscard]] std::int32_t n_threads() const { return n_threads_; }
  void set_threads(std::int32_t n_threads);

  // Computes the nodes of an allocated graph and waits. kCancelled when request_cancel() was called; what the graph
  // writes is then undefined.
  Status compute(ggml_cgraph* graph);

  // Stops the computation under way, and refuses further ones until clear_cancel(). Safe in a signal handler.
  void request_cancel() { cancel_.store(true, std::memory_order_relaxed); }
  void clear_cancel() { cancel_.store(false, std::memory_order_relaxed); }
  [[nodiscard]] bool cancel_requested() const { return cancel_.load(std::memory_order_relaxed); }

 private:
  Backend(ggml_backend* handle, ggml_backend_device* device, bool is_cpu);

  ggml_backend* handle_;
  ggml_backend_device* device_;
  bool is_cpu_;
  std::int32_t n_threads_ = 1;
  std::atomic<bool> cancel_{false};
};

// Physical cores that this process may run on (the affinity mask bounds it), at least 1.
[[nodiscard]] std::int32_t default_threads();

}  // namespace ebb
