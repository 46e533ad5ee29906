// What a run of `ebb` needs in memory: weights, the frames of its budget, and little else.
#include <gtest/gtest.h>

#include "cache/frame_layout.h"
#include "model/random_model.h"
#include "tests/files.h"
#include "tests/program.h"

namespace ebb::memory_test {
namespace {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

constexpr std::int32_t kBudgetTokens = 2048;

// About 120 MB of weights and 64 MB of frames, so that the 15 % are felt.
RandomModelSpec spec_of(ggml_type weight_type) {
  return {.n_layers = 8,
          .n_embd = 1024,
          .n_heads = 16,
          .n_kv_heads = 16,
          .head_dim = 64,
          .n_ff = 4096,
          .n_vocab = 8192,
          .n_ctx_train = 8192,
          .weight_type = weight_type};
}

std::size_t frame_bytes(const RandomModelSpec& spec) {
  const FrameLayout layout = {.row_type = RowType::kF16, .head_dim_k = spec.head_dim, .head_dim_v = spec.head_dim};
  return layout.frame_bytes() *
         static_cast<std::size_t>(kBudgetTokens / layout.block_size * spec.n_layers * spec.n_kv_heads);
}

class Memory : public ::testing::TestWithParam<ggml_type> {};

TEST_P(Memory, peak_stays_within_weights_frames_15_percent_and_64_mb) {
  const RandomModelSpec spec = spec_of(GetParam());
  const TemporaryFile file(".gguf");
  ASSERT_TRUE(write_random_model(spec, file.path()).ok());
  const std::size_t weight_bytes = std::filesystem::file_size(file.path());

  // Longer than the budget, so that every frame is used; nothing is kept in the RAM tier, which is a budget of its own.
  std::string prompt;
  while (prompt.size() < 2 * kBudgetTokens) prompt += "abcdefgh ijkl ";
  const ProgramResult result = run_ebb({"run", "-m", file.path().string(), "--raw", "-p", prompt, "-n", "4",
                                        "--kv-budget", std::to_string(kBudgetTokens), "--kv-store", "ram=0"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const double limit = 1.15 * static_cast<double>(weight_bytes + frame_bytes(spec)) + (64 << 20);
  RecordProperty("peak_mb", static_cast<int>(result.peak_resident_bytes >> 20));
  RecordProperty("weights_mb", static_cast<int>(weight_bytes >> 20));
  RecordProperty("frames_mb", static_cast<int>(frame_bytes(spec) >> 20));
  EXPECT_LE(static_cast<double>(result.peak_resident_bytes), limit);
}

// Repacked and copied, mapped as they lie, and both.
INSTANTIATE_TEST_SUITE_P(Weights, Memory, ::testing::Values(GGML_TYPE_Q4_K, GGML_TYPE_Q8_0, GGML_TYPE_F16),
                         [](const auto& instance) { return std::string(ggml_type_name(instance.param)); });

#endif

}  // namespace
}  // namespace ebb::memory_test
