#include "bench/document_cases.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/recall_tasks_test.h"
#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

class DocumentCases : public ::testing::Test {
 protected:
  // Bytes: the toy counts those.
  static constexpr std::int32_t kTokens = 9000;

  [[nodiscard]] static DocumentCaseOptions options(std::int32_t n_tasks = 5) {
    DocumentCaseOptions options;
    options.task.n_tasks = n_tasks;
    options.task.n_tokens = kTokens;
    options.task.split = RecallSplit::kTest;
    return options;
  }

  [[nodiscard]] std::vector<DocumentCase> make(const std::string& name, const DocumentCaseOptions& options) const {
    const Result<std::vector<const DocumentKind*>> kinds = find_document_kinds({&name, 1});
    EXPECT_TRUE(kinds.ok()) << name;
    Result<std::vector<DocumentCase>> cases = kinds->front()->make(*vocabulary_, options);
    EXPECT_TRUE(cases.ok()) << name << ": " << cases.status().message();
    return cases.ok() ? *std::move(cases) : std::vector<DocumentCase>();
  }

  ToyFile file_{toy_bpe().bytes()};
  std::unique_ptr<Vocabulary> vocabulary_ = *Vocabulary::load(file_.path());
};

TEST_F(DocumentCases, questions_about_documents_can_be_longer_than_there_are_names) {
  DocumentCaseOptions long_ones = options(1);
  long_ones.task.n_tokens = 120'000;
  for (const char* const name : {"qa_1", "qa_2"}) {
    const std::vector<DocumentCase> cases = make(name, long_ones);
    ASSERT_EQ(cases.size(), 1U) << name;
    EXPECT_GE(cases.front().text.size(), 120'000U) << name;
  }
}

TEST_F(DocumentCases, every_kind_tells_what_it_asks_for_and_nothing_of_it_in_the_question) {
  for (const DocumentKind& kind : document_kinds()) {
    const std::vector<DocumentCase> cases = make(std::string(kind.name), options());
    ASSERT_GE(cases.size(), 5U) << kind.name;
    for (const DocumentCase& one : cases) {
      EXPECT_TRUE(one.text.ends_with('\n')) << kind.name;
      ASSERT_FALSE(one.probes.empty()) << kind.name;
      for (const DocumentProbe& probe : one.probes) {
        ASSERT_FALSE(probe.answers.empty()) << kind.name;
        for (const std::string& answer : probe.answers) {
          EXPECT_GE(n_times(one.text, answer), 1U) << kind.name << ": " << answer;
          EXPECT_EQ(n_times(probe.text, answer), 0U) << kind.name << ": " << probe.text;
        }
        for (const std::string& fact : probe.facts) EXPECT_THAT(one.text, HasSubstr(fact)) << kind.name;
      }
    }
  }
}

TEST_F(DocumentCases, the_same_options_make_the_same_cases_and_another_seed_others) {
  for (const DocumentKind& kind : document_kinds()) {
    const std::string name(kind.name);
    DocumentCaseOptions other = options();
    other.task.seed = 2;
    EXPECT_EQ(make(name, options())[1].text, make(name, options())[1].text) << name;
    EXPECT_NE(make(name, options())[1].text, make(name, other)[1].text) << name;
    EXPECT_NE(make(name, options())[1].text, make(name, options())[2].text) << name;
  }
}

TEST_F(DocumentCases, a_document_is_about_as_long_as_asked_for) {
  for (const DocumentKind& kind : document_kinds()) {
    if (!kind.takes_length) continue;
    for (const DocumentCase& one : make(std::string(kind.name), options(2))) {
      EXPECT_GT(one.text.size(), kTokens * 4 / 5) << kind.name;
      EXPECT_LT(one.text.size(), kTokens * 6 / 5) << kind.name;
    }
  }
}

TEST_F(DocumentCases, niah_has_each_needle_at_each_depth) {
  std::set<std::pair<std::string, std::string>> cells;
  for (const DocumentCase& one : make("niah", options(25))) {
    const DocumentProbe& probe = one.probes.front();
    const double place = static_cast<double>(one.text.find(probe.facts.front())) / static_cast<double>(one.text.size());
    EXPECT_NEAR(place, std::stod(probe.group.substr(6)) / 100.0, 0.04) << probe.group;
    cells.emplace(probe.group, probe.facts.front());
  }
  EXPECT_EQ(cells.size(), 25U);
}

TEST_F(DocumentCases, multifact_asks_five_relations_in_a_row_and_tenfacts_ten_facts_at_once) {
  for (const DocumentCase& one : make("multifact", options())) {
    EXPECT_TRUE(one.in_a_row);
    ASSERT_EQ(one.probes.size(), 5U);
    EXPECT_EQ(one.probes[4].group, "probe 5");
  }
  for (const DocumentCase& one : make("tenfacts", options())) {
    ASSERT_EQ(one.probes.size(), 1U);
    EXPECT_EQ(one.probes[0].answers.size(), 10U);
    EXPECT_EQ(one.probes[0].facts.size(), 10U);
  }
}

TEST_F(DocumentCases, an_agents_first_file_has_the_setting_and_ten_others_say_nothing_of_it) {
  for (const std::string name : {"agent", "agent_mentions"}) {
    for (const DocumentCase& one : make(name, options())) {
      ASSERT_EQ(one.files.size(), 11U);
      const DocumentProbe& probe = one.probes.front();
      EXPECT_THAT(one.files.front().text, HasSubstr(probe.facts.front()));
      std::size_t n_mentions = 0;
      for (std::size_t i = 1; i < one.files.size(); ++i) {
        EXPECT_EQ(n_times(one.files[i].text, probe.answers.front()), 0U);
        n_mentions += n_times(one.files[i].text, "retries");
      }
      EXPECT_EQ(n_mentions, name == "agent" ? 0U : 60U);
    }
  }
  EXPECT_EQ(make("agent", options())[0].probes[0].answers.front(), "17");
}

TEST_F(DocumentCases, churn_tells_each_fact_in_a_message_between_others) {
  for (const DocumentCase& one : make("churn", options(1))) {
    ASSERT_EQ(one.messages.size(), 84U);
    ASSERT_EQ(one.probes.size(), 20U);
    EXPECT_EQ(one.messages[24].text.find("Read this:"), std::string::npos);
    EXPECT_EQ(one.messages[23].text.find("Read this:"), 0U);
    EXPECT_EQ(one.messages[44].text.find("Read this:"), 0U);
    EXPECT_EQ(one.probes[7].group, "probes 6-10");
  }
}

TEST_F(DocumentCases, far_facts_lie_near_the_beginning_or_all_over) {
  for (const DocumentCase& one : make("distance_passkey", options())) {
    const std::size_t at = one.text.find(one.probes[0].facts[0]);
    EXPECT_GE(at, 128U);
    EXPECT_LT(at, one.text.size() / 3);
  }
  const DocumentCase all_over = make("distance_facts", options(1)).front();
  ASSERT_EQ(all_over.probes.size(), 12U);
  std::set<std::string> groups;
  for (const DocumentProbe& probe : all_over.probes) groups.insert(probe.group);
  EXPECT_GE(groups.size(), 3U);
  EXPECT_EQ(make("hostram", options(1)).front().probes.size(), 20U);
}

TEST_F(DocumentCases, ruler_is_thirteen_families) {
  const std::string name = "ruler";
  const std::vector<const DocumentKind*> kinds = *find_document_kinds({&name, 1});
  std::set<std::string_view> names;
  for (const DocumentKind* kind : kinds) names.insert(kind->name);
  EXPECT_EQ(names.size(), 13U);
  EXPECT_EQ(make("niah_multivalue", options())[0].probes[0].answers.size(), 4U);
  EXPECT_EQ(make("niah_multiquery", options())[0].probes[0].answers.size(), 4U);
  EXPECT_EQ(make("vt", options())[0].probes[0].answers.size(), 5U);
  EXPECT_EQ(make("qa_2", options())[0].probes[0].facts.size(), 2U);
}

TEST_F(DocumentCases, the_words_asked_for_are_those_said_most_often) {
  for (const std::string name : {"cwe", "fwe"}) {
    const DocumentCase one = make(name, options(1)).front();
    std::size_t fewest = one.text.size();
    for (const std::string& word : one.probes[0].answers) fewest = std::min(fewest, n_times(one.text, word));
    std::istringstream words(one.text);
    for (std::string word; words >> word;) {
      if (word.back() == '.' || std::ranges::count(one.probes[0].answers, word) > 0) continue;
      EXPECT_LT(n_times(one.text, word), fewest) << name << ": " << word;
    }
  }
}

TEST_F(DocumentCases, recorded_pairs_are_asked_as_they_are_and_sick_ones_refused) {
  DocumentCaseOptions recorded = options();
  recorded.pairs = R"({"ordered_kv_records": [["a1", "b1"], ["a2", "b2"]], "key": "a2", "value": "b2"})";
  const DocumentCase one = make("kvret", recorded).front();
  EXPECT_EQ(one.probes[0].answers.front(), "b2");
  EXPECT_EQ(one.probes[0].group, "2 keys");
  const std::string name = "kvret";
  const DocumentKind* const kind = find_document_kinds({&name, 1})->front();
  for (const std::string_view sick :
       {R"({"ordered_kv_records": [["a1", "b1"]], "key": "a2"})", R"({"ordered_kv_records": [["a1"]], "key": "a1"})",
        R"({"key": "a1"})", "no JSON"}) {
    recorded.pairs = sick;
    EXPECT_FALSE(kind->make(*vocabulary_, recorded).ok()) << sick;
  }
}

TEST_F(DocumentCases, a_kind_that_there_is_not_is_named) {
  const std::string name = "hay";
  EXPECT_THAT(find_document_kinds({&name, 1}).status().message(), HasSubstr("'hay'"));
}

TEST(DocumentScore, of_several_answers_each_is_a_part_and_of_one_none_may_stand_before_it) {
  const DocumentProbe several{.answers = {"417", "zuvor", "Paris", "rain"}};
  EXPECT_DOUBLE_EQ(score_of("It is Paris, then 417.", several), 0.5);
  const DocumentProbe one{.answers = {"417"}, .values = {"417", "418"}};
  EXPECT_DOUBLE_EQ(score_of("It is 417, not 418.", one), 1.0);
  EXPECT_DOUBLE_EQ(score_of("It is 418, not 417.", one), 0.0);
}

}  // namespace
}  // namespace ebb
