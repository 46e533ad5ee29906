#include "model/runner.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml.h>

#include "model/graph.h"
#include "model/square_choice.h"
#include "model/tail_queries.h"

namespace ebb {
namespace {

// Graphs kept for reuse: decode steps of a few batch sizes and the prefill chunks beside them.
constexpr std::size_t kMaxGraphs = 8;

struct GallocrDeleter {
  void operator()(ggml_gallocr* allocator) const { ggml_gallocr_free(allocator); }
};

AttentionShape shape_of_layer(const Hparams& hparams, const FrameLayout& layout, LayerIndex layer) {
  return {.layout = layout,
          .n_heads = hparams.n_heads,
          .n_kv_heads = hparams.n_kv_heads,
          .scale = hparams.attention_scale,
          .window = hparams.window(layer)};
}

}  // namespace

struct Runner::State {
  const Model& model;
  Backend& backend;
  FrameMemory& memory;
  RunnerOptions options;

  std::unique_ptr<ggml_gallocr, GallocrDeleter> allocator;
  AttentionStep step;
  AttentionScratch scratch;
  StepMass mass;
  SquareChoice squares;
  std::int32_t n_inputs = 0;  // of the last run, if it came to its end
  std::vector<AttentionOp> ops;
  // Frames lie by row: attention is composed of ggml's operations.
  bool composed = false;
  std::vector<AttentionShape> layer_shapes;
  ComposedOps composed_ops;
  // The most recently used last. All share the allocator's buffer.
  std::vector<std::unique_ptr<Graph>> graphs;

  // Inputs of the step being put together.
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> anchors;
  std::vector<std::int32_t> output_rows;
  // Logits of the last step: in the graph's own memory on the CPU, copied here from elsewhere.
  const float* logits = nullptr;
  std::vector<float> copied_logits;
  std::deque<std::vector<TableEntry>> cut_tables;  // of the step's tables, those of which something is hidden
  std::int32_t n_outputs = 0;

  Status check(std::span<const SequenceInput> inputs) const;
  void gather(std::span<const SequenceInput> inputs);
  [[nodiscard]] BlockTable looked_at(BlockTable table, Span hidden);
  Result<Graph*> get_graph(const GraphShape& shape);
  [[nodiscard]] bool serves(const Graph& graph, const GraphShape& shape) const;
  [[nodiscard]] std::unique_ptr<Graph> build_graph(const GraphShape& shape);
  void prepare_mass();
  [[nodiscard]] bool asks_queries() const {
    return std::ranges::any_of(step.sequences, [](const SequenceRows& rows) { return rows.asks_queries(); });
  }
  [[nodiscard]] std::int32_t count_parts() const;
  void read_logits(const Graph& graph);
  void read_mass(const Graph& graph);
  void read_queries(const Graph& graph);
};

FrameLayout Runner::layout_for(const Model& model, const Backend& backend, RowType type, std::int32_t block_size,
                               bool composed) {
  return {.row_type = type,
          .key_order = backend.is_cpu() && !composed ? KeyOrder::kByDim : KeyOrder::kByRow,
          .block_size = block_size,
          .head_dim_k = model.hparams().head_dim_k,
          .head_dim_v = model.hparams().head_dim_v};
}

Result<std::unique_ptr<Runner>> Runner::create(const Model& model, Backend& backend, FrameMemory& memory,
                                               const RunnerOptions& options) {
  if (options.max_rows < 1)
    return error(Code::kInvalidArgument, "{} rows a step; it needs at least 1", options.max_rows);
  const Hparams& hparams = model.hparams();
  std::unique_ptr<State> state(new State{.model = model, .backend = backend, .memory = memory, .options = options});
  state->allocator.reset(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend.handle())));
  state->step = {.n_layers = hparams.n_layers,
                 .n_kv_heads = hparams.n_kv_heads,
                 .frames = memory.host_bytes(),
                 .open_frames = memory.open_host_bytes()};
  for (std::int32_t layer = 0; layer < hparams.n_layers; ++layer) {
    state->ops.push_back({.shape = shape_of_layer(hparams, memory.layout(), LayerIndex(layer)),
                          .layer = LayerIndex(layer),
                          .team = &backend.team(),
                          .step = &state->step,
                          .scratch = &state->scratch,
                          .mass = &state->mass,
                          .squares = &state->squares});
    state->layer_shapes.push_back(state->ops.back().shape);
  }
  state->composed = memory.layout().key_order == KeyOrder::kByRow;
  if (state->composed) {
    EBB_ASSIGN_OR_RETURN(state->composed_ops, choose_composed_ops(backend, state->layer_shapes));
    return std::unique_ptr<Runner>(new Runner(std::move(state)));
  }
  // The largest step first: its buffer then serves all others, and a lack of memory shows now, not in mid-turn.
  Result<Graph*> largest = state->get_graph({.n_rows = options.max_rows, .n_outputs = 1});
  if (!largest.ok()) return largest.status();
  return std::unique_ptr<Runner>(new Runner(std::move(state)));
}

Runner::Runner(std::unique_ptr<State> state) : state_(std::move(state)) {}
Runner::~Runner() = default;

std::int32_t Runner::max_rows() const { return state_->options.max_rows; }
bool Runner::is_composed() const { return state_->composed; }
std::int32_t Runner::n_outputs() const { return state_->n_outputs; }

std::span<const float> Runner::logits(std::int32_t output) const {
  EBB_CHECK(output >= 0 && output < state_->n_outputs, "logits {} of {}", output, state_->n_outputs);
  const auto n_vocab = static_cast<std::size_t>(state_->model.hparams().n_vocab);
  return {state_->logits + static_cast<std::size_t>(output) * n_vocab, n_vocab};
}

std::optional<SequenceMass> Runner::mass(std::int32_t input) const {
  EBB_CHECK(input >= 0 && input < state_->n_inputs, "mass of input {}; the last run has it of {}", input,
            state_->n_inputs);
  const auto sequence = static_cast<std::size_t>(input);
  if (state_->step.sequences[sequence].n_mass_rows == 0) return std::nullopt;
  return SequenceMass(state_->mass, state_->step, sequence);
}

std::size_t Runner::compute_bytes() const {
  return ggml_gallocr_get_buffer_size(state_->allocator.get(), 0) + state_->scratch.bytes() + state_->mass.bytes() +
         state_->squares.bytes() + state_->copied_logits.size() * sizeof(float);
}

Status Runner::run(std::span<const SequenceInput> inputs) {
  State& s = *state_;
  s.n_outputs = 0;
  s.n_inputs = 0;
  s.mass.clear();
  EBB_RETURN_IF_ERROR(s.check(inputs));
  s.gather(inputs);
  s.prepare_mass();
  if (!s.composed) s.squares.begin(s.layer_shapes.front(), s.step, s.backend.n_threads());
  EBB_ASSIGN_OR_RETURN(Graph * graph, s.get_graph({.n_rows = static_cast<std::int32_t>(s.tokens.size()),
                                                   .n_outputs = static_cast<std::int32_t>(s.output_rows.size()),
                                                   .with_mass = s.step.mass_stride > 0,
                                                   .with_queries = s.asks_queries(),
                                                   .with_squares = s.squares.is_asked(),
                                                   .n_parts = s.composed ? s.count_parts() : 1}));
  ggml_backend_tensor_set(graph->tokens(), s.tokens.data(), 0, s.tokens.size() * sizeof(std::int32_t));
  ggml_backend_tensor_set(graph->anchors(), s.anchors.data(), 0, s.anchors.size() * sizeof(std::int32_t));
  // The graph has no use for them where every row is an output.
  if (s.output_rows.size() < s.tokens.size() && !s.output_rows.empty()) {
    ggml_backend_tensor_set(graph->output_rows(), s.output_rows.data(), 0, s.output_rows.size() * sizeof(std::int32_t));
  }
  if (s.composed) {
    graph->composed()->fill(s.step);
    if (graph->composed_mass() != nullptr) graph->composed_mass()->fill(s.step);
  } else {
    // Layers differ in their window alone, and the room that is needed does not depend on it.
    s.scratch.reserve(s.layer_shapes.front(), s.step, s.backend.n_threads());
  }
  const Status computed = s.backend.compute(graph->handle());
  if (s.scratch.take_short()) {
    return error(Code::kOutOfBudget,
                 "memory ran short while attention was computed; take a smaller chunk or fewer threads");
  }
  EBB_RETURN_IF_ERROR(computed);
  s.read_logits(*graph);
  s.read_mass(*graph);
  s.read_queries(*graph);
  s.n_inputs = static_cast<std::int32_t>(inputs.size());
  return {};
}

Status Runner::State::check(std::span<const SequenceInput> inputs) const {
  std::size_t n_rows = 0;
  for (const SequenceInput& input : inputs) {
    const auto n_tokens = static_cast<std::int32_t>(input.tokens.size());
    EBB_CHECK(n_tokens >= 1 && input.n_outputs >= 0 && input.n_outputs <= n_tokens, "{} tokens, {} outputs", n_tokens,
              input.n_outputs);
    EBB_CHECK(input.n_mass_rows >= 0 && input.n_mass_rows <= n_tokens, "mass of {} of {} tokens", input.n_mass_rows,
              n_tokens);
    EBB_CHECK(input.n_slices >= 0 && (input.n_slices == 0 || memory.layout().block_size % input.n_slices == 0),
              "{} slices of blocks of {}", input.n_slices, memory.layout().block_size);
    EBB_CHECK(!composed || !input.sight.squares.is_set(), "composed attention looks at whole tables");
    EBB_CHECK(!composed || input.reliances == nullptr, "composed attention does not say what rows rely on");
    EBB_CHECK(input.tables->end() >= input.first + n_tokens, "tokens up to {} without frames behind {}",
              (input.first + n_tokens).value(), input.tables->end().value());
    n_rows += input.tokens.size();
    for (const Token token : input.tokens) {
      if (token.value() < 0 || token.value() >= model.hparams().n_vocab) {
        return error(Code::kInvalidArgument, "token {} is not in the vocabulary of {}", token.value(),
                     model.hparams().n_vocab);
      }
    }
  }
  if (n_rows == 0 || n_rows > static_cast<std::size_t>(options.max_rows)) {
    return error(Code::kInvalidArgument, "a step of {} tokens; it takes 1 to {}", n_rows, options.max_rows);
  }
  return {};
}

void Runner::State::gather(std::span<const SequenceInput> inputs) {
  tokens.clear();
  anchors.clear();
  output_rows.clear();
  step.sequences.clear();
  step.tables.clear();
  cut_tables.clear();
  for (const SequenceInput& input : inputs) {
    const auto n_tokens = static_cast<std::int32_t>(input.tokens.size());
    const auto row_begin = static_cast<std::int32_t>(tokens.size());
    const Position anchor = input.anchor.value_or(input.first);
    const Span hidden = input.sight.hidden(input.first);
    step.sequences.push_back({.row_begin = row_begin,
                              .n_rows = n_tokens,
                              .first = input.first,
                              .n_outputs = input.n_outputs,
                              .n_mass_rows = input.n_mass_rows,
                              .n_window_rows = std::min(input.n_window_rows, input.n_mass_rows),
                              .queries = input.queries,
                              .tail_queries = input.tail_queries,
                              .n_slices = input.n_slices,
                              .reliances = input.reliances,
                              .sight = input.sight});
    for (std::int32_t i = 0; i < n_tokens; ++i) {
      tokens.push_back(input.tokens[static_cast<std::size_t>(i)].value());
      anchors.push_back((anchor + i).value());
      if (i >= n_tokens - input.n_outputs) output_rows.push_back(row_begin + i);
    }
    for (std::int32_t layer = 0; layer < step.n_layers; ++layer) {
      for (std::int32_t head = 0; head < step.n_kv_heads; ++head) {
        step.tables.push_back(looked_at(input.tables->table(LayerIndex(layer), HeadIndex(head)), hidden));
      }
    }
  }
}

// The table without what is hidden, which attention then never hears of.
BlockTable Runner::State::looked_at(BlockTable table, Span hidden) {
  const auto before = [](Position edge) { return [edge](const TableEntry& entry) { return entry.begin < edge; }; };
  const auto first = std::ranges::partition_point(table, before(hidden.begin));
  const auto last = std::ranges::partition_point(table, before(hidden.end));
  if (hidden.empty() || first == last) return table;
  EBB_CHECK((first == table.begin() || std::prev(first)->span().end <= hidden.begin) &&
                std::prev(last)->span().end <= hidden.end,
            "a block reaches across the edge of what is hidden, {} to {}", hidden.begin.value(), hidden.end.value());
  std::vector<TableEntry>& cut = cut_tables.emplace_back(table.begin(), first);
  cut.insert(cut.end(), last, table.end());
  return cut;
}

// The stride says whether anybody asks.
void Runner::State::prepare_mass() {
  step.mass_stride = 0;
  const auto asks = [](const SequenceRows& rows) { return rows.n_mass_rows > 0 || rows.reliances != nullptr; };
  if (std::ranges::none_of(step.sequences, asks)) return;
  for (const BlockTable& table : step.tables) {
    step.mass_stride = std::max(step.mass_stride, static_cast<std::int32_t>(table.size()));
  }
  mass.begin(step);
  if (!composed) mass.reserve_rows(step);
}

// So many that each sequence's slices are some of them.
std::int32_t Runner::State::count_parts() const {
  std::int32_t n_parts = 1;
  for (const SequenceRows& rows : step.sequences) {
    if (rows.asks_slices()) n_parts = std::lcm(n_parts, rows.n_slices);
  }
  return n_parts;
}

// A graph of this shape, allocated: a kept one, or a new one.
Result<Graph*> Runner::State::get_graph(const GraphShape& shape) {
  const auto kept = std::find_if(graphs.begin(), graphs.end(), [&](const auto& g) { return serves(*g, shape); });
  if (kept != graphs.end()) {
    std::rotate(kept, kept + 1, graphs.end());
    return graphs.back().get();
  }
  std::unique_ptr<Graph> graph = build_graph(shape);
  const std::size_t bytes_before = ggml_gallocr_get_buffer_size(allocator.get(), 0);
  if (!ggml_gallocr_alloc_graph(allocator.get(), graph->handle())) {
    graphs.clear();
    return error(Code::kOutOfBudget, "no memory for the activations of {} rows; use a smaller chunk", shape.n_rows);
  }
  // A larger buffer is another buffer: the graphs kept so far point into the old one.
  if (ggml_gallocr_get_buffer_size(allocator.get(), 0) != bytes_before) graphs.clear();
  if (graphs.size() == kMaxGraphs) graphs.erase(graphs.begin());
  graphs.push_back(std::move(graph));
  return graphs.back().get();
}

bool Runner::State::serves(const Graph& graph, const GraphShape& shape) const {
  return graph.shape() == shape && (!composed || graph.composed()->plan().serves(step, layer_shapes));
}

std::unique_ptr<Graph> Runner::State::build_graph(const GraphShape& shape) {
  GraphAttention attention = {.ops = ops, .team = backend.team(), .memory = &memory, .composed_ops = composed_ops};
  if (!composed) return std::make_unique<Graph>(model, attention, shape);
  ComposedPlan plan = plan_composed(step, layer_shapes, shape.with_mass);
  plan.n_parts = shape.n_parts;
  attention.plan = &plan;
  return std::make_unique<Graph>(model, attention, shape);
}

void Runner::State::read_logits(const Graph& graph) {
  n_outputs = graph.shape().n_outputs;
  if (n_outputs == 0) return;
  const ggml_tensor* tensor = graph.logits();
  if (backend.is_cpu()) {
    logits = static_cast<const float*>(tensor->data);
    return;
  }
  copied_logits.resize(static_cast<std::size_t>(ggml_nelements(tensor)));
  ggml_backend_tensor_get(tensor, copied_logits.data(), 0, ggml_nbytes(tensor));
  logits = copied_logits.data();
}

void Runner::State::read_mass(const Graph& graph) {
  if (step.mass_stride > 0 && graph.composed_mass() != nullptr) graph.composed_mass()->read(step, mass);
}

void Runner::State::read_queries(const Graph& graph) {
  std::vector<float> rows;
  for (std::size_t layer = 0; layer < graph.queries().size(); ++layer) {
    const ggml_tensor* q = graph.queries()[layer];
    rows.resize(static_cast<std::size_t>(ggml_nelements(q)));
    ggml_backend_tensor_get(q, rows.data(), 0, ggml_nbytes(q));
    const std::size_t head_stride = q->nb[1] / sizeof(float);
    const std::size_t row_stride = q->nb[2] / sizeof(float);
    for (const SequenceRows& own : step.sequences) {
      give_queries(own, LayerIndex(static_cast<std::int32_t>(layer)),
                   {.q = rows.data() + static_cast<std::size_t>(own.row_begin) * row_stride,
                    .row_stride = row_stride,
                    .head_stride = head_stride,
                    .first = own.first,
                    .n_rows = own.n_rows},
                   0, 1);
    }
  }
}

}  // namespace ebb
