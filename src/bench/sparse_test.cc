#include "bench/sparse.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "bench/toy_peak.h"
#include "model/random_model.h"

namespace ebb {
namespace {

class SparseTest : public testing::Test {
 protected:
  SparseTest() { std::filesystem::create_directories(folder_); }
  ~SparseTest() override { std::filesystem::remove_all(folder_); }

  // A toy that takes milliseconds.
  SparseOptions toy_options() {
    const Status status = write_random_model({}, folder_ / "toy.gguf");
    EXPECT_TRUE(status.ok()) << status.message();
    return {.model = folder_ / "toy.gguf",
            .text_model = folder_ / "toy.gguf",
            .n_threads = 1,
            .depths = {250, 100},
            .budgets = {128, 64},
            .n_rounds = 2,
            .n_decode = 40,
            .n_text_context = 200,
            .n_text_scored = 20,
            .n_text_generated = 30,
            .kv_type = RowType::kF32,
            .peak_sizes = kToyPeak};
  }

  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("ebb_sparse_test_{}", getpid());
};

TEST_F(SparseTest, measures_every_arm_at_every_depth) {
  const auto report = run_sparse(toy_options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->depths.size(), 2U);
  EXPECT_EQ(report->depths[0].n_tokens, 112) << "whole blocks of 16";
  EXPECT_EQ(report->depths[0].arms.size(), 3U) << "a budget of 128 evicts nothing there";
  ASSERT_EQ(report->depths[1].arms.size(), 5U);
  for (const SparseSpeed& speed : report->depths[1].arms) {
    EXPECT_EQ(speed.tokens_per_s.n, 2) << speed.arm.name();
    EXPECT_GT(speed.tokens_per_s.min, 0.0) << speed.arm.name();
    EXPECT_TRUE(std::isfinite(speed.over_nothing.median)) << speed.arm.name();
    EXPECT_EQ(speed.over_sparse.has_value(), speed.arm.way == SparseWay::kCompact) << speed.arm.name();
  }
}

TEST_F(SparseTest, arms_stay_in_their_budgets_and_evict_or_not) {
  const auto report = run_sparse(toy_options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  for (const SparseSpeed& speed : report->depths[1].arms) {
    if (speed.arm.way == SparseWay::kNothing) {
      EXPECT_EQ(speed.n_evicted_blocks, 0);
      EXPECT_EQ(speed.peak_hot_tokens, 304) << "256 tokens and 40 decoded, in whole blocks";
      continue;
    }
    EXPECT_EQ(speed.peak_hot_tokens, speed.arm.budget_tokens) << speed.arm.name();
    // 80 tokens in rounds that are counted.
    EXPECT_EQ(speed.n_evicted_blocks, 5) << speed.arm.name();
    EXPECT_EQ(speed.n_moved_blocks > 0, speed.arm.way == SparseWay::kCompact) << speed.arm.name();
  }
}

TEST_F(SparseTest, counts_the_keys_and_values_that_a_token_reads) {
  const auto report = run_sparse(toy_options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  const auto& arms = report->depths[1].arms;
  // 2 layers, 2 KV heads of 16, K and V of 4 bytes; on average half of the round's 40 tokens are there.
  EXPECT_DOUBLE_EQ(arms[0].kv_bytes, (256 + 20.5) * 2 * 2 * 16 * 2 * 4);
  EXPECT_LT(arms[1].kv_bytes, arms[2].kv_bytes) << "64 tokens and 128";
  EXPECT_LE(arms[2].kv_bytes, 128.0 * 2 * 2 * 16 * 2 * 4);
}

TEST_F(SparseTest, text_of_no_eviction_is_its_own_measure) {
  const auto text = read_sparse_text(toy_options());
  ASSERT_TRUE(text.ok()) << text.status().message();
  ASSERT_EQ(text->arms.size(), 5U);
  EXPECT_EQ(text->arms[0].overlap, 1.0);
  EXPECT_EQ(text->arms[0].n_evicted_blocks, 0);
  EXPECT_EQ(text->text, "simple sentences");
  for (const SparseQuality& quality : text->arms) {
    EXPECT_TRUE(std::isfinite(quality.perplexity) && quality.perplexity >= 1.0) << quality.arm.name();
    EXPECT_TRUE(quality.overlap >= 0.0 && quality.overlap <= 1.0) << quality.arm.name();
    if (quality.arm.way != SparseWay::kNothing) {
      EXPECT_EQ(quality.peak_hot_tokens, quality.arm.budget_tokens);
      EXPECT_GT(quality.n_evicted_blocks, 0);
    }
  }
}

TEST_F(SparseTest, the_same_text_gives_the_same_figures) {
  const auto once = read_sparse_text(toy_options());
  const auto again = read_sparse_text(toy_options());
  ASSERT_TRUE(once.ok() && again.ok());
  for (std::size_t i = 0; i < once->arms.size(); ++i) {
    EXPECT_EQ(once->arms[i].perplexity, again->arms[i].perplexity);
    EXPECT_EQ(once->arms[i].overlap, again->arms[i].overlap);
  }
}

TEST_F(SparseTest, reads_a_text_of_ones_own) {
  SparseOptions options = toy_options();
  options.text_file = folder_ / "own.txt";
  std::ofstream(options.text_file) << std::string(2000, 'a');
  const auto text = read_sparse_text(options);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(text->text, "own.txt");
  std::ofstream(options.text_file) << "short";
  EXPECT_EQ(read_sparse_text(options).status().code(), Code::kInvalidArgument);
  options.text_file = folder_ / "missing.txt";
  EXPECT_EQ(read_sparse_text(options).status().code(), Code::kNotFound);
}

TEST(WordOverlap, is_the_share_of_words_that_both_have) {
  EXPECT_EQ(word_overlap("a b c", "c b a a"), 1.0);
  EXPECT_EQ(word_overlap("a b", "b c"), 1.0 / 3.0);
  EXPECT_EQ(word_overlap("a", "b"), 0.0);
  EXPECT_EQ(word_overlap("", " \n"), 1.0);
  EXPECT_EQ(word_overlap("", "a"), 0.0);
}

TEST_F(SparseTest, writes_tables_json_and_a_page) {
  const auto report = run_sparse(toy_options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  const std::string text = sparse_text(*report);
  for (const char* part : {"toy", "behind 256 tokens", "sparse 64", "compact 128", "Text: toy reads 200", "K/V read"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  ASSERT_TRUE(write_sparse_json(folder_ / "sparse.json", *report).ok());
  const auto json = nlohmann::json::parse(read("sparse.json"));
  EXPECT_EQ(json["depths"][1]["arms"].size(), 5U);
  EXPECT_GT(json["depths"][1]["arms"][4]["over_sparse"]["median"], 0.0);
  EXPECT_GT(json["text"]["arms"][2]["perplexity"], 1.0);
  ASSERT_TRUE(write_sparse_html(folder_ / "sparse.html", *report).ok());
  const std::string page = read("sparse.html");
  for (const char* part : {"tokens per second", "K = 64", "Jaccard index"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(page.find(">nan<"), std::string::npos);
}

TEST_F(SparseTest, without_a_text_model_only_speed_is_measured) {
  SparseOptions options = toy_options();
  options.text_model.clear();
  options.depths = {100};
  const auto report = run_sparse(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_FALSE(report->text.has_value());
  EXPECT_EQ(sparse_text(*report).find("Text: "), std::string::npos);
}

TEST_F(SparseTest, progress_runs_from_nothing_to_all) {
  SparseOptions options = toy_options();
  std::vector<double> shares;
  options.progress = [&shares](std::string_view, double share) { shares.push_back(share); };
  ASSERT_TRUE(run_sparse(options).ok());
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.front(), 0.0);
  EXPECT_DOUBLE_EQ(shares.back(), 1.0);
}

TEST_F(SparseTest, refuses_what_cannot_be_measured) {
  SparseOptions options = toy_options();
  options.budgets = {48};
  EXPECT_EQ(run_sparse(options).status().code(), Code::kInvalidArgument) << "fewer than four blocks";
  options = toy_options();
  options.depths = {};
  EXPECT_EQ(run_sparse(options).status().code(), Code::kInvalidArgument);
  options = toy_options();
  options.depths = {2000};
  EXPECT_EQ(run_sparse(options).status().code(), Code::kOutOfBudget);
  options = toy_options();
  options.n_text_context = 3000;
  EXPECT_EQ(run_sparse(options).status().code(), Code::kOutOfBudget);
}

}  // namespace
}  // namespace ebb
