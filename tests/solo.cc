#include "tests/solo.h"

#include <algorithm>

namespace ebb {
namespace {

constexpr std::int32_t kOpenBlocks = 6;

}  // namespace

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

Residency::Shape Solo::shape() const {
  return {
      .n_layers = model_->hparams().n_layers, .n_kv_heads = model_->hparams().n_kv_heads, .block_size = block_size_};
}

std::unique_ptr<Residency> Solo::make_residency() {
  return std::make_unique<Residency>(*pool_, shape(), open_pool_.get());
}

Status Solo::place(Residency& residency, std::int32_t n_tokens) {
  const std::int32_t block_size = residency.shape().block_size;
  // What the last step filled is sealed by now.
  for (std::int32_t b = 0; b < residency.n_blocks(); ++b) {
    if (residency.span(BlockIndex(b)).n_tokens() == block_size) residency.seal(BlockIndex(b));
  }
  while (n_tokens > 0) {
    const std::int32_t n_blocks = residency.n_blocks();
    if (n_blocks == 0 || residency.span(BlockIndex(n_blocks - 1)).n_tokens() == block_size) {
      Result<BlockIndex> opened = residency.open_block(residency.end());
      if (!opened.ok()) return opened.status();
    }
    const Span last = residency.span(BlockIndex(residency.n_blocks() - 1));
    const std::int32_t n = std::min(n_tokens, block_size - last.n_tokens());
    residency.append(n);
    n_tokens -= n;
  }
  const BlockIndex last(residency.n_blocks() - 1);
  return residency.span(last).n_tokens() < block_size ? residency.hold_open(last) : Status();
}

Status Solo::append(std::span<const Token> tokens, std::int32_t n_outputs) {
  const Position first = residency_->end();
  EBB_RETURN_IF_ERROR(place(*residency_, static_cast<std::int32_t>(tokens.size())));
  const SequenceInput input = {.tokens = tokens, .first = first, .residency = residency_.get(), .n_outputs = n_outputs};
  return runner_->run({&input, 1});
}

Result<LogitMatrix> Solo::logits(std::span<const Token> tokens, std::int32_t chunk) {
  residency_ = make_residency();
  LogitMatrix matrix{.n_vocab = model_->hparams().n_vocab};
  while (!tokens.empty()) {
    const auto n = std::min(tokens.size(), static_cast<std::size_t>(chunk));
    EBB_RETURN_IF_ERROR(append(tokens.first(n), static_cast<std::int32_t>(n)));
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
  residency_ = make_residency();
  EBB_RETURN_IF_ERROR(append(prompt, 1));
  std::vector<Token> tokens;
  while (true) {
    tokens.push_back(argmax(runner_->logits(0)));
    if (static_cast<std::int32_t>(tokens.size()) == n_tokens) return tokens;
    EBB_RETURN_IF_ERROR(append({&tokens.back(), 1}, 1));
  }
}

}  // namespace ebb
