#include "bench/duel.h"

#include <string>

#include <gtest/gtest.h>

namespace ebb {
namespace {

// Writes down what is asked of it.
class Scribe final : public Subject {
 public:
  Scribe(std::string name, std::vector<std::string>& log) : name_(std::move(name)), log_(log) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string description() const override { return name_; }
  [[nodiscard]] std::int32_t n_resident() const override { return static_cast<std::int32_t>(seen.size()); }
  Status append(std::span<const Token> tokens) override {
    if (seen.size() + tokens.size() > n_ctx) return error(Code::kOutOfBudget, "{} is full", name_);
    log_.push_back(fmt::format("{}+{}", name_, tokens.size()));
    seen.insert(seen.end(), tokens.begin(), tokens.end());
    n_appended += tokens.size();
    return {};
  }
  [[nodiscard]] std::span<const float> last_logits() const override { return logits; }
  Status truncate(std::int32_t n_tokens) override {
    log_.push_back(fmt::format("{}={}", name_, n_tokens));
    seen.resize(static_cast<std::size_t>(n_tokens));
    return {};
  }

  std::vector<Token> seen;
  std::vector<float> logits = {0.0F, 1.0F, 2.0F, 4.0F};
  std::size_t n_appended = 0;
  std::size_t n_ctx = 1000;

 private:
  std::string name_;
  std::vector<std::string>& log_;
};

struct DuelTest : testing::Test {
  std::vector<std::string> log;
  Scribe a{"a", log};
  Scribe b{"b", log};
  Duel duel{a, b, 4};
};

using Log = std::vector<std::string>;

TEST_F(DuelTest, rounds_alternate_who_begins_and_roll_back) {
  const auto times = duel.time_prompt(8, 2);
  ASSERT_TRUE(times.ok());
  EXPECT_EQ(log, (Log{"a+8", "b+8", "a=0", "b=0",  // not counted
                      "b+8", "a+8", "a=0", "b=0",  //
                      "a+8", "b+8", "a=0", "b=0"}));
  EXPECT_EQ(times->a_ms.size(), 2U);
  EXPECT_EQ(times->b_ms.size(), 2U);
}

TEST_F(DuelTest, decoding_gives_one_token_at_a_time) {
  ASSERT_TRUE(duel.time_decode(2, 1).ok());
  EXPECT_EQ(log, (Log{"a+1", "a+1", "b+1", "b+1", "a=0", "b=0", "b+1", "b+1", "a+1", "a+1", "a=0", "b=0"}));
}

TEST_F(DuelTest, depth_is_filled_once_and_kept) {
  ASSERT_TRUE(duel.fill(100, 64).ok());
  EXPECT_EQ(log, (Log{"a+64", "b+64", "a+36", "b+36"}));
  ASSERT_TRUE(duel.time_prompt(10, 3).ok());
  ASSERT_TRUE(duel.fill(150, 64).ok());
  EXPECT_EQ(a.n_resident(), 150);
  EXPECT_EQ(a.n_appended, 100U + 4 * 10 + 50);
}

TEST_F(DuelTest, both_sides_see_the_same_tokens_of_the_vocabulary) {
  ASSERT_TRUE(duel.fill(200, 64).ok());
  EXPECT_EQ(a.seen, b.seen);
  bool differ = false;
  for (const Token token : a.seen) {
    EXPECT_LT(token.value(), 4);
    EXPECT_GE(token.value(), 0);
    differ |= token != a.seen.front();
  }
  EXPECT_TRUE(differ);
}

TEST_F(DuelTest, reports_each_piece_of_work) {
  int n_steps = 0;
  duel.on_step = [&n_steps] { ++n_steps; };
  ASSERT_TRUE(duel.fill(128, 64).ok());
  EXPECT_EQ(n_steps, 4);
  ASSERT_TRUE(duel.time_decode(5, 2).ok());
  EXPECT_EQ(n_steps, 4 + 6);
}

TEST_F(DuelTest, between_the_sides_of_each_round_that_counts_others_may_measure) {
  duel.amid_round = [this] { log.push_back("probe"); };
  ASSERT_TRUE(duel.time_prompt(8, 2).ok());
  EXPECT_EQ(log, (Log{"a+8", "b+8", "a=0", "b=0",           //
                      "b+8", "probe", "a+8", "a=0", "b=0",  //
                      "a+8", "probe", "b+8", "a=0", "b=0"}));
}

TEST_F(DuelTest, others_come_before_both_sides_and_behind_them_in_turn) {
  duel.beside_round = [this] {
    log.push_back("other");
    return Status();
  };
  ASSERT_TRUE(duel.time_prompt(8, 2).ok());
  EXPECT_EQ(log, (Log{"a+8", "b+8", "a=0", "b=0",           //
                      "other", "b+8", "a+8", "a=0", "b=0",  //
                      "a+8", "b+8", "a=0", "b=0", "other"}));
  duel.beside_round = [] { return error(Code::kIo, "gone"); };
  EXPECT_EQ(duel.time_prompt(8, 2).status().message(), "gone");
}

TEST_F(DuelTest, compares_the_logits_of_both_sides) {
  b.logits = {0.0F, 1.0F, 2.5F, 5.0F};
  ASSERT_TRUE(duel.time_prompt(4, 1).ok());
  EXPECT_DOUBLE_EQ(duel.last_difference(), 1.0 / 5.0);
}

TEST_F(DuelTest, a_side_that_fails_ends_the_duel) {
  b.n_ctx = 10;
  EXPECT_EQ(duel.time_prompt(11, 1).status().message(), "b is full");
  EXPECT_EQ(duel.fill(64, 64).code(), Code::kOutOfBudget);
}

}  // namespace
}  // namespace ebb
