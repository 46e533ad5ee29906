#include "bench/edit_cases.h"

#include <set>

#include <gtest/gtest.h>

#include "bench/recall_tasks_test.h"
#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

class EditCases : public ::testing::Test {
 protected:
  // Bytes: the toy counts those.
  static constexpr std::int32_t kTokens = 9000;

  [[nodiscard]] std::vector<EditCase> make(EditKind kind, std::uint64_t seed = 1) const {
    Result<std::vector<EditCase>> cases =
        make_edit_cases(*vocabulary_, {.n_cases = 12, .n_tokens = kTokens, .message_tokens = 900, .seed = seed}, kind);
    EXPECT_TRUE(cases.ok()) << cases.status().message();
    return cases.ok() ? *std::move(cases) : std::vector<EditCase>();
  }

  static std::string text_of(const Json& messages) {
    std::string text;
    for (const Json& message : messages) text += message["content"].get<std::string>() + "\n";
    return text;
  }

  ToyFile file_{toy_bpe().bytes()};
  std::unique_ptr<Vocabulary> vocabulary_ = *Vocabulary::load(file_.path());
};

TEST_F(EditCases, the_old_value_is_told_before_the_edit_alone_and_the_new_one_behind_it) {
  for (const EditKind kind : kEditKinds) {
    for (const EditCase& one : make(kind)) {
      const std::string before = text_of(one.before);
      const std::string after = text_of(one.after);
      ASSERT_EQ(one.probes.size(), 2U) << name_of(kind);
      const EditProbe& changed = one.probes.front();
      EXPECT_EQ(n_times(before, changed.old_value), 1U) << name_of(kind);
      EXPECT_EQ(n_times(after, changed.old_value), 0U) << name_of(kind);
      EXPECT_EQ(n_times(changed.text, changed.old_value), 0U) << name_of(kind);
      for (const std::string& answer : changed.answers) EXPECT_GE(n_times(after, answer), 1U) << name_of(kind);
      EXPECT_EQ(changed.answers.empty(), kind == EditKind::kCleared);
    }
  }
}

TEST_F(EditCases, what_stands_behind_the_edit_and_is_asked_for_is_there_before_and_after) {
  for (const EditKind kind : kEditKinds) {
    for (const EditCase& one : make(kind)) {
      const EditProbe& behind = one.probes.back();
      EXPECT_EQ(behind.matter, EditMatter::kBehind);
      EXPECT_TRUE(behind.old_value.empty());
      EXPECT_EQ(n_times(text_of(one.before), behind.answers.front()), 1U) << name_of(kind);
      EXPECT_EQ(n_times(text_of(one.after), behind.answers.front()), 1U) << name_of(kind);
    }
  }
}

TEST_F(EditCases, half_of_them_ask_for_what_was_concluded_but_where_all_was_cleared) {
  for (const EditKind kind : kEditKinds) {
    std::size_t n_concluded = 0;
    for (const EditCase& one : make(kind)) n_concluded += one.probes.front().matter == EditMatter::kConcluded ? 1 : 0;
    EXPECT_EQ(n_concluded, kind == EditKind::kCleared ? 0U : 6U) << name_of(kind);
  }
}

TEST_F(EditCases, edits_lie_all_over_the_history) {
  std::set<std::size_t> places;
  for (const EditCase& one : make(EditKind::kChanged)) {
    std::size_t at = 0;
    while (one.before[at] == one.after[at]) ++at;
    places.insert(at);
  }
  EXPECT_GE(places.size(), 6U);
}

TEST_F(EditCases, another_seed_makes_other_cases_and_the_same_one_the_same) {
  EXPECT_EQ(make(EditKind::kSummary)[3].before, make(EditKind::kSummary)[3].before);
  EXPECT_NE(make(EditKind::kSummary)[3].before, make(EditKind::kSummary, 2)[3].before);
}

TEST_F(EditCases, a_history_of_few_messages_is_refused) {
  EXPECT_EQ(
      make_edit_cases(*vocabulary_, {.n_tokens = 1000, .message_tokens = 300}, EditKind::kChanged).status().code(),
      Code::kInvalidArgument);
}

TEST(EditReplies, that_say_the_old_value_are_stale_and_those_that_miss_a_conclusion_too) {
  const EditProbe fact{.answers = {"Anna"}, .old_value = "Boris"};
  EXPECT_EQ(judge(fact, "It is Anna."), EditReply::kRight);
  EXPECT_EQ(judge(fact, "It is Boris."), EditReply::kStale);
  EXPECT_EQ(judge(fact, "It is Anna, not Boris."), EditReply::kStale);
  EXPECT_EQ(judge(fact, "It is Clara."), EditReply::kWrong);
  const EditProbe concluded{.matter = EditMatter::kConcluded, .answers = {"KOLU", "MIRA"}, .old_value = "417"};
  EXPECT_EQ(judge(concluded, "KOLU and MIRA."), EditReply::kRight);
  EXPECT_EQ(judge(concluded, "KOLU."), EditReply::kStale);
  EXPECT_EQ(judge(concluded, "MIRA."), EditReply::kWrong) << "KOLU is given the new value where it is told";
  EXPECT_EQ(judge(concluded, "MIRA, once 417."), EditReply::kStale);
  const EditProbe taken{.answers = {}, .old_value = "Boris"};
  EXPECT_EQ(judge(taken, "I do not know."), EditReply::kRight);
  EXPECT_EQ(judge(taken, "Boris."), EditReply::kStale);
}

// Each message tells a fact, and some kinds of facts have few names.
TEST_F(EditCases, histories_of_many_messages_find_names) {
  for (const EditKind kind : kEditKinds) {
    const Result<std::vector<EditCase>> cases =
        make_edit_cases(*vocabulary_, {.n_cases = 4, .n_tokens = 12000, .message_tokens = 60, .seed = 61}, kind);
    ASSERT_TRUE(cases.ok()) << name_of(kind) << ": " << cases.status().message();
    EXPECT_EQ(cases->size(), 4U);
  }
}

}  // namespace
}  // namespace ebb
