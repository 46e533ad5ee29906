#include "server/legacy_functions.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::HasSubstr;

const Json& read_function() {
  static const Json kRead = Json::parse(R"({"name":"read","parameters":{"type":"object"}})");
  return kRead;
}

Json functions() { return Json::array({read_function()}); }

TEST(LegacyFunctions, become_tools_of_which_one_is_called_at_a_time) {
  const Json named = {{"type", "function"}, {"function", {{"name", "read"}}}};
  for (const auto& [given, choice] : std::vector<std::pair<std::string, Json>>{
           {R"("auto")", "auto"}, {R"("none")", "none"}, {R"({"name":"read"})", named}}) {
    Json body = {{"functions", functions()}, {"function_call", Json::parse(given)}};
    EXPECT_TRUE(has_legacy_functions(body));
    ASSERT_TRUE(say_functions_as_tools(body).ok());
    ASSERT_EQ(body["tools"].size(), 1U);
    EXPECT_EQ(body["tools"][0]["type"], "function");
    EXPECT_EQ(body["tools"][0]["function"], read_function());
    EXPECT_EQ(body["tool_choice"], choice);
    EXPECT_EQ(body["parallel_tool_calls"], false);
  }
}

TEST(LegacyFunctions, calls_of_the_history_and_their_results_belong_together) {
  Json body = {{"messages", Json::parse(R"([{"role":"user","content":"Read it."},
      {"role":"assistant","content":null,"function_call":{"name":"read","arguments":"{}"}},
      {"role":"function","name":"read","content":"nothing"},
      {"role":"assistant","content":"It is empty.","function_call":null}])")}};
  const Json before = body["messages"];
  ASSERT_TRUE(say_functions_as_tools(body).ok());
  const Json& said = body["messages"];
  EXPECT_EQ(said[0], before[0]);
  EXPECT_EQ(said[1]["tool_calls"][0]["function"], before[1]["function_call"]);
  const std::string id = said[1]["tool_calls"][0]["id"];
  EXPECT_EQ(id.size(), 9U);
  EXPECT_EQ(said[2]["role"], "tool");
  EXPECT_EQ(said[2]["tool_call_id"], id);
  EXPECT_EQ(said[3].size(), 2U) << "a null is none";
  EXPECT_FALSE(body.contains("tools"));
}

TEST(LegacyFunctions, a_request_of_today_stays_as_it_is) {
  const Json today = Json::parse(R"({"messages":[{"role":"assistant","tool_calls":[{"id":"a"}]},5],
      "tools":[{"type":"function"}],"tool_choice":"auto","functions":null})");
  Json body = today;
  EXPECT_FALSE(has_legacy_functions(body));
  ASSERT_TRUE(say_functions_as_tools(body).ok());
  EXPECT_EQ(body, today);
}

TEST(LegacyFunctions, what_makes_no_sense_is_refused_with_the_field_named) {
  const auto refusal = [](Json body) { return say_functions_as_tools(body).message(); };
  EXPECT_THAT(refusal({{"functions", functions()}, {"tools", Json::array()}}), HasSubstr("'functions'"));
  EXPECT_THAT(refusal(Json{{"functions", 5}}), HasSubstr("'functions'"));
  EXPECT_THAT(refusal(Json{{"functions", Json::array({5})}}), HasSubstr("'functions[0]'"));
  EXPECT_THAT(refusal(Json{{"function_call", "never"}}), HasSubstr("'function_call'"));
  EXPECT_THAT(refusal({{"function_call", "auto"}, {"tool_choice", "auto"}}), HasSubstr("'function_call'"));
}

}  // namespace
}  // namespace ebb
