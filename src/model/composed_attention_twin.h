// Test support: sessions that attend through ComposedAttention on the CPU backend, beside a float64 reference.
//
// It keeps block tables over one shuffled pool of frames, and remembers of every session, layer, head and position the
// K and V row as ggml stores it; run_step() computes a step both ways. Only composed_attention_test.cc includes it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include "cache/frame_pool.h"
#include "cache/row_types.h"
#include "model/composed_attention.h"
#include "model/toy_tables.h"

namespace ebb {

struct ComposedWorld {
  RowType row_type = RowType::kF32;
  ComposedOps ops = {.flash = true, .kv_type = RowType::kF32};
  std::int32_t n_kv_heads = 2;
  std::int32_t group = 2;
  std::int32_t head_dim_k = 32;
  std::int32_t head_dim_v = 32;
  std::int32_t block_size = 16;
  std::vector<std::int32_t> windows = {0};  // one per layer
  std::int32_t n_sequences = 1;
  bool with_mass = false;
  std::uint64_t seed = 1;
  std::uint64_t placement_seed = 1;  // of frames

  [[nodiscard]] std::int32_t n_layers() const { return static_cast<std::int32_t>(windows.size()); }
  [[nodiscard]] std::int32_t n_heads() const { return n_kv_heads * group; }
  [[nodiscard]] FrameLayout layout() const {
    return {.row_type = row_type,
            .key_order = KeyOrder::kByRow,
            .block_size = block_size,
            .head_dim_k = head_dim_k,
            .head_dim_v = head_dim_v};
  }
};

// What ggml makes of a row when it stores it.
inline std::vector<double> as_stored(RowType type, const float* row, std::int32_t n) {
  std::vector<float> values(row, row + n);
  if (type != RowType::kF32) {
    std::vector<std::byte> bytes(ggml_row_size(to_ggml_type(type), n));
    ggml_get_type_traits_cpu(to_ggml_type(type))->from_float(row, bytes.data(), n);
    ggml_get_type_traits(to_ggml_type(type))->to_float(bytes.data(), values.data(), n);
  }
  return {values.begin(), values.end()};
}

// A graph of all layers whose q, k and v are inputs, and its memory.
class ComposedTwinGraph {
 public:
  ComposedTwinGraph(const ComposedWorld& world, FrameMemory& memory, ComposedPlan plan,
                    std::vector<AttentionShape> layers, std::int32_t n_rows)
      : n_rows_(n_rows),
        context_(ggml_init({.mem_size = 4096 * ggml_tensor_overhead() + ggml_graph_overhead_custom(4096, false),
                            .mem_buffer = nullptr,
                            .no_alloc = true}),
                 ggml_free),
        attention_(context_.get(), memory, {.plan = std::move(plan), .layers = std::move(layers), .ops = world.ops}) {
    graph_ = ggml_new_graph_custom(context_.get(), 4096, false);
    for (std::int32_t l = 0; l < world.n_layers(); ++l) {
      q.push_back(input(world.head_dim_k, world.n_heads()));
      k.push_back(input(world.head_dim_k, world.n_kv_heads));
      v.push_back(input(world.head_dim_v, world.n_kv_heads));
      const int n_before = ggml_graph_n_nodes(graph_);
      const auto written = attention_.write(LayerIndex(l), k.back(), v.back());
      ggml_build_forward_expand(graph_, written.k);
      ggml_build_forward_expand(graph_, written.v);
      result.push_back(attention_.attend(LayerIndex(l), q.back(), world.with_mass));
      for (ggml_tensor* tensor : {result.back().out, result.back().mass}) {
        if (tensor == nullptr) continue;
        ggml_set_output(tensor);
        ggml_build_forward_expand(graph_, tensor);
      }
      EBB_CHECK(ggml_graph_n_nodes(graph_) - n_before <= attention_.max_tensors_per_layer(),
                "more nodes than announced");
    }
  }

  void allocate(Backend& backend) {
    allocator_.reset(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend.handle())));
    EBB_CHECK(ggml_gallocr_alloc_graph(allocator_.get(), graph_), "no memory for a graph");
  }
  [[nodiscard]] std::int32_t n_rows() const { return n_rows_; }
  ComposedAttention& attention() { return attention_; }
  ggml_cgraph* handle() { return graph_; }

  std::vector<ggml_tensor*> q, k, v;
  std::vector<ComposedAttention::Attended> result;

 private:
  ggml_tensor* input(std::int32_t head_dim, std::int32_t n_heads) {
    ggml_tensor* tensor = ggml_new_tensor_3d(context_.get(), GGML_TYPE_F32, head_dim, n_heads, n_rows_);
    ggml_set_input(tensor);
    return tensor;
  }

  std::int32_t n_rows_;
  std::unique_ptr<ggml_context, decltype(&ggml_free)> context_;
  std::unique_ptr<std::remove_pointer_t<ggml_gallocr_t>, decltype(&ggml_gallocr_free)> allocator_{nullptr,
                                                                                                  ggml_gallocr_free};
  ComposedAttention attention_;
  ggml_cgraph* graph_ = nullptr;
};

// Sessions over one pool of frames, and what a reference remembers of them: the stored value of every K and V row.
class ComposedTwin {
 public:
  explicit ComposedTwin(const ComposedWorld& world) : world_(world), pool_(kFrames), random_(world.seed) {
    // One thread: ggml's threads spin, which costs much on a busy machine and tests nothing of ours.
    backend_ = std::move(Backend::open("cpu", 1)).value();
    memory_ = std::move(FrameMemory::open(*backend_, world.layout(), kFrames)).value();
    pool_.shuffle_free(world.placement_seed);
    for (std::int32_t s = 0; s < world.n_sequences; ++s) {
      sessions_.emplace_back(pool_, world.n_layers(), world.n_kv_heads, world.block_size);
    }
    for (const std::int32_t window : world.windows) {
      layers_.push_back({.layout = world.layout(),
                         .n_heads = world.n_heads(),
                         .n_kv_heads = world.n_kv_heads,
                         .scale = 1.0F / std::sqrt(static_cast<float>(world.head_dim_k)),
                         .window = window});
    }
  }

  toy::ToyTables& session(std::int32_t s) { return sessions_[static_cast<std::size_t>(s)]; }
  Backend& backend() { return *backend_; }
  const FrameMemory& memory() const { return *memory_; }
  std::span<const AttentionShape> layers() const { return layers_; }
  std::int32_t n_graphs() const { return n_graphs_; }
  std::mt19937_64& random() { return random_; }

  // The next step has n_rows of this session at consecutive positions, `gap` positions after its end.
  void add_rows(std::int32_t s, std::int32_t n_rows, std::int32_t gap = 0) {
    toy::ToyTables& session = this->session(s);
    const Position first = session.end() + gap;
    for (std::int32_t row = 0; row < n_rows; ++row) {
      if (session.room() == 0 || (row == 0 && gap > 0)) session.open_block(first + row);
      session.append(1);
    }
    rows_.push_back({.row_begin = n_rows_, .n_rows = n_rows, .first = first});
    row_sessions_.push_back(s);
    n_rows_ += n_rows;
  }

  // Out of the frames and back into others, through host bytes.
  void evict_and_recall(std::int32_t s, BlockIndex block) {
    toy::ToyTables& session = this->session(s);
    std::vector<std::byte> bytes(world_.layout().frame_bytes());
    std::vector<std::vector<std::byte>> saved;
    const auto for_each_frame = [&](auto&& act) {
      for (std::int32_t l = 0; l < world_.n_layers(); ++l) {
        for (std::int32_t h = 0; h < world_.n_kv_heads; ++h) act(session.frame(block, LayerIndex(l), HeadIndex(h)));
      }
    };
    for_each_frame([&](FrameIndex frame) {
      memory_->read(frame, bytes);
      saved.push_back(bytes);
      memory_->write(frame, std::vector<std::byte>(bytes.size()));
    });
    session.evict(block);
    pool_.shuffle_free(random_());
    session.admit(block);
    for_each_frame([&, next = saved.begin()](FrameIndex frame) mutable { memory_->write(frame, *next++); });
  }

  // Computes the step on random q, k and v and returns the largest differences from the reference.
  struct Errors {
    double out = 0;
    double mass = 0;
  };
  Errors run_step() {
    const AttentionStep step = make_step();
    if (!graph_ || graph_->n_rows() != n_rows_ || !graph_->attention().plan().serves(step, layers_)) {
      graph_ = std::make_unique<ComposedTwinGraph>(world_, *memory_, plan_composed(step, layers_, world_.with_mass),
                                                   layers_, n_rows_);
      graph_->allocate(*backend_);
      ++n_graphs_;
    }
    std::vector<std::vector<float>> q;
    for (std::int32_t l = 0; l < world_.n_layers(); ++l) {
      const auto at = static_cast<std::size_t>(l);
      q.push_back(set_random(graph_->q[at]));
      remember(l, set_random(graph_->k[at]), keys_, world_.head_dim_k);
      remember(l, set_random(graph_->v[at]), values_, world_.head_dim_v);
    }
    graph_->attention().fill(step);
    EBB_CHECK(backend_->compute(graph_->handle()).ok(), "the computation failed");
    Errors errors;
    for (std::int32_t l = 0; l < world_.n_layers(); ++l) compare_layer(step, l, q[static_cast<std::size_t>(l)], errors);
    rows_.clear();
    row_sessions_.clear();
    n_rows_ = 0;
    return errors;
  }

  AttentionStep make_step() {
    AttentionStep step{
        .n_layers = world_.n_layers(), .n_kv_heads = world_.n_kv_heads, .sequences = rows_, .tables = {}};
    for (const std::int32_t s : row_sessions_) {
      for (std::int32_t l = 0; l < world_.n_layers(); ++l) {
        for (std::int32_t h = 0; h < world_.n_kv_heads; ++h) {
          step.tables.push_back(session(s).table(LayerIndex(l), HeadIndex(h)));
        }
      }
    }
    return step;
  }

  // The results of all steps so far.
  const std::vector<float>& outputs() const { return outputs_; }

  // The row that was stored for a position.
  using Key = std::array<std::int32_t, 4>;  // session, layer, head, position
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return static_cast<std::size_t>(((key[0] * 64 + key[1]) * 64 + key[2]) * 65536 + key[3]);
    }
  };
  const std::vector<double>& key(const Key& at) const { return keys_.at(at); }

 private:
  static constexpr std::int32_t kFrames = 1500;

  std::vector<float> set_random(ggml_tensor* tensor) {
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(ggml_nelements(tensor)));
    for (float& value : values) value = normal(random_);
    ggml_backend_tensor_set(tensor, values.data(), 0, ggml_nbytes(tensor));
    return values;
  }

  void remember(std::int32_t layer, const std::vector<float>& rows,
                std::unordered_map<Key, std::vector<double>, KeyHash>& into, std::int32_t head_dim) {
    const float* row = rows.data();
    for (std::size_t s = 0; s < rows_.size(); ++s) {
      for (std::int32_t r = 0; r < rows_[s].n_rows; ++r) {
        for (std::int32_t h = 0; h < world_.n_kv_heads; ++h, row += head_dim) {
          into[{row_sessions_[s], layer, h, (rows_[s].first + r).value()}] = as_stored(world_.row_type, row, head_dim);
        }
      }
    }
  }

  void compare_layer(const AttentionStep& step, std::int32_t layer, const std::vector<float>& q, Errors& errors) {
    const auto& result = graph_->result[static_cast<std::size_t>(layer)];
    std::vector<float> out(static_cast<std::size_t>(ggml_nelements(result.out)));
    ggml_backend_tensor_get(result.out, out.data(), 0, ggml_nbytes(result.out));
    outputs_.insert(outputs_.end(), out.begin(), out.end());
    std::vector<float> mass;
    if (world_.with_mass) {
      mass.resize(static_cast<std::size_t>(ggml_nelements(result.mass)));
      ggml_backend_tensor_get(result.mass, mass.data(), 0, ggml_nbytes(result.mass));
    }
    const std::size_t stride = world_.with_mass ? static_cast<std::size_t>(result.mass->ne[0]) : 0;
    for (std::size_t s = 0; s < step.sequences.size(); ++s) {
      for (std::int32_t r = 0; r < step.sequences[s].n_rows; ++r) {
        const auto row = static_cast<std::size_t>(step.sequences[s].row_begin + r);
        for (std::int32_t h = 0; h < world_.n_kv_heads; ++h) {
          std::vector<double> expected_mass(stride);
          for (std::int32_t g = 0; g < world_.group; ++g) {
            const std::size_t head =
                row * static_cast<std::size_t>(world_.n_heads()) + static_cast<std::size_t>(h * world_.group + g);
            const auto expected = attend(step, s, LayerIndex(layer), HeadIndex(h), r,
                                         &q[head * static_cast<std::size_t>(world_.head_dim_k)], expected_mass);
            const float* actual = &out[head * static_cast<std::size_t>(world_.head_dim_v)];
            for (std::size_t d = 0; d < expected.size(); ++d) take_error(errors.out, actual[d] - expected[d]);
          }
          const float* actual =
              mass.data() + (row * static_cast<std::size_t>(world_.n_kv_heads) + static_cast<std::size_t>(h)) * stride;
          for (std::size_t e = 0; e < stride; ++e) take_error(errors.mass, actual[e] - expected_mass[e]);
        }
      }
    }
  }

  // A NaN is the largest error of all.
  static void take_error(double& largest, double error) {
    largest = std::isnan(error) ? INFINITY : std::max(largest, std::abs(error));
  }

  // One query of one head in float64; adds its mass.
  std::vector<double> attend(const AttentionStep& step, std::size_t s, LayerIndex layer, HeadIndex head, std::int32_t r,
                             const float* q, std::vector<double>& mass) const {
    const AttentionShape& shape = layers_[layer.index()];
    const Position query = step.sequences[s].first + r;
    const BlockTable table = step.table(s, layer, head);
    std::vector<double> out(static_cast<std::size_t>(world_.head_dim_v), 0.0);
    std::vector<double> own_mass(mass.size(), 0.0);
    double sum = 0;
    for (std::size_t e = 0; e < table.size(); ++e) {
      for (std::int32_t t = 0; t < table[e].n_tokens; ++t) {
        const Position p = table[e].begin + t;
        if (p > query || (shape.window > 0 && query - p >= shape.window)) continue;
        const Key at = {row_sessions_[s], layer.value(), head.value(), p.value()};
        const std::vector<double>& k = keys_.at(at);
        const std::vector<double>& v = values_.at(at);
        double score = 0;
        for (std::size_t d = 0; d < k.size(); ++d) score += k[d] * static_cast<double>(q[d]);
        // Scores of these inputs are far below 700: no maximum needs to be taken off.
        const double weight = std::exp(score * static_cast<double>(shape.scale));
        sum += weight;
        if (!own_mass.empty()) own_mass[e] += weight;
        for (std::size_t d = 0; d < out.size(); ++d) out[d] += weight * v[d];
      }
    }
    for (double& x : out) x /= sum;
    for (std::size_t e = 0; e < mass.size(); ++e) mass[e] += own_mass[e] / sum;
    return out;
  }

  ComposedWorld world_;
  FramePool pool_;
  std::mt19937_64 random_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<FrameMemory> memory_;
  std::vector<AttentionShape> layers_;
  std::vector<toy::ToyTables> sessions_;
  std::vector<SequenceRows> rows_;
  std::vector<std::int32_t> row_sessions_;
  std::int32_t n_rows_ = 0;
  std::unordered_map<Key, std::vector<double>, KeyHash> keys_, values_;
  std::vector<float> outputs_;
  std::unique_ptr<ComposedTwinGraph> graph_;
  std::int32_t n_graphs_ = 0;
};

}  // namespace ebb
