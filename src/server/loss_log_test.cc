#include "server/loss_log.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class LossLogTest : public ::testing::Test {
 protected:
  void note(const std::string& warning) { log_.note(std::vector<std::string>{warning}); }

  std::vector<std::string> lines_;
  LossLog::Clock::time_point now_;
  LossLog log_{[this](std::string_view line) { lines_.emplace_back(line); }, [this] { return now_; }};
};

TEST_F(LossLogTest, a_kind_is_told_once_and_after_a_while_with_how_often_it_came) {
  for (int i = 0; i < 1000; ++i) note("verbosity: has no effect, say it in a message");
  EXPECT_THAT(lines_, ElementsAre("a request lost something: verbosity: has no effect, say it in a message"));
  now_ += LossLog::kPause;
  note("verbosity: has no effect, say it in a message");
  ASSERT_THAT(lines_, SizeIs(2));
  EXPECT_THAT(lines_.back(), HasSubstr("(and 999 more since it was told)"));
}

TEST_F(LossLogTest, plain_names_in_quotes_are_told_apart_and_others_are_not) {
  for (int i = 0; i < 2; ++i) {
    note("tool left out: its type 'web_search' is not function");
    note("tool left out: its type 'image_generation' is not function");
    note("tool left out: its type 'no plain name' is not function");
    note("tool left out: its type 'another one' is not function");
  }
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("'web_search'"), HasSubstr("'image_generation'"), HasSubstr("'...'")));
}

TEST_F(LossLogTest, what_is_no_plain_name_is_not_told_and_no_line_is_begun) {
  note("tool 'say my secret' left out: type 'a\nebb: forged' is one of Anthropic's own");
  note("schema keyword not enforced: a\nb");
  ASSERT_THAT(lines_, SizeIs(2));
  EXPECT_THAT(lines_[0], AllOf(Not(HasSubstr("secret")), Not(HasSubstr("\n")), Not(HasSubstr("forged"))));
  EXPECT_THAT(lines_[1], AllOf(HasSubstr("a b"), Not(HasSubstr("\n"))));
  note("long: " + std::string(10'000, 'x'));
  EXPECT_LT(lines_.back().size(), LossLog::kMostBytes + 60);
}

TEST_F(LossLogTest, a_flood_of_kinds_is_a_bounded_number_of_lines) {
  for (int i = 0; i < 10'000; ++i) note("member" + std::to_string(i) + ": has no effect");
  EXPECT_THAT(lines_, SizeIs(LossLog::kMostKinds + 1));
}

TEST(LossLog, without_anybody_to_tell_nothing_is_told) {
  LossLog log({});
  log.note(std::vector<std::string>{"x: has no effect"});
}

}  // namespace
}  // namespace ebb
