#include "bench/recall_tasks.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/recall_prompts.h"
#include "bench/recall_tasks_test.h"
#include "policy/rare_words.h"
#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

constexpr std::array kAllRecallKinds = {RecallKind::kNeedle, RecallKind::kMultiFact, RecallKind::kTenAtOnce,
                                        RecallKind::kKeyValue};
// Bytes: the toy counts those.
constexpr std::int32_t kTaskTokens = 4000;

std::string context_text(const RecallTask& task) {
  std::string text;
  for (const RecallMessage& message : task.messages) text += message.text + "\n" + message.reply + "\n";
  return text;
}

class RecallTasks : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<RecallTask> make(RecallTaskOptions options) const {
    options.n_tasks = 12;
    options.n_tokens = kTaskTokens;
    options.message_tokens = 1000;
    options.text = text_;
    Result<std::vector<RecallTask>> tasks = make_recall_tasks(*vocabulary_, options);
    EXPECT_TRUE(tasks.ok()) << tasks.status().message();
    return tasks.ok() ? *std::move(tasks) : std::vector<RecallTask>();
  }

  // Every kind in every haystack.
  [[nodiscard]] std::vector<RecallTask> make_all(RecallTaskOptions options) const {
    std::vector<RecallTask> all;
    for (const RecallKind kind : kAllRecallKinds) {
      for (const Haystack haystack :
           {Haystack::kSentences, Haystack::kChatter, Haystack::kText, Haystack::kTopics, Haystack::kNoise}) {
        options.kind = kind;
        options.haystack = haystack;
        std::ranges::move(make(options), std::back_inserter(all));
      }
    }
    return all;
  }

  static std::string make_text() {
    std::string text;
    for (int i = 0; i < 400; ++i)
      text += fmt::format("This is the sentence with the number {} of this text.\n", 10000 + i);
    return text;
  }

  ToyFile file_{toy_bpe().bytes()};
  std::unique_ptr<Vocabulary> vocabulary_ = *Vocabulary::load(file_.path());
  std::string text_ = make_text();
};

TEST_F(RecallTasks, the_same_options_make_the_same_tasks) {
  const RecallTaskOptions options = {.kind = RecallKind::kTenAtOnce, .near_twins = true};
  const std::vector<RecallTask> tasks = make(options);
  const std::vector<RecallTask> again = make(options);
  RecallTaskOptions other = options;
  other.seed = 2;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    EXPECT_EQ(context_text(tasks[t]), context_text(again[t]));
    EXPECT_EQ(tasks[t].questions.front().text, again[t].questions.front().text);
    EXPECT_NE(context_text(tasks[t]), context_text(make(other)[t]));
  }
}

// On every machine and with every library: what is drawn hangs on nothing but the seed.
TEST_F(RecallTasks, the_first_task_is_this_one) {
  const RecallTask task = make({.kind = RecallKind::kNeedle}).front();
  EXPECT_EQ(task.questions[0].text, "Where does Sara Hecas live?");
  EXPECT_EQ(task.questions[0].answer, "Athens");
}

TEST_F(RecallTasks, a_context_is_as_long_as_asked_for) {
  for (const RecallLanguage language : {RecallLanguage::kBundled, RecallLanguage::kEnglish}) {
    for (const RecallTask& task : make_all({.language = language, .near_twins = true, .n_mentions = 2})) {
      std::int32_t n = 0;
      for (const RecallMessage& message : task.messages) {
        n += static_cast<std::int32_t>(vocabulary_->tokenize(message.text)->size() +
                                       vocabulary_->tokenize(message.reply)->size());
      }
      EXPECT_LE(n, kTaskTokens) << name_of(task.kind) << " in " << name_of(task.haystack);
      EXPECT_GT(n, kTaskTokens - 120) << name_of(task.kind) << " in " << name_of(task.haystack);
    }
  }
}

TEST_F(RecallTasks, every_value_is_told_once_and_every_fact_stands_whole_in_a_message) {
  for (const RecallLanguage language : {RecallLanguage::kBundled, RecallLanguage::kEnglish}) {
    for (const RecallTask& task : make_all({.language = language, .near_twins = true, .n_mentions = 2})) {
      const std::string text = context_text(task);
      for (const std::string& value : task.values) {
        EXPECT_EQ(n_times(text, value), 1U) << value << " in\n" << text;
        for (const RecallQuestion& question : task.questions) EXPECT_EQ(n_times(question.text, value), 0U);
      }
      EXPECT_EQ(task.questions.size(), task.kind == RecallKind::kTenAtOnce ? 10U : 1U);
      for (const RecallQuestion& question : task.questions) {
        EXPECT_THAT(task.values, ::testing::Contains(question.answer));
        EXPECT_EQ(n_times(question.fact, question.answer), 1U);
        EXPECT_TRUE(std::ranges::any_of(task.messages, [&](const RecallMessage& message) {
          return message.text.find(question.fact) != std::string::npos;
        }));
        EXPECT_TRUE(is_right("It is " + question.answer + ".", task, question));
      }
    }
  }
}

TEST_F(RecallTasks, a_paraphrase_shares_the_subject_with_its_fact_and_no_other_word) {
  const std::set<std::string> common = {"a",     "and",   "as",  "at",       "by",    "did", "do",  "does", "for",
                                        "go",    "have",  "i",   "in",       "is",    "it",  "me",  "much", "my",
                                        "of",    "on",    "s",   "somebody", "the",   "to",  "was", "what", "when",
                                        "where", "which", "who", "whom",     "would", "you"};
  for (const RecallLanguage language : {RecallLanguage::kBundled, RecallLanguage::kEnglish}) {
    for (const Relation& relation : relations(language)) {
      for (const std::size_t told : {0U, 1U}) {
        for (const char* statement : relation.wordings[told].statements) {
          const std::vector<std::string> said = split_words(fill_sentence(statement, relation, "", ""));
          for (const char* question : relation.wordings[1 - told].questions) {
            for (const std::string& word : split_words(fill_sentence(question, relation, ""))) {
              EXPECT_TRUE(common.contains(word) || std::ranges::find(said, word) == said.end())
                  << statement << " " << question;
            }
          }
        }
      }
    }
  }
}

TEST_F(RecallTasks, contexts_are_the_same_whether_questions_are_paraphrased_or_not) {
  const std::vector<RecallTask> plain = make_all({.near_twins = true});
  const std::vector<RecallTask> other = make_all({.paraphrased = true, .near_twins = true});
  for (std::size_t t = 0; t < plain.size(); ++t) {
    EXPECT_EQ(context_text(plain[t]), context_text(other[t]));
    for (std::size_t q = 0; q < plain[t].questions.size(); ++q) {
      EXPECT_NE(plain[t].questions[q].text, other[t].questions[q].text);
      EXPECT_EQ(plain[t].questions[q].answer, other[t].questions[q].answer);
      EXPECT_EQ(plain[t].questions[q].position, other[t].questions[q].position);
      EXPECT_TRUE(other[t].questions[q].is_paraphrased);
    }
  }
}

TEST_F(RecallTasks, a_twin_differs_in_one_word_of_the_subject) {
  NameSource names(RecallSplit::kTest, 5);
  for (const NameKind kind :
       {NameKind::kThing, NameKind::kPerson, NameKind::kService, NameKind::kTown, NameKind::kWord, NameKind::kHex}) {
    int n_twins = 0;
    for (int i = 0; i < 20; ++i) {
      const std::string name = *names.draw(kind);
      const std::optional<std::string> twin = names.draw_twin(kind, name);
      if (!twin) continue;
      ++n_twins;
      const std::vector<std::string> a = split_words(name);
      const std::vector<std::string> b = split_words(*twin);
      ASSERT_EQ(a.size(), b.size());
      int n_other = 0;
      for (std::size_t w = 0; w < a.size(); ++w) n_other += a[w] == b[w] ? 0 : 1;
      EXPECT_EQ(n_other, 1) << name << " and " << *twin;
    }
    EXPECT_GT(n_twins, 5);
  }
  const RecallTask task = make({.near_twins = true}).front();
  EXPECT_EQ(task.values.size(), 2U);
  EXPECT_TRUE(task.questions[0].has_twin);
}

TEST_F(RecallTasks, splits_share_no_value_and_no_line_of_text) {
  std::set<std::string> values;
  for (const RecallTask& task : make_all({.split = RecallSplit::kTune}))
    values.insert(task.values.begin(), task.values.end());
  for (const RecallTask& task : make_all({.split = RecallSplit::kTest})) {
    for (const std::string& value : task.values) EXPECT_FALSE(values.contains(value)) << value;
  }
  const std::vector<std::string> tune = split_sentences(text_, RecallSplit::kTune);
  const std::vector<std::string> test = split_sentences(text_, RecallSplit::kTest);
  EXPECT_GT(tune.size(), 190U);
  EXPECT_GT(test.size(), 190U);
  for (const std::string& sentence : test) EXPECT_EQ(std::ranges::find(tune, sentence), tune.end()) << sentence;
}

TEST_F(RecallTasks, facts_lie_everywhere) {
  for (const RecallKind kind : kAllRecallKinds) {
    std::vector<double> positions;
    for (const RecallTask& task : make({.kind = kind})) {
      for (const RecallQuestion& question : task.questions) positions.push_back(question.position);
    }
    const auto [least, most] = std::ranges::minmax(positions);
    EXPECT_GE(least, 0.0);
    EXPECT_LT(least, 0.15) << name_of(kind);
    EXPECT_GT(most, 0.85) << name_of(kind);
    EXPECT_LT(most, 1.0);
  }
}

TEST(RecallAnswers, the_value_counts_as_a_word_and_only_where_no_other_value_is_before_it) {
  const RecallTask task = {.values = {"417", "ZUV-417", "Alice Boron", "4170"}};
  const RecallQuestion number = {.answer = "417"};
  const RecallQuestion person = {.answer = "Alice Boron"};
  EXPECT_TRUE(is_right("417", task, number));
  EXPECT_TRUE(is_right("It costs **417** dollars.", task, number));
  EXPECT_TRUE(is_right("The price is 417. Not 4170.", task, number));
  EXPECT_TRUE(is_right("the owner is alice boron", task, person));
  EXPECT_FALSE(is_right("", task, number));
  EXPECT_FALSE(is_right("4170", task, number));
  EXPECT_FALSE(is_right("It is ZUV-417.", task, number));
  EXPECT_FALSE(is_right("1,417", task, number));
  EXPECT_FALSE(is_right("417.5", task, number));
  EXPECT_FALSE(is_right("ZUV-417 or 417", task, number)) << "another value comes first";
  EXPECT_FALSE(is_right("Malice Boron", task, person));
}

TEST_F(RecallTasks, options_that_leave_no_task_are_refused) {
  const auto code = [&](const RecallTaskOptions& options) {
    return make_recall_tasks(*vocabulary_, options).status().code();
  };
  EXPECT_EQ(code({.n_tasks = 0}), Code::kInvalidArgument);
  EXPECT_EQ(code({.n_tokens = 20}), Code::kOutOfBudget);
  EXPECT_EQ(code({.haystack = Haystack::kText}), Code::kInvalidArgument);
  EXPECT_EQ(code({.relations = {"owner", "shoe size"}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.kind = RecallKind::kKeyValue, .n_tokens = 20}), Code::kOutOfBudget);
  EXPECT_EQ(code({.kind = RecallKind::kTenAtOnce, .n_tokens = 100000, .n_facts = 3000}), Code::kInvalidArgument);
}

TEST_F(RecallTasks, facts_are_of_what_was_named) {
  for (const RecallTask& task : make({.kind = RecallKind::kTenAtOnce, .relations = {"manager", "price"}})) {
    for (const RecallQuestion& question : task.questions) {
      EXPECT_TRUE(question.relation == "manager" || question.relation == "price") << question.relation;
    }
  }
  for (const RecallTask& task : make({.kind = RecallKind::kTenAtOnce})) {
    for (const RecallQuestion& question : task.questions) EXPECT_NE(question.relation, "manager");
  }
}

TEST_F(RecallTasks, relations_differ_where_they_are_to) {
  for (const RecallTask& task : make({.kind = RecallKind::kTenAtOnce, .n_facts = 5, .relations_differ = true})) {
    std::set<std::string> told;
    for (const RecallQuestion& question : task.questions) told.insert(question.relation);
    EXPECT_EQ(told.size(), 5U);
  }
}

TEST_F(RecallTasks, a_needle_lies_where_it_is_put) {
  for (const RecallTask& task : make({.kind = RecallKind::kNeedle, .places = {0.25}})) {
    EXPECT_NEAR(task.questions[0].position, 0.25, 0.03);
  }
}

TEST_F(RecallTasks, names_lead_back_to_what_they_name) {
  for (const RecallKind kind : kAllRecallKinds) EXPECT_EQ(find_recall_kind(name_of(kind)), kind);
  EXPECT_EQ(find_haystack("text"), Haystack::kText);
  EXPECT_EQ(find_haystack("noise"), Haystack::kNoise);
  EXPECT_EQ(find_recall_split("test"), RecallSplit::kTest);
  EXPECT_EQ(find_recall_language("english"), RecallLanguage::kEnglish);
  EXPECT_EQ(find_recall_kind("hay"), std::nullopt);
}

TEST_F(RecallTasks, a_model_without_a_template_reads_plain_text) {
  const RecallTask task = make({.language = RecallLanguage::kEnglish}).front();
  const RecallContext chat = *recall_context(*vocabulary_, task);
  EXPECT_THAT(*vocabulary_->detokenize(chat.tokens, SpecialTokens::kShow),
              StartsWith("<|im_start|>user\n" + task.messages.front().text + "<|im_end|>"));
  EXPECT_EQ(chat.ends, Before::kEndedReply);
  EXPECT_TRUE(recall_stops(*vocabulary_).empty());

  const ToyFile file(toy_bpe({.chat_template = ""}).bytes());
  const std::unique_ptr<Vocabulary> base = *Vocabulary::load(file.path());
  const RecallContext plain = *recall_context(*base, task);
  EXPECT_THAT(*base->detokenize(plain.tokens), StartsWith(task.messages.front().text + "\nI have read it.\n\n"));
  const std::vector<Token> question = *recall_question(*base, "Who?", plain.ends);
  EXPECT_EQ(*base->detokenize(question), "\nQuestion: Who?\nAnswer:");
  EXPECT_THAT(recall_stops(*base), ElementsAre("\n"));
}

}  // namespace
}  // namespace ebb
