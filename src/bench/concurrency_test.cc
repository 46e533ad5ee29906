#include "bench/concurrency.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "bench/toy_peak.h"
#include "model/random_model.h"

namespace ebb {
namespace {

class ConcurrencyTest : public testing::Test {
 protected:
  ConcurrencyTest() { EXPECT_TRUE(write_random_model({}, path_).ok()); }
  ~ConcurrencyTest() override { std::filesystem::remove(path_); }

  // A toy that takes milliseconds.
  [[nodiscard]] ConcurrencyOptions toy_options() const {
    return {.model = path_,
            .n_threads = 1,
            .counts = {3, 2},
            .n_rounds = 2,
            .n_system = 32,
            .n_own = 9,
            .n_decode = 3,
            .kv_type = RowType::kF32,
            .block_size = 16,
            .peak_sizes = kToyPeak};
  }

  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / fmt::format("ebb_concurrency_test_{}.gguf", getpid());
};

TEST_F(ConcurrencyTest, measures_all_sides_at_each_number_of_sessions_and_at_one) {
  const auto report = run_concurrency(toy_options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->lines.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(report->lines[i].n_sessions, static_cast<std::int32_t>(i) + 1);
    EXPECT_EQ(report->lines[i].ratio.n, 2);
    for (const ConcurrencyFigure& figure : report->lines[i].sides) EXPECT_GT(figure.tokens_per_s.min, 0.0);
  }
}

TEST_F(ConcurrencyTest, all_sides_compute_the_same_logits_and_the_system_prompt_is_in_the_pool_once) {
  const auto report = run_concurrency(toy_options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  for (const ConcurrencyLine& line : report->lines) EXPECT_LT(line.logits_difference, 1e-3) << line.n_sessions;
  EXPECT_EQ(report->n_seen_blocks, 9);
  EXPECT_EQ(report->n_pool_blocks, 5);
}

TEST_F(ConcurrencyTest, refuses_senseless_numbers) {
  ConcurrencyOptions options = toy_options();
  options.counts = {0};
  EXPECT_EQ(run_concurrency(options).status().code(), Code::kInvalidArgument);
  options = toy_options();
  options.n_decode = 0;
  EXPECT_EQ(run_concurrency(options).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ebb
