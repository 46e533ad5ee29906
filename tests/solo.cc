#include "tests/solo.h"

#include <algorithm>
#include <random>

namespace ebb {
namespace {

constexpr std::int32_t kOpenBlocks = 6;

}  // namespace

std::vector<Token> some_tokens(std::int32_t n_tokens, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Token> tokens;
  for (std::int32_t i = 0; i < n_tokens; ++i) tokens.emplace_back(static_cast<std::int32_t>(random() % 300));
  return tokens;
}

Result<std::unique_ptr<Solo>> Solo::open(const std::filesystem::path& gguf, const SoloOptions& options) {
  std::unique_ptr<Solo> solo(new Solo);
  solo->block_size_ = options.block_size;
  EBB_ASSIGN_OR_RETURN(solo->backend_, Backend::open("cpu", options.n_threads));
  EBB_ASSIGN_OR_RETURN(solo->model_, Model::load(gguf, *solo->backend_, {.use_repacked = options.use_repacked}));
  const FrameLayout layout =
      Runner::layout_for(*solo->model_, *solo->backend_, options.kv_type, options.block_size, options.composed);
  const std::int32_t n_blocks = (options.n_ctx + options.block_size - 1) / options.block_size;
  const std::int32_t n_frames = n_blocks * solo->shape().frames_per_block();
  const std::int32_t n_open_frames = layout.seals() ? kOpenBlocks * solo->shape().frames_per_block() : 0;
  EBB_ASSIGN_OR_RETURN(solo->memory_, FrameMemory::open(*solo->backend_, layout, n_frames, n_open_frames));
  solo->pool_ = std::make_unique<FramePool>(n_frames);
  if (n_open_frames > 0) solo->open_pool_ = std::make_unique<FramePool>(n_open_frames);
  if (options.shuffle_seed != 0) solo->pool_->shuffle_free(options.shuffle_seed);
  EBB_ASSIGN_OR_RETURN(solo->runner_,
                       Runner::create(*solo->model_, *solo->backend_, *solo->memory_, {.max_rows = 512}));
  return solo;
}

BlockShape Solo::shape() const {
  const Hparams& hparams = model_->hparams();
  BlockShape shape{.n_layers = hparams.n_layers, .n_kv_heads = hparams.n_kv_heads, .block_size = block_size_};
  for (std::int32_t l = 0; l < hparams.n_layers; ++l) shape.windows.push_back(hparams.window(LayerIndex(l)));
  return shape;
}

std::unique_ptr<HotSet> Solo::make_hot() {
  return std::make_unique<HotSet>(HotSet::Sources{.pool = *pool_, .open_pool = open_pool_.get()}, shape());
}

Result<SequenceInput> Solo::place(HotSet& hot, std::span<const Token> tokens) {
  EBB_RETURN_IF_ERROR(hot.open(static_cast<std::int32_t>(tokens.size())));
  return SequenceInput{.tokens = tokens, .first = hot.end(), .anchor = hot.next_anchor(), .tables = &hot.tables()};
}

Status Solo::compute(std::span<HotSet* const> hot, std::span<const SequenceInput> inputs) {
  EBB_RETURN_IF_ERROR(runner_->run(inputs));
  for (std::size_t i = 0; i < inputs.size(); ++i) hot[i]->append(inputs[i].tokens);
  return {};
}

Status Solo::compute(HotSet& hot, std::span<const Token> tokens, std::int32_t n_outputs, std::int32_t n_mass_rows) {
  EBB_ASSIGN_OR_RETURN(SequenceInput input, place(hot, tokens));
  input.n_outputs = n_outputs;
  input.n_mass_rows = n_mass_rows;
  HotSet* const one = &hot;
  return compute({&one, 1}, {&input, 1});
}

Result<LogitMatrix> Solo::logits(std::span<const Token> tokens, std::int32_t chunk) {
  hot_ = make_hot();
  LogitMatrix matrix{.n_vocab = model_->hparams().n_vocab};
  while (!tokens.empty()) {
    const auto n = std::min(tokens.size(), static_cast<std::size_t>(chunk));
    EBB_RETURN_IF_ERROR(compute(*hot_, tokens.first(n), static_cast<std::int32_t>(n)));
    for (std::int32_t row = 0; row < static_cast<std::int32_t>(n); ++row) {
      const auto logits = runner_->logits(row);
      matrix.values.insert(matrix.values.end(), logits.begin(), logits.end());
    }
    matrix.n_rows += static_cast<std::int32_t>(n);
    tokens = tokens.subspan(n);
  }
  return matrix;
}

Result<std::vector<Token>> Solo::greedy(std::span<const Token> prompt, std::int32_t n_tokens) {
  hot_ = make_hot();
  EBB_RETURN_IF_ERROR(compute(*hot_, prompt));
  std::vector<Token> tokens;
  while (true) {
    tokens.push_back(argmax(runner_->logits(0)));
    if (static_cast<std::int32_t>(tokens.size()) == n_tokens) return tokens;
    EBB_RETURN_IF_ERROR(compute(*hot_, {&tokens.back(), 1}));
  }
}

}  // namespace ebb
