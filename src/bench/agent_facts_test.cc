#include "bench/agent_facts.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb::agent_facts_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// n requests: a question, and results of 20 lines between.
RecordedSession session_of(std::size_t n) {
  RecordedSession session{.id = "s", .messages = Json::array()};
  session.messages.push_back({{"role", "system"}, {"content", "You help."}});
  session.messages.push_back({{"role", "user"}, {"content", "Mend it."}});
  for (std::size_t i = 0; i < n; ++i) {
    std::string result;
    for (int line = 0; line < 20; ++line) result += fmt::format("{:6}\tint x{} = 417;\n", line, i);
    session.messages.push_back({{"role", "assistant"}, {"content", nullptr}, {"reasoning_content", "I read."}});
    session.messages.push_back({{"role", "tool"}, {"tool_call_id", "c"}, {"content", result + "end"}});
  }
  return session;
}

ToldSession told_of(const RecordedSession& session, const AgentFactOptions& options, std::int32_t index = 0) {
  Result<ToldSession> told = tell_facts(session, index, options);
  EXPECT_TRUE(told.ok()) << told.status().message();
  return *std::move(told);
}

// Where each message says a text, as a line of its own.
std::vector<std::size_t> messages_with(const RecordedSession& session, const std::string& text) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < session.messages.size(); ++i) {
    const Json& content = session.messages[i]["content"];
    if (content.is_string() && ("\n" + content.get<std::string>()).find("\n" + text + "\n") != std::string::npos) {
      found.push_back(i);
    }
  }
  return found;
}

TEST(AgentFactsTest, each_fact_is_told_once_as_a_line_of_a_result_or_a_user_message) {
  const RecordedSession session = session_of(16);
  const ToldSession told = told_of(session, {.n_facts = 8});
  ASSERT_EQ(told.facts.size(), 8U);
  EXPECT_EQ(told.values.size(), 16U);
  std::size_t last = 0;
  for (const AgentFact& fact : told.facts) {
    const std::vector<std::size_t> at = messages_with(told.session, fact.text);
    ASSERT_EQ(at.size(), 1U) << fact.text;
    EXPECT_NE(told.session.messages[at[0]]["role"], "assistant");
    EXPECT_THAT(fact.text, HasSubstr(fact.answer));
    EXPECT_THAT(fact.question, Not(HasSubstr(fact.answer)));
    // Evenly, in order.
    EXPECT_GE(at[0], last);
    last = at[0];
  }
  EXPECT_LT(messages_with(told.session, told.facts.front().text)[0], 6U);
  EXPECT_GT(last, 28U);
}

TEST(AgentFactsTest, what_was_there_stays_as_it_was_around_the_facts_and_their_twins) {
  const RecordedSession session = session_of(16);
  const ToldSession told = told_of(session, {.n_facts = 8});
  ASSERT_EQ(told.session.messages.size(), session.messages.size());
  std::size_t n_more = 0;
  for (std::size_t i = 0; i < session.messages.size(); ++i) {
    if (!session.messages[i]["content"].is_string()) continue;
    const auto before = session.messages[i]["content"].get<std::string>();
    const auto after = told.session.messages[i]["content"].get<std::string>();
    n_more += static_cast<std::size_t>(std::ranges::count(after, '\n') - std::ranges::count(before, '\n'));
    EXPECT_THAT(after, testing::StartsWith(before.substr(0, before.find('\n'))));
  }
  // At most one line end more where a message had none.
  EXPECT_GE(n_more, 16U);
  EXPECT_LE(n_more, 18U);
}

TEST(AgentFactsTest, no_value_stands_in_the_session_before) {
  const RecordedSession session = session_of(16);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const ToldSession told = told_of(session, {.n_facts = 8, .seed = seed});
    EXPECT_EQ(std::ranges::count(told.values, "417"), 0);
    EXPECT_EQ(std::set(told.values.begin(), told.values.end()).size(), told.values.size());
  }
}

TEST(AgentFactsTest, the_same_options_tell_the_same_facts_and_another_session_others) {
  const RecordedSession session = session_of(16);
  const AgentFactOptions options{.n_facts = 4};
  EXPECT_EQ(told_of(session, options).session.messages, told_of(session, options).session.messages);
  const ToldSession first = told_of(session, options, 0);
  for (const AgentFact& fact : told_of(session, options, 1).facts) {
    EXPECT_TRUE(messages_with(first.session, fact.text).empty());
  }
  EXPECT_NE(told_of(session, {.n_facts = 4, .seed = 2}).session.messages, first.session.messages);
}

TEST(AgentFactsTest, facts_of_results_that_are_cleared_on_the_way_are_marked) {
  const RecordedSession session = session_of(16);
  const ToldSession told = told_of(session, {.n_facts = 8});
  const std::vector<AgentRequest> requests = make_agent_requests(told.session, told.session);
  const auto summary = std::ranges::find(requests, AgentEvent::kSummary, &AgentRequest::event);
  ASSERT_NE(summary, requests.end());
  std::size_t n_cleared = 0;
  for (const AgentFact& fact : told.facts) {
    const std::size_t at = messages_with(told.session, fact.text)[0];
    n_cleared += fact.is_cleared ? 1 : 0;
    if (at + 1 >= summary->messages.size()) continue;
    EXPECT_EQ(fact.is_cleared, summary->messages[at]["content"] == "[Old tool result content cleared]");
  }
  // Of 12 results nine are cleared.
  EXPECT_GE(n_cleared, 4U);
  EXPECT_LE(n_cleared, 5U);
}

TEST(AgentFactsTest, a_fact_is_asked_for_behind_the_whole_session_and_nothing_of_it_is_cleared) {
  const RecordedSession session = session_of(16);
  const ToldSession told = told_of(session, {.n_facts = 4});
  for (const AgentFact& fact : told.facts) {
    const Json messages = messages_of_question(told, fact);
    EXPECT_EQ(messages.size(), messages_of_request(session, 15).size() + 1);
    EXPECT_EQ(messages.back(), Json({{"role", "user"}, {"content", fact.question}}));
    for (const AgentFact& other : told.facts) EXPECT_THAT(messages.dump(), HasSubstr(other.text));
  }
}

TEST(AgentFactsTest, a_reply_is_right_that_says_the_value_and_no_other_before_it) {
  const ToldSession told = told_of(session_of(16), {.n_facts = 4});
  const AgentFact& fact = told.facts[0];
  const std::string& other = told.facts[1].answer;
  EXPECT_TRUE(is_right(fmt::format("It is {}, not {}.", fact.answer, other), told, fact));
  EXPECT_FALSE(is_right(fmt::format("It is {}, not {}.", other, fact.answer), told, fact));
  EXPECT_FALSE(is_right("", told, fact));
}

TEST(AgentFactsTest, a_session_without_requests_or_facts_stays_as_it_is) {
  const RecordedSession session = session_of(3);
  EXPECT_EQ(told_of(session, {.n_facts = 0}).session.messages, session.messages);
  EXPECT_TRUE(told_of(first_requests(session, 0), {.n_facts = 4}).facts.empty());
  RecordedSession silent = session;
  for (Json& message : silent.messages) message["content"] = nullptr;
  EXPECT_EQ(tell_facts(silent, 0, {.n_facts = 4}).status().code(), Code::kInvalidArgument);
}

TEST(AgentFactsTest, there_are_names_for_as_many_as_the_command_takes) {
  for (const RecallLanguage language : {RecallLanguage::kBundled, RecallLanguage::kEnglish}) {
    EXPECT_EQ(told_of(session_of(16), {.n_facts = 200, .language = language}).facts.size(), 200U);
  }
}

TEST(AgentFactsTest, a_session_of_one_request_tells_all_in_it) {
  const ToldSession told = told_of(session_of(1), {.n_facts = 3});
  ASSERT_EQ(told.facts.size(), 3U);
  for (const AgentFact& fact : told.facts) {
    EXPECT_THAT(messages_of_question(told, fact).dump(), HasSubstr(fact.text));
    EXPECT_FALSE(fact.is_cleared);
  }
}

}  // namespace
}  // namespace ebb::agent_facts_test
