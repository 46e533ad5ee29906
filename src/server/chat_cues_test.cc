#include "server/chat_cues.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

ChatRequest request_of(const char* messages) {
  const Result<ChatRequest> request = read_chat_request({{"messages", Json::parse(messages)}});
  EXPECT_TRUE(request.ok()) << request.status().message();
  return *request;
}

std::string all_cues(const char* messages) {
  std::string all;
  for (const Cue& cue : chat_cues(request_of(messages))) all += cue.text + "|";
  return all;
}

TEST(ChatCues, are_the_words_of_the_last_message_and_of_none_before_the_assistants_last) {
  const std::string cues = all_cues(R"([{"role":"system","content":"Be brief about yaks."},
    {"role":"user","content":"What eats the zebra?"},{"role":"assistant","content":"The lion eats it."},
    {"role":"user","content":"And what eats the quagga?"}])");
  EXPECT_THAT(cues, testing::HasSubstr("quagga"));
  for (const char* const old : {"zebra", "lion", "yaks"}) EXPECT_THAT(cues, testing::Not(testing::HasSubstr(old)));
}

TEST(ChatCues, what_a_question_asks_of_it_is_asked_of_what_was_said_before) {
  const std::vector<Cue> cues = chat_cues(request_of(R"([{"role":"system","content":"Be brief about yaks."},
    {"role":"user","content":"Thank you. What is the code of the brass valve?"},
    {"role":"assistant","content":"The code of the brass valve is 4821. Is there more?"},
    {"role":"user","content":"And who does it belong to?"}])"));
  ASSERT_EQ(cues.size(), 1U);
  EXPECT_EQ(cues[0].text, "And who does it belong to");
  EXPECT_EQ(cues[0].about, " What is the code of the brass valve?\nThe code of the brass valve is 4821.");
  EXPECT_EQ(wanted_text(cues[0]), cues[0].about + "\n" + cues[0].text);
}

TEST(ChatCues, in_a_tool_loop_are_of_the_question_the_calls_and_the_results) {
  const std::string cues = all_cues(R"([{"role":"user","content":"Why does the build fail?"},
    {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",
      "function":{"name":"read_file","arguments":"{\"path\":\"src/velkor.cc\",\"lines\":[7,{\"to\":90}]}"}}]},
    {"role":"tool","tool_call_id":"1","content":"error: quagga was not declared"}])");
  EXPECT_THAT(cues, testing::StartsWith("Why does the build fail|error: quagga was not declared"));
  for (const char* const word : {"build", "read_file", "src/velkor.cc", "90"})
    EXPECT_THAT(cues, testing::HasSubstr(word));
}

TEST(ChatCues, of_a_long_tool_loop_are_of_what_its_user_said_too) {
  Json messages = {{{"role", "user"}, {"content", "Which limit has the zebra gate? Do not look at the lion gate."}}};
  for (int i = 0; i < 40; ++i) {
    messages.push_back(
        {{"role", "assistant"},
         {"content", nullptr},
         {"tool_calls",
          {{{"id", std::to_string(i)},
            {"type", "function"},
            {"function", {{"name", "read_file"}, {"arguments", {{"path", "f" + std::to_string(i)}}}}}}}}});
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", std::to_string(i)},
                        {"content", "file " + std::to_string(i) + " tells of quagga " + std::to_string(i)}});
  }
  const std::string cues = all_cues(messages.dump().c_str());
  for (const char* const word : {"zebra", "lion", "quagga 39"}) EXPECT_THAT(cues, testing::HasSubstr(word));
  EXPECT_THAT(cues, testing::Not(testing::HasSubstr("quagga 3|")));
}

TEST(ChatCues, a_long_result_is_looked_at_from_both_ends) {
  std::string result = "begin of log mentions quagga here. ";
  for (int i = 0; i < 4000; ++i) result += "line " + std::to_string(i) + " is dull. ";
  result += "the log ends with the okapi alone.";
  const ChatRequest request = request_of(Json::array({{{"role", "user"}, {"content", "Read it"}},
                                                      {{"role", "assistant"}, {"content", "x"}},
                                                      {{"role", "user"}, {"content", result}}})
                                             .dump()
                                             .c_str());
  std::string all;
  for (const Cue& cue : chat_cues(request)) all += cue.text;
  EXPECT_THAT(all, testing::AllOf(testing::HasSubstr("quagga"), testing::HasSubstr("okapi")));
  EXPECT_LT(all.size(), 2048U);
}

TEST(ChatCues, of_a_document_are_of_what_its_user_asked_before_it_was_shown) {
  std::string document;
  for (int i = 0; i < 60; ++i) document += "The mill stood by river number " + std::to_string(i) + ".\n";
  const Json shown = {{{"role", "system"}, {"content", "Be brief. Is there a yak?"}},
                      {{"role", "user"}, {"content", "Is there a lion?"}},
                      {{"role", "assistant"}, {"content", "Which?"}},
                      {{"role", "system"}, {"content", "Is there an okapi?"}},
                      {{"role", "user"}, {"content", "What eats the zebra?"}},
                      {{"role", "assistant"}, {"content", "Show me the text."}},
                      {{"role", "user"}, {"content", document}}};
  const std::string cues = all_cues(shown.dump().c_str());
  EXPECT_THAT(cues, testing::StartsWith("What eats the zebra"));
  for (const char* const old : {"lion", "yak", "okapi", "Show"})
    EXPECT_THAT(cues, testing::Not(testing::HasSubstr(old)));
}

TEST(ChatCues, of_a_document_alone_are_of_what_the_first_system_text_asks_and_no_later_one) {
  std::string document;
  for (int i = 0; i < 60; ++i) document += "The mill stood by river number " + std::to_string(i) + ".\n";
  const Json shown = {{{"role", "system"}, {"content", "Be brief. Is there a yak?"}},
                      {{"role", "assistant"}, {"content", "Show me the text."}},
                      {{"role", "system"}, {"content", "Is there an okapi?"}},
                      {{"role", "assistant"}, {"content", "Please."}},
                      {{"role", "user"}, {"content", document}}};
  const std::string cues = all_cues(shown.dump().c_str());
  EXPECT_THAT(cues, testing::HasSubstr("Is there a yak"));
  EXPECT_THAT(cues, testing::Not(testing::HasSubstr("okapi")));
}

TEST(ChatCues, of_no_message_but_the_system_text_are_none) {
  EXPECT_TRUE(chat_cues(request_of(R"([{"role":"system","content":"Be brief about yaks."}])")).empty());
}

}  // namespace
}  // namespace ebb
