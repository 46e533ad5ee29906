// Templates whose prompts end in the middle of a mark: what is for all, what is a call, whole, streamed and sent again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/api_fixture.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

const HttpHeaders kSession = {{"x-session-id", "ses_1"}};

// As Functionary 3.2 writes them.
class BegunMarks : public Server {
 protected:
  void SetUp() override {
    open({.chat_template =
              "Say >>>all\nor call {{ tools | tojson if tools }}.\n{% for m in messages %}<|im_start|>{{ m.role }}\n"
              "{% if m.role == 'assistant' %}{% if m.content %}{{ '>>>all\n' + m.content }}{% endif %}{% for c in "
              "m.tool_calls or [] %}{{ '>>>' + c.function.name + '\n' + c.function.arguments }}{% endfor %}{% else %}"
              "{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
              ">>>{% endif %}"});
  }
  static Json tools() {
    return Json::parse(R"([{"type":"function","function":{"name":"read","parameters":{"type":"object",
      "properties":{"path":{"type":"string","maxLength":8}},"required":["path"]}}}])");
  }
};

TEST_F(BegunMarks, a_call_is_forced_read_streamed_and_held) {
  Json more = {{"tools", tools()}, {"tool_choice", "required"}, {"parallel_tool_calls", false}, {"max_tokens", 100}};
  Json messages = Json::array({message("user", "Read it.")});
  const Json first = chat(messages, more, kSession)->json();
  ASSERT_EQ(first["choices"][0]["finish_reason"], "tool_calls") << first;
  Json reply = first["choices"][0]["message"];
  EXPECT_TRUE(reply["content"].is_null()) << reply;
  Json& function = reply["tool_calls"][0]["function"];
  EXPECT_EQ(function["name"], "read");
  const Json arguments = Json::parse(function["arguments"].get<std::string>());
  EXPECT_TRUE(arguments.contains("path"));
  function["arguments"] = arguments.dump(3);
  Json said = messages;
  said.push_back(reply);
  said.push_back({{"role", "tool"}, {"tool_call_id", reply["tool_calls"][0]["id"]}, {"content", "Nothing."}});
  const Json second = chat(said, more, kSession)->json();
  const int n_held = first["usage"]["prompt_tokens"].get<int>() + first["usage"]["completion_tokens"].get<int>();
  EXPECT_GE(second["ebb"]["prompt"]["hot"], n_held - 1) << second["ebb"];
  more["stream"] = true;
  const std::string stream = chat(messages, more)->body();
  EXPECT_THAT(stream, HasSubstr(R"("name":"read")"));
  EXPECT_THAT(stream, ::testing::Not(HasSubstr(">>>")));
}

TEST_F(BegunMarks, what_is_said_and_json_are_for_all) {
  const Json schema = Json::parse(R"({"type":"json_schema","json_schema":{"name":"s","schema":{"type":"boolean"}}})");
  for (const bool has_tools : {false, true}) {
    Json more = {{"response_format", schema}, {"max_tokens", 20}};
    if (has_tools) more.update({{"tools", tools()}, {"tool_choice", "none"}});
    const Json json = chat(Json::array({message("user", "Is it?")}), more)->json();
    EXPECT_THAT(json["choices"][0]["message"]["content"], ::testing::AnyOf("true", "false")) << json;
  }
  const Json may = {{"tools", tools()}, {"max_tokens", 20}};
  const Json reply = chat(Json::array({message("user", "Is it?")}), may)->json()["choices"][0]["message"];
  EXPECT_TRUE(reply.contains("tool_calls") || !reply["content"].get<std::string>().starts_with("all")) << reply;
}

}  // namespace
}  // namespace ebb
