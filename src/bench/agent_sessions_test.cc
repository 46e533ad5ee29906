#include "bench/agent_sessions.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/parse_json.h"

namespace ebb::agent_sessions_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

AskedFact fact_of(bool is_cleared, FactVerdict ours, FactVerdict theirs) {
  return {.fact = {.text = "The code of the red gate is 4417.",
                   .question = "What is the code of the red gate?",
                   .answer = "4417",
                   .is_cleared = is_cleared},
          .session = "s",
          .n_tokens = 900,
          .replies = {{.verdict = ours, .text = "4417"}, {.verdict = theirs, .text = "HTTP 400: too long"}}};
}

// Two contenders, with a fact right by both, one right by ours alone, and two that the peer refuses.
AgentSessionsReport report_of() {
  using enum FactVerdict;
  AgentMemory memory{.share = 1.0, .n_tokens = 1024};
  memory.asked = {
      {.session = "s", .n_tokens = 800, .answers = {{.ms = 5.0, .n_prompt = 800}, {.ms = 9.0, .n_prompt = 800}}}};
  memory.facts = {fact_of(false, kRight, kRight), fact_of(false, kRight, kWrong), fact_of(true, kRight, kRefused),
                  fact_of(true, kWrong, kRefused)};
  memory.peak_resident_bytes = {1U << 20U, 1U << 20U};
  return {.model = "m.gguf",
          .n_sessions = 1,
          .contenders = {"ebb", "llama-server"},
          .has_peer = true,
          .memories = {memory}};
}

TEST(AgentSessionsReportTest, counts_facts_and_tells_refused_from_wrong_ones) {
  const AgentMemory memory = report_of().memories[0];
  const FactCounts theirs = count_facts(memory, 1, CountedFacts::kAll);
  EXPECT_EQ(theirs.n_asked, 4);
  EXPECT_EQ(theirs.n_right, 1);
  EXPECT_EQ(theirs.n_refused, 2);
  const FactCounts cleared = count_facts(memory, 0, CountedFacts::kCleared);
  EXPECT_EQ(cleared.n_asked, 2);
  EXPECT_EQ(cleared.n_right, 1);
  EXPECT_EQ(cleared.n_refused, 0);
}

TEST(AgentSessionsReportTest, the_table_says_what_each_still_knows) {
  const std::string text = agent_sessions_text(report_of());
  EXPECT_THAT(text, ContainsRegex("ebb +3 of 4: 75 % .30-95. +1 +0 +1 of 2"));
  EXPECT_THAT(text, ContainsRegex("llama-server +1 of 4: 25 % .5-70. +1 +2 +0 of 2"));
}

TEST(AgentSessionsReportTest, prompts_that_are_not_the_same_to_both_are_told) {
  AgentSessionsReport report = report_of();
  EXPECT_THAT(agent_sessions_text(report), Not(HasSubstr("other prompts")));
  report.memories[0].asked[0].answers[1].n_prompt = 700;
  EXPECT_THAT(agent_sessions_text(report), HasSubstr("other prompts (ebb: 800 tokens, llama-server: 700)"));
}

TEST(AgentSessionsReportTest, of_no_facts_nothing_is_said) {
  AgentSessionsReport report = report_of();
  report.memories[0].facts.clear();
  EXPECT_THAT(agent_sessions_text(report), Not(HasSubstr("facts")));
}

TEST(AgentSessionsReportTest, the_json_has_each_reply_and_the_page_a_plot) {
  const auto folder = std::filesystem::path(testing::TempDir());
  ASSERT_TRUE(write_agent_sessions_json(folder / "agent_sessions_test.json", report_of()).ok());
  ASSERT_TRUE(write_agent_sessions_html(folder / "agent_sessions_test.html", report_of()).ok());
  const auto read = [&](const char* name) {
    std::ifstream file(folder / name);
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::filesystem::remove(folder / name);
    return text;
  };
  const Result<Json> json = parse_json(read("agent_sessions_test.json"));
  ASSERT_TRUE(json.ok());
  const Json& memory = (*json)["memories"][0];
  EXPECT_EQ(memory["facts"].size(), 4U);
  EXPECT_EQ(memory["facts"][3]["replies"][1]["verdict"], "refused");
  EXPECT_EQ(memory["facts"][3]["is_cleared"], true);
  EXPECT_EQ(memory["contenders"][0]["facts"]["n_right"], 3);
  EXPECT_EQ(memory["contenders"][1]["facts"]["n_refused"], 2);
  EXPECT_THAT(read("agent_sessions_test.html"), HasSubstr("Facts asked for when the session is over"));
}

}  // namespace
}  // namespace ebb::agent_sessions_test
