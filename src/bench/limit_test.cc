#include "bench/limit.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "model/random_model.h"

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A model that knows nothing, and computes tokens in no time.
class LimitTest : public testing::Test {
 protected:
  LimitTest() { EXPECT_TRUE(write_random_model({}, path_).ok()); }
  ~LimitTest() override { std::filesystem::remove(path_); }

  // Room for 16 blocks of 16.
  [[nodiscard]] LimitOptions options(LimitMode mode) const {
    return {.model = path_,
            .mode = mode,
            .n_threads = 1,
            .block_size = 16,
            .policies = {"none"},
            .pool_tokens = 256,
            .session_tokens = 64,
            .prompts = std::vector<std::string>(12, std::string(40, 'x'))};
  }

  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / fmt::format("ebb_limit_test_{}.gguf", getpid());
};

TEST_F(LimitTest, without_eviction_a_text_ends_where_the_pool_is_full) {
  const Result<LimitReport> report = run_limit(options(LimitMode::kGenLength));
  ASSERT_TRUE(report.ok()) << report.status().message();
  const LimitArm& arm = report->arms.at(0);
  EXPECT_EQ(arm.end, LimitEnd::kExhausted);
  EXPECT_THAT(limit_text(*report), HasSubstr("Cache size exhausted; longest text: 217 tokens"));
  ASSERT_EQ(arm.rounds.size(), 9U);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(arm.rounds[i].n_asked, 1 << i);
    EXPECT_EQ(arm.rounds[i].n_generated, (1 << i) + 1);
    EXPECT_FALSE(arm.rounds[i].is_full);
    EXPECT_LE(arm.rounds[i].mean_usage, arm.rounds[i].most_usage);
  }
  // 40 tokens of prompt and 216 of text have a place; the last token was drawn and has none.
  EXPECT_EQ(arm.rounds[8].n_generated, 217);
  EXPECT_EQ(arm.rounds[8].most_usage, 1.0);
  EXPECT_TRUE(arm.rounds[8].is_full);
  EXPECT_FALSE(arm.rounds[8].is_late);
  EXPECT_GT(arm.rounds[8].resident_bytes, std::size_t{1} << 20);
}

TEST_F(LimitTest, with_eviction_a_text_goes_on_until_time_is_over) {
  LimitOptions asked = options(LimitMode::kGenLength);
  asked.policies = {"streaming", "h2o"};
  asked.timeout_s = 0.2;
  const Result<LimitReport> report = run_limit(asked);
  ASSERT_TRUE(report.ok()) << report.status().message();
  for (const LimitArm& arm : report->arms) {
    EXPECT_EQ(arm.end, LimitEnd::kTime);
    EXPECT_TRUE(arm.rounds.back().is_late);
    for (const LimitRound& round : arm.rounds) {
      EXPECT_LE(round.most_usage, 64.0 / 256);
      EXPECT_FALSE(round.is_full);
    }
  }
  EXPECT_THAT(limit_text(*report), HasSubstr("Maximum generation time reached"));
}

TEST_F(LimitTest, the_most_prompts_that_fit_are_found_by_halving) {
  LimitOptions asked = options(LimitMode::kGenThroughput);
  asked.max_tokens = 20;  // 40 and 20 tokens: four blocks of 16, and less than one free is full
  Result<LimitReport> report = run_limit(asked);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->arms.at(0).end, LimitEnd::kExhausted);
  EXPECT_EQ(report->arms.at(0).most, 3);
  std::vector<std::int32_t> asked_for;
  for (const LimitRound& round : report->arms.at(0).rounds) asked_for.push_back(round.n_asked);
  EXPECT_THAT(asked_for, ElementsAre(1, 2, 4, 3));
  EXPECT_THAT(limit_text(*report), HasSubstr("Approximate highest throughput: 3 prompts"));

  // 100 tokens each would be seven blocks; with eviction four are enough.
  asked.max_tokens = 60;
  asked.policies = {"none", "streaming"};
  report = run_limit(asked);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->arms.at(0).most, 2);
  EXPECT_EQ(report->arms.at(1).most, 3);
}

TEST_F(LimitTest, prompts_that_run_out_end_it_and_say_so) {
  LimitOptions asked = options(LimitMode::kGenThroughput);
  asked.max_tokens = 1;
  asked.prompts.resize(3);
  const Result<LimitReport> report = run_limit(asked);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->arms.at(0).end, LimitEnd::kOutOfPrompts);
  EXPECT_EQ(report->arms.at(0).most, 3);
  EXPECT_THAT(limit_text(*report), HasSubstr("No more prompts"));
}

TEST_F(LimitTest, rounds_of_throughput_have_a_timeout_too) {
  LimitOptions asked = options(LimitMode::kGenThroughput);
  asked.timeout_s = 0.0;
  const Result<LimitReport> report = run_limit(asked);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->arms.at(0).end, LimitEnd::kTime);
  EXPECT_EQ(report->arms.at(0).rounds.size(), 1U);
  EXPECT_THAT(limit_text(*report), HasSubstr("Maximum generation time reached; at least 0 prompts"));
}

TEST_F(LimitTest, the_csv_has_the_columns_of_the_checker_first) {
  Result<LimitReport> report = run_limit(options(LimitMode::kGenLength));
  ASSERT_TRUE(report.ok()) << report.status().message();
  const std::filesystem::path csv = path_.string() + ".csv";
  ASSERT_TRUE(write_limit_csv(csv, *report).ok());
  std::ostringstream text;
  text << std::ifstream(csv).rdbuf();
  std::filesystem::remove(csv);
  EXPECT_THAT(text.str(), StartsWith("length,result length,avg %,max %,RSS GB,policy\n1,2,"));
  EXPECT_THAT(text.str(), HasSubstr("\n256,217,"));
}

TEST_F(LimitTest, what_would_not_measure_the_pool_is_refused) {
  const auto message = [&](LimitMode mode, const auto& change) {
    LimitOptions asked = options(mode);
    change(asked);
    const Result<LimitReport> report = run_limit(asked);
    return report.ok() ? "" : report.status().message();
  };
  EXPECT_THAT(message(LimitMode::kGenLength, [](auto& of) { of.pool_tokens = 4096; }),
              HasSubstr("ends with the model's context of 2048"));
  EXPECT_THAT(message(LimitMode::kGenThroughput, [](auto& of) { of.max_tokens = 2040; }), HasSubstr("do not fit"));
  EXPECT_THAT(message(LimitMode::kGenLength, [](auto& of) { of.session_tokens = 48; }), HasSubstr("give 64 to 256"));
  EXPECT_THAT(message(LimitMode::kGenLength, [](auto& of) { of.prompts = {""}; }), HasSubstr("prompt 1 is empty"));
  EXPECT_THAT(message(LimitMode::kGenLength, [](auto& of) { of.policies = {"magic"}; }), HasSubstr("magic"));
}

TEST(LimitPrompts, are_read_from_json_lines) {
  EXPECT_THAT(*read_limit_prompts("{\"prompt\": \"one\", \"id\": 1}\n{\"prompt\": \"two\"}\n"),
              ElementsAre("one", "two"));
  EXPECT_THAT(read_limit_prompts("{\"text\": \"one\"}").status().message(), HasSubstr("line 1: Field 'prompt'"));
}

}  // namespace
}  // namespace ebb
