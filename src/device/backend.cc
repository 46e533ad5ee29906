#include "device/backend.h"

#include <algorithm>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/ranges.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <sched.h>

namespace ebb {
namespace {

constexpr std::int32_t kMaxThreads = 512;

// ggml prints to stderr unless told otherwise; the library never prints.
void silence_ggml() {
  static std::once_flag once;
  std::call_once(once, [] { ggml_log_set([](ggml_log_level, const char*, void*) {}, nullptr); });
}

ggml_backend_dev_t find_device(std::string_view name) {
  if (name == "cpu") return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  return ggml_backend_dev_by_name(std::string(name).c_str());
}

// A function of the backend's registry, or null where the backend has none.
template <class Function>
Function find_proc(ggml_backend_device* device, const char* name) {
  ggml_backend_reg_t registry = ggml_backend_dev_backend_reg(device);
  return reinterpret_cast<Function>(ggml_backend_reg_get_proc_address(registry, name));
}

// Fewer rows: what is not ours takes no time, and ggml computes it in one go.
constexpr std::int64_t kMinRowsToSlice = 24;

// Of the graph's first operation that is ours, or of its last operation.
std::int64_t count_rows(ggml_cgraph* graph) {
  ggml_tensor* node = nullptr;
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    node = ggml_graph_node(graph, i);
    if (node->op == GGML_OP_CUSTOM) break;
  }
  return node == nullptr ? 0 : ggml_nrows(node);
}

}  // namespace

std::int32_t default_threads() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return std::max(1, static_cast<std::int32_t>(std::thread::hardware_concurrency()));
  }
  // Hyper-threads share their core's arithmetic, so count the lists of siblings, not the processors.
  std::set<std::string> cores;
  std::int32_t n_processors = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    ++n_processors;
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    if (std::string siblings; std::getline(file, siblings)) cores.insert(siblings);
  }
  return std::max(1, cores.empty() ? n_processors : static_cast<std::int32_t>(cores.size()));
}

std::vector<std::string> Backend::names() {
  silence_ggml();
  std::vector<std::string> names = {"cpu"};
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    if (ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_CPU)
      names.emplace_back(ggml_backend_dev_name(device));
  }
  return names;
}

Result<std::unique_ptr<Backend>> Backend::open(std::string_view name, std::int32_t n_threads) {
  silence_ggml();
  if (n_threads < 0 || n_threads > kMaxThreads) {
    return error(Code::kInvalidArgument, "{} threads asked for; give 1 to {}, or 0 for one per core", n_threads,
                 kMaxThreads);
  }
  ggml_backend_dev_t device = find_device(name);
  if (device == nullptr) {
    return error(Code::kNotFound, "no device named '{}'; this machine has: {}", name, fmt::join(names(), ", "));
  }
  ggml_backend_t handle = ggml_backend_dev_init(device, nullptr);
  if (handle == nullptr) return error(Code::kIo, "device '{}' could not be started", name);
  return std::unique_ptr<Backend>(new Backend(handle, device,
                                              ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU,
                                              n_threads == 0 ? default_threads() : n_threads));
}

Backend::Backend(ggml_backend* handle, ggml_backend_device* device, bool is_cpu, std::int32_t n_threads)
    : handle_(handle), device_(device), is_cpu_(is_cpu), team_(n_threads), slices_(team_) {
  if (auto set_callback = find_proc<ggml_backend_set_abort_callback_t>(device, "ggml_backend_set_abort_callback")) {
    set_callback(
        handle, [](void* self) { return static_cast<Backend*>(self)->cancel_requested(); }, this);
  }
}

Backend::~Backend() { ggml_backend_free(handle_); }

void Backend::set_threads_of_ggml(std::int32_t n_threads) {
  if (auto set = find_proc<ggml_backend_set_n_threads_t>(device_, "ggml_backend_set_n_threads"))
    set(handle_, n_threads);
}

Status Backend::compute(ggml_cgraph* graph) {
  if (cancel_requested()) return error(Code::kCancelled, "stopped before the computation began");
  const bool is_ours = is_cpu_ && RowSlices::can_compute(graph);
  const std::int64_t n_rows = is_ours && n_threads() > 1 ? count_rows(graph) : 0;
  ggml_status status = GGML_STATUS_SUCCESS;
  if (n_rows < kMinRowsToSlice) {
    set_threads_of_ggml(is_ours ? 1 : n_threads());
    status = ggml_backend_graph_compute(handle_, graph);
  } else if (!slices_.compute(graph, n_rows, [this] { return cancel_requested(); })) {
    status = cancel_requested() ? GGML_STATUS_ABORTED : GGML_STATUS_FAILED;
  }
  switch (status) {
    case GGML_STATUS_SUCCESS: return {};
    case GGML_STATUS_ABORTED: return error(Code::kCancelled, "stopped during the computation");
    case GGML_STATUS_ALLOC_FAILED:
      return error(Code::kIo, "the device ran out of memory; use a smaller batch or budget");
    case GGML_STATUS_FAILED: break;
  }
  return error(Code::kIo, "the device failed while computing");
}

}  // namespace ebb
