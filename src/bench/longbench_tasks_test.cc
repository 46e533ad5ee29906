#include "bench/longbench_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kQasper =
    R"({"dataset": "qasper", "input": "Who?", "context": "A gate.", "answers": ["Ann"], "all_classes": null, "length": 2})";
constexpr const char* kTrec =
    R"({"dataset": "trec", "input": "Question: Where?", "context": "Question: Who?\nType: Person", "answers": ["City"], "all_classes": ["City", "Person"]})";

class LongBenchTasksTest : public testing::Test {
 protected:
  Result<std::vector<LongBenchColumn>> read(const LongBenchFileOptions& options) {
    return read_longbench(*vocabulary_, options);
  }

  std::string text_of(const LongBenchItem& item) {
    std::vector<Token> tokens = item.context;
    const std::vector<Token>& more = item.questions.at(0).tokens;
    tokens.insert(tokens.end(), more.begin(), more.end());
    return *vocabulary_->detokenize(tokens, SpecialTokens::kShow);
  }

  const ToyFile file_{toy_bpe().bytes()};
  const std::unique_ptr<Vocabulary> vocabulary_ = *Vocabulary::load(file_.path());
};

TEST_F(LongBenchTasksTest, a_line_becomes_a_prompt_in_the_chat_template_which_ends_in_one_token_to_ask_with) {
  const auto columns = read({.lines = kQasper,
                             .prompts = R"({"qasper": "Read: {context} Then {input} {other}"})",
                             .n_items = 9,
                             .max_tokens = 500});
  ASSERT_TRUE(columns.ok()) << columns.status().message();
  ASSERT_EQ(columns->size(), 1U);
  const LongBenchColumn& column = columns->front();
  EXPECT_EQ(column.name, "qasper");
  EXPECT_EQ(column.metric, LongBenchMetric::kQaF1);
  EXPECT_EQ(column.max_reply_tokens, 128);
  ASSERT_EQ(column.items.size(), 1U);
  EXPECT_EQ(text_of(column.items[0]),
            "<|im_start|>user\nRead: A gate. Then Who? {other}<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(column.items[0].questions[0].tokens.size(), 1U);
  EXPECT_FALSE(column.items[0].was_truncated);
}

TEST_F(LongBenchTasksTest, examples_to_go_on_are_told_without_a_template_and_answered_in_one_line) {
  const auto columns =
      read({.lines = std::string(kTrec) + "\n" + kQasper + "\n" + kTrec, .n_items = 1, .max_tokens = 500});
  ASSERT_TRUE(columns.ok()) << columns.status().message();
  ASSERT_EQ(columns->size(), 2U);
  const LongBenchColumn& trec = columns->front();
  ASSERT_EQ(trec.items.size(), 1U) << "the first one and no more";
  EXPECT_EQ(text_of(trec.items[0]), "Question: Who?\nType: Person\nQuestion: Where?");
  const LongBenchQuestion& question = trec.items[0].questions[0];
  EXPECT_EQ(trec.score("\n\nCity\nPerson", question), 1.0);
  EXPECT_EQ(trec.score("City, Person\n", question), 0.5);
  EXPECT_EQ(trec.score("\n", question), 0.0);
}

TEST_F(LongBenchTasksTest, the_best_of_several_right_answers_counts) {
  const LongBenchColumn column{.metric = LongBenchMetric::kQaF1};
  EXPECT_EQ(column.score("north gate", {.answers = {"south", "the north gate", "north"}}), 1.0);
}

TEST_F(LongBenchTasksTest, prompts_that_are_too_long_lose_their_middle_or_are_refused) {
  const std::string line =
      R"({"dataset": "trec", "input": "", "context": "abcdefghijklmnopqrstuvwxyz", "answers": ["x"], "all_classes": ["x"]})";
  LongBenchFileOptions options{.lines = line, .prompts = R"({"trec": "{context}"})", .n_items = 1, .max_tokens = 11};
  const auto columns = read(options);
  ASSERT_TRUE(columns.ok()) << columns.status().message();
  EXPECT_EQ(text_of(columns->front().items[0]), "abcdevwxyz") << "half of 11 at both ends";
  EXPECT_TRUE(columns->front().items[0].was_truncated);
  options.too_long = TooLong::kRefuse;
  EXPECT_EQ(read(options).status().code(), Code::kOutOfBudget);
  EXPECT_THAT(read(options).status().message(), HasSubstr("line 1: a prompt of 26 tokens, 11 at most"));
}

TEST_F(LongBenchTasksTest, what_cannot_be_measured_is_refused_by_its_line) {
  const auto message = [&](std::string_view line, std::string_view prompts = "") {
    const auto columns = read({.lines = std::string(kQasper) + "\n" + std::string(line),
                               .prompts = std::string(prompts),
                               .n_items = 9,
                               .max_tokens = 500});
    return columns.ok() ? "" : columns.status().message();
  };
  EXPECT_THAT(message(R"({"dataset": "vcsum", "context": "a", "answers": ["b"]})"),
              StartsWith("line 2: no measure for a data set 'vcsum'; there is one for narrativeqa, qasper, "));
  EXPECT_THAT(message(R"({"dataset": "qasper", "context": "a", "answers": []})"), HasSubstr("nothing could be right"));
  EXPECT_THAT(message(R"({"dataset": "qasper", "answers": ["b"]})"), HasSubstr("line 2: Field 'context'"));
  EXPECT_THAT(message(R"({"dataset": "trec", "context": "a", "answers": ["b"]})"), HasSubstr("'all_classes' is empty"));
  EXPECT_THAT(message(kTrec, R"({"qasper": "{context}"})"), HasSubstr("line 2: the file of prompts has none for trec"));
  EXPECT_THAT(message(kTrec, "[]"), HasSubstr("no JSON object of prompts"));
}

TEST_F(LongBenchTasksTest, tasks_of_ours_are_five_columns_of_as_many_contexts) {
  const auto columns = make_longbench_columns(*vocabulary_, {.n_tasks = 2, .n_tokens = 4000});
  ASSERT_TRUE(columns.ok()) << columns.status().message();
  std::vector<std::string> names;
  for (const LongBenchColumn& column : *columns) {
    names.push_back(column.name);
    ASSERT_EQ(column.items.size(), 2U);
    for (const LongBenchItem& item : column.items) {
      EXPECT_EQ(item.questions.size(), column.name == "ten_at_once" ? 10U : 1U);
      for (const LongBenchQuestion& question : item.questions) {
        EXPECT_EQ(column.score(question.answers.at(0), question), 1.0) << column.name;
        EXPECT_EQ(column.score("I do not know", question), 0.0) << column.name;
      }
    }
  }
  EXPECT_THAT(names, ElementsAre("fact_qa", "needle", "multi_fact", "key_value", "ten_at_once"));
}

}  // namespace
}  // namespace ebb
