// Histories as clients send them: parts of a chat, hints for them, and what is found again though it changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/api_fixture.h"

namespace ebb {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const HttpHeaders kSession = {{"x-session-id", "ses_1"}};

std::string sentences(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += fmt::format("In room {} stands a box with {} things. ", i, 7 * i % 23);
  return text;
}

class Histories : public Server {
 protected:
  Json sessions() { return ask("GET", "/v1/sessions")->json()["data"]; }
  Json blocks() {
    return ask("GET", "/v1/sessions/" + sessions()[0]["id"].get<std::string>() + "/blocks")->json()["data"];
  }
  static std::vector<std::string> names_of(const Json& blocks) {
    std::vector<std::string> names;
    for (const Json& block : blocks) names.push_back(block["name"].get<std::string>());
    return names;
  }
};

TEST_F(Histories, messages_are_parts_called_by_role_and_place_or_as_they_say) {
  Json facts = message("user", "The code of the gate is 4711. " + sentences(8));
  facts["ebb"] = {{"name", "facts"}, {"pin", true}};
  const auto answer = chat(Json::array({message("system", "Be brief. " + sentences(8)), message("user", sentences(8)),
                                        message("assistant", "Yes."), facts}),
                           Json::object(), kSession);
  ASSERT_EQ(answer->status(), 200) << answer->body();
  const Json found = blocks();
  EXPECT_THAT(names_of(found), Contains("system#0"));
  EXPECT_THAT(names_of(found), Contains(HasSubstr("user1#")));
  int n_pinned = 0;
  for (const Json& block : found) {
    if (!block["name"].get<std::string>().starts_with("facts#")) continue;
    EXPECT_TRUE(block["pinned"].get<bool>()) << block;
    ++n_pinned;
  }
  EXPECT_GE(n_pinned, 2);
}

TEST_F(Histories, hints_and_names_are_of_the_clients_messages_where_tools_are_told_in_words) {
  open({.chat_template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"});
  const Json tools = Json::parse(R"([{"type":"function","function":{"name":"read","parameters":{"type":"object"}}}])");
  Json facts = message("user", "The code of the gate is 4711. " + sentences(8));
  facts["ebb"] = {{"name", "facts"}, {"pin", true}};
  const auto answer = chat(Json::array({facts, message("assistant", "Yes."), message("user", sentences(8))}),
                           {{"tools", tools}, {"max_tokens", 4}}, kSession);
  ASSERT_EQ(answer->status(), 200) << answer->body();
  const Json found = blocks();
  EXPECT_THAT(names_of(found), Contains("system#0"));
  EXPECT_THAT(names_of(found), Contains(HasSubstr("user2#")));
  int n_facts = 0;
  for (const Json& block : found) {
    const std::string name = block["name"];
    const bool is_pinned = block["pinned"];
    EXPECT_FALSE(name == "system#0" && is_pinned) << block;
    if (!name.starts_with("facts#")) continue;
    EXPECT_TRUE(is_pinned) << block;
    ++n_facts;
  }
  EXPECT_GE(n_facts, 1);
  EXPECT_FALSE(found.back()["pinned"].get<bool>()) << found.back();
  Json wrong = message("user", "Hello");
  wrong["ebb"] = {{"pin", "yes"}};
  const auto refused = chat(Json::array({wrong}), {{"tools", tools}});
  EXPECT_THAT(refused->body(), HasSubstr("messages[0].ebb"));
}

TEST_F(Histories, hints_that_make_no_sense_or_pin_too_much_are_refused_by_name) {
  Json wrong = message("user", "Hello");
  wrong["ebb"] = {{"pin", "yes"}};
  const auto refused = chat(Json::array({wrong}));
  EXPECT_EQ(refused->status(), 400);
  EXPECT_THAT(refused->body(), HasSubstr("messages[0].ebb"));
  Json much = message("user", sentences(40));
  much["ebb"] = {{"pin", true}};
  const auto too_much = chat(Json::array({much}));
  EXPECT_EQ(too_much->status(), 400);
  EXPECT_THAT(too_much->body(), HasSubstr("at most 256 may be pinned"));
  EXPECT_EQ(chat(Json::array({message("user", "Hello")}), {{"kv_reuse", "some"}})->status(), 400);
}

TEST_F(Histories, a_call_that_comes_back_with_other_white_space_is_held_as_it_was_written) {
  const Json tools = Json::parse(R"([{"type":"function","function":{"name":"read","parameters":{"type":"object",
      "properties":{"path":{"type":"string","maxLength":4},"n":{"type":"integer","minimum":0,"maximum":9}},
      "required":["path","n"]}}}])");
  Json more = {{"tools", tools}, {"tool_choice", "required"}, {"max_tokens", 200}};
  Json messages = Json::array({message("user", "Read it.")});
  const Json first = chat(messages, more, kSession)->json();
  ASSERT_EQ(first["choices"][0]["finish_reason"], "tool_calls") << first;
  Json reply = first["choices"][0]["message"];
  Json& function = reply["tool_calls"][0]["function"];
  function["arguments"] = Json::parse(function["arguments"].get<std::string>()).dump(3);
  messages.push_back(reply);
  messages.push_back({{"role", "tool"}, {"tool_call_id", reply["tool_calls"][0]["id"]}, {"content", "Nothing."}});
  const Json second = chat(messages, more, kSession)->json();
  const int n_held = first["usage"]["prompt_tokens"].get<int>() + first["usage"]["completion_tokens"].get<int>();
  EXPECT_EQ(second["ebb"]["prompt"]["hot"], n_held - 1) << second["ebb"];  // the last is computed with what follows
}

TEST_F(Histories, a_call_that_was_cut_and_mended_is_held_up_to_where_it_was_mended) {
  const Json tools = Json::parse(R"([{"type":"function","function":{"name":"write","parameters":{"type":"object",
      "properties":{"n":{"type":"integer","minimum":0,"maximum":9},"m":{"type":"integer","minimum":0,"maximum":9},
      "text":{"type":"string","minLength":400}},"required":["n","m","text"]}}}])");
  Json more = {{"tools", tools}, {"tool_choice", "required"}, {"parallel_tool_calls", false}, {"max_tokens", 80}};
  Json messages = Json::array({message("user", "Write a long text.")});
  const Json first = chat(messages, more, kSession)->json();
  ASSERT_EQ(first["choices"][0]["finish_reason"], "length") << first;
  Json reply = first["choices"][0]["message"];
  Json& arguments = reply["tool_calls"][0]["function"]["arguments"];
  // A client that has mended and parsed it writes other white space.
  arguments = Json::parse(arguments.get<std::string>() + "\"}").dump(2);
  messages.push_back(reply);
  messages.push_back(
      {{"role", "tool"}, {"tool_call_id", reply["tool_calls"][0]["id"]}, {"content", "It ended early."}});
  more["max_tokens"] = 4;
  const Json second = chat(messages, more, kSession)->json();
  const int n_held = first["usage"]["prompt_tokens"].get<int>() + first["usage"]["completion_tokens"].get<int>();
  // The last is computed with what follows, and a token or two may say more than was held.
  EXPECT_GE(second["ebb"]["prompt"]["hot"], n_held - 4) << second["ebb"];
}

TEST_F(Histories, a_clock_in_the_instructions_is_an_edit_and_no_other_session) {
  const std::string rules = "Answer in one word. " + sentences(10);
  const auto ask_at = [&](std::string_view time) {
    return chat(Json::array({message("system", fmt::format("It is {}. {}", time, rules)),
                             message("user", "What is in room 3?")}),
                {{"kv_reuse", "approximate"}}, kSession)
        ->json();
  };
  const Json first = ask_at("10:00");
  const Json second = ask_at("10:01");
  EXPECT_EQ(sessions().size(), 1U);
  EXPECT_GT(second["ebb"]["prompt"]["recalled_approximate"], 100);
  EXPECT_LT(second["ebb"]["prompt"]["new"], 32);
  // A request for a title shares the id and nothing else.
  const Json title =
      chat(Json::array({message("system", "Name this conversation."), message("user", "What is in room 3?")}),
           Json::object(), kSession)
          ->json();
  EXPECT_EQ(sessions().size(), 2U);
  EXPECT_EQ(ask_at("10:01")["ebb"]["prompt"]["new"], 1);
}

TEST_F(Histories, what_was_computed_behind_another_text_stays_with_its_session) {
  const auto ask_as = [&](std::string_view who, Json more) {
    more["kv_reuse"] = "approximate";
    return chat(Json::array({message("user", fmt::format("I am {}. {}", who, sentences(30)))}), more)->json();
  };
  const Json hint = {{"prompt_cache_key", "team"}};
  (void)ask_as("Ann", hint);
  const Json second = ask_as("Bob", hint);
  EXPECT_EQ(second["ebb"]["prompt"]["recalled_approximate"], 0) << "whose history it is, nobody has said";
  EXPECT_THAT(second["ebb"]["warnings"].dump(), testing::HasSubstr("kv_reuse approximate: has no effect"));
  const Json text = ask("POST", "/v1/completions", R"({"prompt":"x","max_tokens":1,"kv_reuse":"fresh"})")->json();
  EXPECT_THAT(text["ebb"]["warnings"].dump(), testing::HasSubstr("kv_reuse fresh: has no effect"));
}

}  // namespace
}  // namespace ebb
