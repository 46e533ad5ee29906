#include "server/responses_request.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

Json messages_of(const char* input) {
  const Json body = {{"input", Json::parse(input)}};
  return read_responses_request(body).value().chat["messages"];
}

TEST(ResponsesRequest, an_empty_item_of_the_assistant_takes_nothing_from_what_it_said_before) {
  const Json said = messages_of(R"([
      {"role":"user","content":"q"},
      {"role":"assistant","content":"Noted."},
      {"role":"assistant","content":""},
      {"type":"function_call","call_id":"1","name":"read","arguments":"{}"},
      {"role":"assistant","content":[]}])");
  ASSERT_EQ(said.size(), 2U) << said;
  EXPECT_EQ(said[1]["content"], "Noted.");
  EXPECT_EQ(said[1]["tool_calls"].size(), 1U);
}

TEST(ResponsesRequest, text_of_the_assistant_behind_text_is_a_message_of_its_own) {
  const Json said = messages_of(R"([{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}])");
  ASSERT_EQ(said.size(), 2U) << said;
  EXPECT_EQ(said[1]["content"], "b");
}

TEST(ResponsesRequest, an_empty_input_is_refused_under_its_own_name) {
  const Result<ResponsesRequest> request = read_responses_request({{"input", Json::array()}});
  EXPECT_NE(request.status().message().find("Field 'input'"), std::string::npos);
}

TEST(ResponsesRequest, fields_of_sampling_reuse_and_eviction_are_passed_on) {
  const Json body = {{"input", "q"},
                     {"typical_p", 0.5},
                     {"xtc_probability", 0.5},
                     {"seed", 7},
                     {"repeat_last_n", 7},
                     {"grammar", "root ::= \"x\""},
                     {"kv_reuse", "approximate"},
                     {"kv_reuse_recompute", 4},
                     {"kv_eviction", "snapkv:window=16"},
                     {"kv_prompt_budget", 0},
                     {"kv_sparse_prompt", "xattention"},
                     {"ebb", {{"recall", {{"selectors", "lexical"}}}}}};
  const Json chat = read_responses_request(body).value().chat;
  for (const auto& [name, value] : body.items()) {
    if (name == "input") continue;
    EXPECT_EQ(chat.value(name, Json()), value) << name;
  }
}

}  // namespace
}  // namespace ebb
