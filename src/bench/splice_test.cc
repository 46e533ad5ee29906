#include "bench/splice.h"

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

class SpliceTest : public testing::Test {
 protected:
  SpliceTest() { std::filesystem::create_directories(folder_); }
  ~SpliceTest() override { std::filesystem::remove_all(folder_); }

  // A toy that takes milliseconds.
  SpliceOptions toy_options() {
    const Status status = write_random_model({.head_dim = 32}, folder_ / "toy.gguf");
    EXPECT_TRUE(status.ok()) << status.message();
    return {.model = folder_ / "toy.gguf",
            .disk_folder = folder_,
            .n_threads = 1,
            .spans = {40, 20, 16, 40},
            .n_context = 20,
            .n_rounds = 2,
            .n_prefills = 2,
            .n_decode = 33,
            .n_decode_rounds = 2,
            .block_size = 16,
            .sweeps_caches = false,
            .peak_sizes = kToyPeak};
  }

  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("ebb_splice_test_{}", getpid());
};

TEST_F(SpliceTest, measures_every_move_of_every_span_in_every_type) {
  const auto report = run_splice(toy_options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->n_context, 32);
  ASSERT_EQ(report->kv_types.size(), 2U);
  for (const KvSplice& kv : report->kv_types) {
    ASSERT_EQ(kv.lines.size(), 3U);
    for (const SpliceLine& line : kv.lines) {
      ASSERT_EQ(line.figures.size(), kSpliceMoves);
      for (std::size_t i = 0; i < kSpliceMoves; ++i) {
        const SpliceFigure& figure = line.figures[i];
        const auto key = splice_move_key(static_cast<SpliceMove>(i));
        EXPECT_EQ(figure.ms.n, 2) << key;
        EXPECT_GT(figure.ms.min, 0.0) << key;
        EXPECT_TRUE(std::isfinite(figure.prefill_ratio) && figure.prefill_ratio > 0.0) << key;
        EXPECT_TRUE(std::isfinite(figure.gb_per_s)) << key;
      }
      const SpliceFigure& disk = line.figure(SpliceMove::kRecallDisk);
      EXPECT_GT(disk.gb_per_s, 0.0);
      ASSERT_TRUE(disk.copy_share);
      EXPECT_EQ(disk.copy_share->share.n, 2) << "each round has a probe of its own";
      EXPECT_FALSE(line.figure(SpliceMove::kPrefill).copy_share);
      EXPECT_GE(line.figure(SpliceMove::kSaveKept).ms.median, line.figure(SpliceMove::kSaveBehind).ms.median);
    }
  }
}

TEST_F(SpliceTest, spans_are_rounded_up_to_whole_blocks) {
  SpliceOptions options = toy_options();
  options.kv_types = {RowType::kF16};
  options.n_decode = 0;
  const auto report = run_splice(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const auto& lines = report->kv_types[0].lines;
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].n_tokens, 16);
  EXPECT_EQ(lines[1].n_tokens, 32);
  EXPECT_EQ(lines[1].n_asked, 20);
  EXPECT_EQ(lines[2].n_blocks, 3);
  // 2 layers, 2 KV heads of 32, K and V of 2 bytes.
  EXPECT_EQ(lines[2].n_bytes, 48U * 2 * 2 * 32 * 2 * 2);
  EXPECT_FALSE(report->kv_types[0].stall.has_value());
}

TEST_F(SpliceTest, the_decode_stall_compares_both_arms_round_by_round) {
  SpliceOptions options = toy_options();
  options.spans = {16};
  options.kv_types = {RowType::kF16};
  const auto report = run_splice(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const auto& stall = report->kv_types[0].stall;
  ASSERT_TRUE(stall.has_value());
  EXPECT_EQ(stall->n_tokens, 33);
  EXPECT_EQ(stall->slowdown.n, 2);
  EXPECT_GT(stall->slowdown.min, -1.0);
  EXPECT_GT(stall->plain_tokens_per_s.min, 0.0);
}

TEST_F(SpliceTest, leaves_no_files_of_its_own) {
  SpliceOptions options = toy_options();
  options.spans = {16};
  options.n_decode = 0;
  ASSERT_TRUE(run_splice(options).ok());
  const std::filesystem::directory_iterator files(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(SpliceTest, writes_a_table_json_and_a_page) {
  const auto report = run_splice(toy_options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  const std::string text = splice_text(*report);
  for (const char* part :
       {"toy", "q8_0", "32 tokens (for 20)", "recall from RAM, moved", "re-prefill / it", "saving costs"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  ASSERT_TRUE(write_splice_json(folder_ / "splice.json", *report).ok());
  const auto json = nlohmann::json::parse(read("splice.json"));
  EXPECT_EQ(json["kv_types"][1]["spans"].size(), 3U);
  EXPECT_GT(json["kv_types"][0]["spans"][2]["moves"]["recall_disk"]["share_of_copy_bandwidth"]["median"], 0.0);
  EXPECT_EQ(json["kv_types"][0]["decode_stall"]["slowdown"]["n"], 2);
  ASSERT_TRUE(write_splice_html(folder_ / "splice.html", *report).ok());
  const std::string page = read("splice.html");
  EXPECT_NE(page.find("span, tokens (log)"), std::string::npos);
  EXPECT_NE(page.find("time, ms (log)"), std::string::npos);
}

TEST_F(SpliceTest, progress_runs_from_nothing_to_all) {
  SpliceOptions options = toy_options();
  std::vector<double> shares;
  options.progress = [&shares](std::string_view, double share) { shares.push_back(share); };
  ASSERT_TRUE(run_splice(options).ok());
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.front(), 0.0);
  EXPECT_DOUBLE_EQ(shares.back(), 1.0);
  EXPECT_LE(shares[shares.size() - 2], 1.0);
}

TEST_F(SpliceTest, refuses_what_cannot_be_measured) {
  SpliceOptions options = toy_options();
  options.spans = {0};
  EXPECT_EQ(run_splice(options).status().code(), Code::kInvalidArgument);
  options = toy_options();
  options.n_rounds = 0;
  EXPECT_EQ(run_splice(options).status().code(), Code::kInvalidArgument);
  options = toy_options();
  options.spans = {1200};
  EXPECT_EQ(run_splice(options).status().code(), Code::kOutOfBudget);
  options = toy_options();
  options.model = folder_ / "missing.gguf";
  EXPECT_EQ(run_splice(options).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace ebb
