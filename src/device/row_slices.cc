#include "device/row_slices.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <utility>

#include <ggml-cpu.h>
#include <ggml.h>

#include "base/check.h"

namespace ebb {
namespace {

// Longer chains are cut.
constexpr std::size_t kMaxChain = 16;
// Fewer rows of a slice: building it takes as long as computing it. More: the last one keeps others waiting.
constexpr std::int64_t kMinSliceRows = 4;
// More even out what other programs take of a thread's time; each costs some microseconds.
constexpr std::int32_t kSlicesEach = 4;

bool is_nothing(const ggml_tensor* node) {
  switch (node->op) {
    case GGML_OP_NONE:
    case GGML_OP_RESHAPE:
    case GGML_OP_VIEW:
    case GGML_OP_PERMUTE:
    case GGML_OP_TRANSPOSE: return true;
    default: return false;
  }
}

bool is_ours(const ggml_tensor* node) { return node->op == GGML_OP_CUSTOM; }

bool goes_by_rows(const ggml_tensor* node) {
  switch (node->op) {
    case GGML_OP_GET_ROWS:
    case GGML_OP_RMS_NORM:
    case GGML_OP_SCALE:
    case GGML_OP_UNARY:
    case GGML_OP_MUL:
    case GGML_OP_ADD:
    case GGML_OP_GLU:
    case GGML_OP_ROPE: return true;
    default: return false;
  }
}

// The dimension that rows are counted in: the last one of more than one. A single row has none, and its slices would not be rows.
int row_dim(const ggml_tensor* t) {
  int dim = GGML_MAX_DIMS - 1;
  while (dim > 0 && t->ne[dim] == 1) --dim;
  return dim;
}

bool has_rows(const ggml_tensor* node, std::int64_t n_rows) {
  const int dim = row_dim(node);
  return dim > 0 && node->ne[dim] == n_rows;
}

// How an operation that goes by rows looks at its source: at the rows that it writes, in this dimension; -1: at all of it.
int source_dim(const ggml_tensor* node, int source) {
  const ggml_tensor* const from = node->src[source];
  switch (node->op) {
    case GGML_OP_GET_ROWS: return source == 1 ? 0 : -1;
    case GGML_OP_ROPE: return source == 0 ? row_dim(node) : source == 1 ? 0 : -1;
    case GGML_OP_MUL:
    case GGML_OP_ADD: return ggml_are_same_shape(from, node) ? row_dim(node) : -1;
    default: return row_dim(node);
  }
}

// Where a tensor lies, and how far its rows are apart; 0: it is looked at as a whole.
struct Place {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  std::size_t row_bytes = 0;
  bool is_written = false;
};

Place place_of(const ggml_tensor* t, int dim, bool is_written) {
  const auto* const begin = static_cast<const std::byte*>(t->data);
  return {
      .begin = begin, .end = begin + ggml_nbytes(t), .row_bytes = dim < 0 ? 0 : t->nb[dim], .is_written = is_written};
}

// Whether one slice may write what another has yet to read: both lie in the same memory, and not row upon row.
bool is_in_the_way(const Place& a, const Place& b) {
  if (!a.is_written && !b.is_written) return false;
  if (a.begin >= b.end || b.begin >= a.end) return false;
  return a.begin != b.begin || a.row_bytes != b.row_bytes || a.row_bytes == 0;
}

// The nodes that slices go through one behind the other.
class Chain {
 public:
  [[nodiscard]] const std::vector<ggml_tensor*>& nodes() const { return nodes_; }
  [[nodiscard]] bool takes(const ggml_tensor* node) const {
    if (nodes_.empty()) return true;
    // Rows of others are looked at: they must be whole.
    if (node->op == GGML_OP_GET_ROWS || nodes_.size() == kMaxChain) return false;
    const std::vector<Place> places = places_of(node);
    return std::ranges::none_of(places, [&](const Place& place) {
      return std::ranges::any_of(places_, [&](const Place& other) { return is_in_the_way(place, other); });
    });
  }
  void add(ggml_tensor* node) {
    nodes_.push_back(node);
    for (const Place& place : places_of(node)) places_.push_back(place);
  }
  void clear() {
    nodes_.clear();
    places_.clear();
  }

 private:
  static std::vector<Place> places_of(const ggml_tensor* node) {
    std::vector<Place> places = {place_of(node, row_dim(node), true)};
    for (int i = 0; i < GGML_MAX_SRC && node->src[i] != nullptr; ++i) {
      places.push_back(place_of(node->src[i], source_dim(node, i), false));
    }
    return places;
  }

  std::vector<ggml_tensor*> nodes_;
  std::vector<Place> places_;
};

// Rows [first, first + n) of a tensor.
ggml_tensor slice_of(const ggml_tensor& t, int dim, std::int64_t first, std::int64_t n) {
  ggml_tensor slice = t;
  slice.ne[dim] = n;
  slice.data = static_cast<std::byte*>(t.data) + static_cast<std::size_t>(first) * t.nb[dim];
  return slice;
}

}  // namespace

// What computes one slice of a chain, by one thread.
class RowSlices::Slot {
 public:
  Slot()
      : context_(ggml_init({.mem_size = ggml_graph_overhead_custom(kMaxChain, false) + ggml_tensor_overhead(),
                            .mem_buffer = nullptr,
                            .no_alloc = true})) {
    EBB_CHECK(context_ != nullptr, "no memory for a slice's graph");
    graph_ = ggml_new_graph_custom(context_, kMaxChain, false);
  }
  ~Slot() { ggml_free(context_); }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  [[nodiscard]] bool compute(std::span<ggml_tensor* const> chain, std::int64_t first, std::int64_t n) {
    ggml_graph_clear(graph_);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      nodes_[i] = slice_of(*chain[i], row_dim(chain[i]), first, n);
      for (int s = 0; s < GGML_MAX_SRC && chain[i]->src[s] != nullptr; ++s) {
        const int dim = source_dim(chain[i], s);
        if (dim < 0) continue;
        ggml_tensor& source = sources_[i][static_cast<std::size_t>(s)];
        source = slice_of(*chain[i]->src[s], dim, first, n);
        nodes_[i].src[s] = &source;
      }
      ggml_graph_add_node(graph_, &nodes_[i]);
    }
    return run();
  }

  [[nodiscard]] bool compute_whole(ggml_tensor* node) {
    ggml_graph_clear(graph_);
    ggml_graph_add_node(graph_, node);
    return run();
  }

 private:
  bool run() {
    ggml_cplan plan = ggml_graph_plan(graph_, 1, nullptr);
    if (work_.size() < plan.work_size) work_.resize(plan.work_size);
    plan.work_data = work_.data();
    return ggml_graph_compute(graph_, &plan) == GGML_STATUS_SUCCESS;
  }

  // Of the operations that go by rows none has more.
  static constexpr std::size_t kMaxSources = 3;
  ggml_context* context_;
  ggml_cgraph* graph_ = nullptr;
  std::array<ggml_tensor, kMaxChain> nodes_ = {};
  std::array<std::array<ggml_tensor, kMaxSources>, kMaxChain> sources_ = {};
  std::vector<std::uint8_t> work_;
};

RowSlices::RowSlices(Team& team) : team_(team) { slots_.push_back(std::make_unique<Slot>()); }

RowSlices::~RowSlices() = default;

bool RowSlices::can_compute(ggml_cgraph* graph) {
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    const ggml_tensor* const node = ggml_graph_node(graph, i);
    if (!is_nothing(node) && !is_ours(node) && !goes_by_rows(node)) return false;
  }
  return true;
}

bool RowSlices::compute(ggml_cgraph* graph, std::int64_t n_rows, const std::function<bool()>& is_stopped) {
  Chain chain;
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    ggml_tensor* const node = ggml_graph_node(graph, i);
    if (is_nothing(node)) continue;
    const bool is_sliced = goes_by_rows(node) && has_rows(node, n_rows);
    if (is_sliced && chain.takes(node)) {
      chain.add(node);
      continue;
    }
    if (!compute_chain(chain.nodes(), n_rows) || is_stopped()) return false;
    chain.clear();
    if (is_sliced) {
      chain.add(node);
    } else if (!slots_.front()->compute_whole(node)) {
      return false;
    }
  }
  return compute_chain(chain.nodes(), n_rows) && !is_stopped();
}

bool RowSlices::compute_chain(const std::vector<ggml_tensor*>& chain, std::int64_t n_rows) {
  if (chain.empty()) return true;
  const std::int64_t n_slices = std::clamp<std::int64_t>(n_rows / kMinSliceRows, 1, kSlicesEach * team_.n_threads());
  while (std::cmp_less(slots_.size(), n_slices)) slots_.push_back(std::make_unique<Slot>());
  std::atomic<bool> is_good = true;
  team_.run(static_cast<std::int32_t>(n_slices), [&](std::int32_t part) {
    const std::int64_t first = n_rows * part / n_slices;
    const std::int64_t end = n_rows * (part + 1) / n_slices;
    if (!slots_[static_cast<std::size_t>(part)]->compute(chain, first, end - first)) is_good.store(false);
  });
  return is_good.load();
}

}  // namespace ebb
