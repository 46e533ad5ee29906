#include "bench/recorded_sessions.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/report.h"

namespace ebb::recorded_sessions_test {
namespace {

using testing::HasSubstr;

// A folder of this test's own.
class RecordedSessionsTest : public testing::Test {
 protected:
  RecordedSessionsTest() : folder_(std::filesystem::path(testing::TempDir()) / "recorded_sessions_test") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~RecordedSessionsTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, std::string_view text) {
    EXPECT_TRUE(write_text(folder_ / name, text).ok());
    return folder_ / name;
  }

  std::filesystem::path folder_;
};

// A session of n requests: a question, and a call with its result between each two.
RecordedSession session_of(std::size_t n, const char* id = "s") {
  RecordedSession session{.id = id, .messages = Json::array()};
  session.messages.push_back({{"role", "system"}, {"content", "You help."}});
  session.messages.push_back({{"role", "user"}, {"content", "Mend it."}});
  for (std::size_t i = 0; i < n; ++i) {
    session.messages.push_back(
        {{"role", "assistant"}, {"content", nullptr}, {"reasoning_content", fmt::format("Step {}. And more.", i)}});
    session.messages.push_back({{"role", "tool"}, {"tool_call_id", "c"}, {"content", fmt::format("result {}", i)}});
  }
  return session;
}

std::vector<AgentRequest> of_event(const std::vector<AgentRequest>& requests, AgentEvent event) {
  std::vector<AgentRequest> found;
  std::ranges::copy_if(requests, std::back_inserter(found), [&](const AgentRequest& r) { return r.event == event; });
  return found;
}

TEST_F(RecordedSessionsTest, reads_lines_of_several_conversations) {
  const auto path = write("a.jsonl",
                          R"({"conversation_id":"a","turn":1,"role":"user","content":"hi","system":"S","tools":[1]}
{"conversation_id":"b","turn":1,"role":"user","content":"ho"}
{"conversation_id":"a","turn":2,"role":"assistant","reasoning_content":"r","tool_calls":[{"id":"1"}]}
{"conversation_id":"a","turn":3,"role":"tool","tool_results":[{"tool_call_id":"1","content":"x"},{"tool_call_id":"2","content":"y"}]}
)");
  const Result<std::vector<RecordedSession>> sessions = read_recorded_sessions(path);
  ASSERT_TRUE(sessions.ok()) << sessions.status().message();
  ASSERT_EQ(sessions->size(), 2U);
  EXPECT_EQ((*sessions)[0].tools, Json({1}));
  EXPECT_EQ(
      (*sessions)[0].messages,
      Json({{{"role", "system"}, {"content", "S"}},
            {{"role", "user"}, {"content", "hi"}},
            {{"role", "assistant"}, {"content", nullptr}, {"reasoning_content", "r"}, {"tool_calls", {{{"id", "1"}}}}},
            {{"role", "tool"}, {"tool_call_id", "1"}, {"content", "x"}},
            {{"role", "tool"}, {"tool_call_id", "2"}, {"content", "y"}}}));
  EXPECT_EQ((*sessions)[1].messages.size(), 1U);
  EXPECT_TRUE(is_session_record(path));
  EXPECT_TRUE(is_session_record(folder_));
  EXPECT_EQ(read_recorded_sessions(folder_)->size(), 2U);
}

TEST_F(RecordedSessionsTest, says_what_is_wrong_and_where) {
  const auto error_of = [&](std::string_view text) {
    return std::string(read_recorded_sessions(write("x.jsonl", text)).status().message());
  };
  EXPECT_THAT(error_of("{\"role\":\"user\"}\n"), HasSubstr("x.jsonl: line 1: it has no conversation_id"));
  EXPECT_THAT(error_of("{\"conversation_id\":\"a\",\"role\":\"robot\"}\n"), HasSubstr("its role is 'robot'"));
  EXPECT_THAT(error_of("{\"conversation_id\":\"a\",\"role\":\"tool\",\"tool_results\":[3]}\n"), HasSubstr("no object"));
  EXPECT_THAT(error_of("[]\n"), HasSubstr("line 1"));
  std::filesystem::remove(folder_ / "x.jsonl");
  EXPECT_EQ(read_recorded_sessions(folder_).status().code(), Code::kNotFound);
  EXPECT_EQ(read_recorded_sessions(folder_ / "none.jsonl").status().code(), Code::kIo);
  EXPECT_FALSE(is_session_record(folder_));
}

TEST_F(RecordedSessionsTest, events_come_at_their_places) {
  const RecordedSession session = session_of(16);
  const RecordedSession other = session_of(16, "other");
  const std::vector<AgentRequest> requests = make_agent_requests(session, other);
  // 16 of its own, the summary, and two of the other between 10 and 12.
  ASSERT_EQ(requests.size(), 16U + 1U + 2U);
  EXPECT_EQ(of_event(requests, AgentEvent::kReminder).size(), 4U);
  EXPECT_EQ(of_event(requests, AgentEvent::kKilled).size(), 1U);
  EXPECT_EQ(of_event(requests, AgentEvent::kOther).size(), 2U);
  EXPECT_EQ(of_event(requests, AgentEvent::kBeside).size(), 2U);
  EXPECT_EQ(of_event(requests, AgentEvent::kCleared).size(), 1U);
  EXPECT_EQ(of_event(requests, AgentEvent::kSummary).size(), 1U);
  EXPECT_EQ(of_event(requests, AgentEvent::kAnew).size(), 1U);
}

TEST_F(RecordedSessionsTest, a_reminder_stands_in_the_last_message_alone) {
  const RecordedSession session = session_of(16);
  for (const AgentRequest& request : of_event(make_agent_requests(session, session), AgentEvent::kReminder)) {
    const std::string text = request.messages.dump();
    EXPECT_THAT(request.messages.back()["content"].get<std::string>(), HasSubstr("<system-reminder>"));
    EXPECT_EQ(text.find("<system-reminder>"), text.rfind("<system-reminder>"));
  }
}

TEST_F(RecordedSessionsTest, cleared_results_stay_cleared_until_all_is_begun_anew) {
  const RecordedSession session = session_of(16);
  const std::vector<AgentRequest> requests = make_agent_requests(session, session);
  const auto cleared = std::ranges::find(requests, AgentEvent::kCleared, &AgentRequest::event);
  ASSERT_NE(cleared, requests.end());
  const auto n_cleared = [](const AgentRequest& request) {
    return std::ranges::count_if(request.messages, [](const Json& message) {
      return message["content"] == "[Old tool result content cleared]";
    });
  };
  // Of the 12 results so far, all but three.
  EXPECT_EQ(n_cleared(*cleared), 9);
  EXPECT_EQ(n_cleared(*(cleared + 1)), 9);
  const auto anew = std::ranges::find(requests, AgentEvent::kAnew, &AgentRequest::event);
  ASSERT_NE(anew, requests.end());
  EXPECT_EQ(n_cleared(*anew), 0);
  EXPECT_EQ(anew->messages[1]["content"], "Mend it.");
  EXPECT_THAT(anew->messages[2]["content"].get<std::string>(), HasSubstr("- Step 0\n- Step 1\n"));
  EXPECT_EQ(anew->messages.size(), 4U);
  EXPECT_EQ((anew + 1)->messages.size(), 6U);
}

TEST_F(RecordedSessionsTest, a_session_is_cut_behind_what_answers_its_last_request) {
  const RecordedSession session = session_of(16);
  EXPECT_EQ(n_requests(session), 16U);
  EXPECT_EQ(messages_of_request(session, 0).size(), 2U);
  EXPECT_EQ(messages_of_request(session, 3).size(), 8U);
  const RecordedSession cut = first_requests(session, 3);
  EXPECT_EQ(n_requests(cut), 3U);
  EXPECT_EQ(cut.messages.back()["role"], "assistant");
  EXPECT_EQ(n_requests(first_requests(session, 99)), 16U);
  EXPECT_EQ(n_requests(first_requests(session, 0)), 0U);
  EXPECT_TRUE(make_agent_requests(first_requests(session, 0), session).empty());
}

TEST_F(RecordedSessionsTest, a_short_session_is_asked_too) {
  const RecordedSession session = session_of(1);
  for (const AgentRequest& request : make_agent_requests(session, session)) {
    EXPECT_GE(request.messages.size(), 2U);
  }
  EXPECT_TRUE(make_agent_requests(RecordedSession{.messages = Json::array()}, session).empty());
}

}  // namespace
}  // namespace ebb::recorded_sessions_test
