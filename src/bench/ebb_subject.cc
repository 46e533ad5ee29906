#include "bench/ebb_subject.h"

#include <algorithm>

#include "cache/frame_memory.h"
#include "cache/frame_pool.h"
#include "cache/hot_set.h"
#include "device/backend.h"
#include "model/attention.h"
#include "model/model.h"
#include "model/runner.h"

namespace ebb {

// In the order in which they stand on each other.
struct EbbSubject::State {
  EbbSubjectOptions options;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  std::unique_ptr<FrameMemory> memory;
  std::unique_ptr<FramePool> pool;
  std::unique_ptr<Runner> runner;
  std::unique_ptr<HotSet> hot;
};

EbbSubject::EbbSubject(std::unique_ptr<State> state) : state_(std::move(state)) {}
EbbSubject::~EbbSubject() = default;

Result<std::unique_ptr<EbbSubject>> EbbSubject::load(const std::filesystem::path& gguf,
                                                     const EbbSubjectOptions& options) {
  std::unique_ptr<State> s(new State{.options = options});
  EBB_ASSIGN_OR_RETURN(s->backend, Backend::open("cpu", options.n_threads));
  EBB_ASSIGN_OR_RETURN(s->model, Model::load(gguf, *s->backend, {.use_repacked = options.use_repacked}));
  const Hparams& hparams = s->model->hparams();
  const BlockShape shape = {
      .n_layers = hparams.n_layers, .n_kv_heads = hparams.n_kv_heads, .block_size = options.block_size};
  const FrameLayout layout = Runner::layout_for(*s->model, *s->backend, options.kv_type, options.block_size);
  EBB_RETURN_IF_ERROR(layout.validate());
  const std::int32_t n_blocks = (options.n_ctx + options.block_size - 1) / options.block_size;
  const std::int32_t n_frames = n_blocks * shape.frames_per_block();
  EBB_ASSIGN_OR_RETURN(s->memory, FrameMemory::open(*s->backend, layout, n_frames));
  s->pool = std::make_unique<FramePool>(n_frames);
  EBB_ASSIGN_OR_RETURN(s->runner, Runner::create(*s->model, *s->backend, *s->memory, {.max_rows = options.chunk}));
  s->hot = std::make_unique<HotSet>(HotSet::Sources{.pool = *s->pool}, shape);
  return std::unique_ptr<EbbSubject>(new EbbSubject(std::move(s)));
}

std::string EbbSubject::description() const {
  const State& s = *state_;
  return fmt::format("ebb, {} kernels, {} KV in blocks of {}, {} rows a step, repacked weights {}",
                     kernel_set_name(current_kernel_set()), row_type_name(s.options.kv_type), s.options.block_size,
                     s.options.chunk, s.options.use_repacked ? "on" : "off");
}

std::int32_t EbbSubject::n_resident() const { return state_->hot->end().value(); }
std::int32_t EbbSubject::n_vocab() const { return state_->model->hparams().n_vocab; }

Status EbbSubject::append(std::span<const Token> tokens) {
  const auto chunk = static_cast<std::size_t>(state_->options.chunk);
  while (!tokens.empty()) {
    const std::size_t n = std::min(tokens.size(), chunk);
    EBB_RETURN_IF_ERROR(step(tokens.first(n), n == tokens.size()));
    tokens = tokens.subspan(n);
  }
  return {};
}

Status EbbSubject::step(std::span<const Token> tokens, bool wants_logits) {
  State& s = *state_;
  const Position first = s.hot->end();
  EBB_RETURN_IF_ERROR(s.hot->open(static_cast<std::int32_t>(tokens.size())));
  const SequenceInput input = {
      .tokens = tokens, .first = first, .tables = &s.hot->tables(), .n_outputs = wants_logits ? 1 : 0};
  EBB_RETURN_IF_ERROR(s.runner->run({&input, 1}));
  s.hot->append(tokens);
  return {};
}

std::span<const float> EbbSubject::last_logits() const { return state_->runner->logits(0); }

Status EbbSubject::truncate(std::int32_t n_tokens) {
  EBB_CHECK(n_tokens >= 0 && n_tokens <= n_resident(), "{} of {} tokens", n_tokens, n_resident());
  state_->hot->cut(Position(n_tokens));
  return {};
}

ModelTraffic EbbSubject::traffic() const { return traffic_of(*state_->model, state_->memory->layout()); }

namespace {

// Rows beside quantised weights are rounded to bytes, by us as by others.
MultiplyType multiply_type_of(ggml_type type) {
  if (ggml_is_quantized(type)) return MultiplyType::kInt8;
  return type == GGML_TYPE_BF16 ? MultiplyType::kBf16 : MultiplyType::kF32;
}

}  // namespace

ModelTraffic traffic_of(const Model& model, const FrameLayout& layout) {
  const Hparams& hparams = model.hparams();
  const bool tied = model.file().find_tensor("output.weight") == nullptr;
  ModelTraffic traffic;
  std::array<std::int64_t, kMultiplyTypes> n_weights{};
  for (const TensorInfo& tensor : model.file().tensors()) {
    const bool is_embedding = tensor.name == "token_embd.weight";
    if (is_embedding && !tied) continue;
    const bool is_output = is_embedding || tensor.name == "output.weight";
    traffic.weight_bytes += tensor.n_bytes;
    (is_output ? traffic.n_output_weights : traffic.n_layer_weights) += tensor.n_elements();
    n_weights[static_cast<std::size_t>(multiply_type_of(tensor.type))] += tensor.n_elements();
  }
  traffic.multiply_type = static_cast<MultiplyType>(std::ranges::max_element(n_weights) - n_weights.begin());
  traffic.kv_bytes_per_token = layout.token_bytes() * hparams.n_layers * hparams.n_kv_heads;
  traffic.attention_flop = 2.0 * hparams.n_layers * hparams.n_heads * (hparams.head_dim_k + hparams.head_dim_v);
  return traffic;
}

}  // namespace ebb
