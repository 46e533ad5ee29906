#include "chat/chat_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chat/message_mending.h"

namespace ebb::chat_request_test {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

Result<ChatRequest> read(const std::string& body) { return read_chat_request(Json::parse(body)); }

std::string error_of(const std::string& body) {
  const auto request = read(body);
  EXPECT_FALSE(request.ok()) << body;
  return request.status().message();
}

Result<ChatPrompt> render(const std::string& source, const std::string& body) {
  EBB_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::compile(source));
  EBB_ASSIGN_OR_RETURN(const ChatRequest request, read(body));
  return render_chat_request(chat_template, request, {.bos = "<s>", .eos = "</s>"});
}

std::string text_of(const std::string& source, const std::string& body) {
  const auto prompt = render(source, body);
  EXPECT_TRUE(prompt.ok()) << prompt.status().message();
  return prompt.ok() ? prompt->text() : std::string();
}

const std::string kPlain =
    "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}{{ '>' if add_generation_prompt }}";

TEST(ChatRequest, brings_content_to_one_form) {
  EXPECT_EQ(
      text_of(kPlain, R"({"messages": [
      {"role": "developer", "content": "a"},
      {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]},
      {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f"}}]},
      {"role": "tool", "content": [{"type": "text", "text": "d"}], "tool_call_id": "1"}]})"),
      "[system:a][user:b\nc][assistant:<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>][tool:d]>");
}

TEST(ChatRequest, arguments_become_objects_and_thinking_is_handed_on) {
  const std::string source =
      "{% for m in messages %}{{ m.reasoning_content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}={{ "
      "c.function.arguments.path }}{% endfor %}{% endfor %}";
  EXPECT_EQ(text_of(source, R"({"messages": [{"role": "user", "content": ""}, {"role": "assistant", "content": "",
      "reasoning_content": "hm ", "tool_calls": [{"function": {"name": "read", "arguments": "{\"path\": \"a.c\"}"}}]},
      {"role": "user", "content": ""}]})"),
            "hm read=a.c");
}

TEST(ChatRequest, arguments_that_are_too_deep_or_no_json_stay_text) {
  const auto arguments_of = [](const std::string& text) {
    const Json call = {{"function", {{"name", "f"}, {"arguments", text}}}};
    const Json assistant = {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}};
    const Json user = {{"role", "user"}, {"content", ""}};
    const auto request = read_chat_request({{"messages", Json::array({user, assistant})}});
    return request.value().messages[1]["tool_calls"][0]["function"]["arguments"];
  };
  constexpr std::size_t kLevels = 200'000;
  std::string deep;
  for (std::size_t i = 0; i < kLevels; ++i) deep += "{\"a\":";
  deep += "1" + std::string(kLevels, '}');
  for (const std::string& text : {deep, std::string("{\"a\":1e400}"), std::string("{"), std::string("[1]")}) {
    EXPECT_TRUE(arguments_of(text) == text) << text.substr(0, 20);
  }
  EXPECT_TRUE(arguments_of("").is_object());
}

TEST(ChatRequest, says_which_field_is_wrong) {
  EXPECT_THAT(error_of("[]"), HasSubstr("JSON object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("'messages'"));
  EXPECT_THAT(error_of(R"({"messages": []})"), HasSubstr("'messages'"));
  EXPECT_THAT(error_of(R"({"messages": [{"role": "user", "content": "a"}, 5]})"), HasSubstr("'messages[1]'"));
  EXPECT_THAT(error_of(R"({"messages": [{"role": "king", "content": "a"}]})"), HasSubstr("'messages[0].role'"));
  EXPECT_THAT(error_of(R"({"messages": [{"role": "user"}]})"), HasSubstr("'messages[0].content'"));
  EXPECT_THAT(error_of(R"({"messages": [{"role": "user", "content": 5}]})"), HasSubstr("but got a number"));
  EXPECT_THAT(error_of(R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})"),
              HasSubstr("image_url"));
  EXPECT_THAT(error_of(R"({"messages": [{"role": "assistant", "tool_calls": [{}]}]})"), HasSubstr("tool_calls[0]"));
  EXPECT_THAT(error_of(R"({"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "web"}]})"),
              HasSubstr("'tools[0].type'"));
  EXPECT_THAT(
      error_of(R"({"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": {"enable_thinking": 1}})"),
      HasSubstr("enable_thinking"));
  EXPECT_THAT(error_of(R"({"messages": [{"role": "user", "content": "a"}], "add_generation_prompt": "yes"})"),
              HasSubstr("true or false"));
}

TEST(ChatRequest, arguments_for_the_template_come_from_kwargs_and_effort) {
  const std::string source = "{{ enable_thinking }} {{ reasoning_effort }} {{ tone }} {{ bos_token }}";
  EXPECT_EQ(text_of(source, R"({"messages": [{"role": "user", "content": ""}], "reasoning_effort": "none",
      "chat_template_kwargs": {"tone": "kind"}})"),
            "False  kind <s>");
  EXPECT_EQ(text_of(source, R"({"messages": [{"role": "user", "content": ""}], "reasoning_effort": "high"})"),
            "True high  <s>");
}

TEST(ChatRequest, templates_know_thinking_by_any_of_its_names_and_the_day) {
  const std::string source =
      "{% for m in messages %}{{ m.reasoning_content }}|{{ m.reasoning }}|{{ m.thinking }};{% endfor %}";
  for (const char* name : {"reasoning_content", "reasoning"}) {
    EXPECT_EQ(
        text_of(source, R"({"messages": [{"role": "user", "content": ""}, {"role": "assistant", "content": "", ")" +
                            std::string(name) + R"(": "hm"}, {"role": "user", "content": ""}]})"),
        "||;hm|hm|hm;||;");
  }
  const std::string dates = "{{ date_string }}|{{ datetime }}";
  std::tm day{.tm_mday = 9, .tm_mon = 10, .tm_year = 126};
  const ChatTemplate chat_template = ChatTemplate::compile(dates).value();
  const auto request = [](const std::string& more) {
    return read(R"({"messages": [{"role": "user", "content": ""}])" + more + "}").value();
  };
  EXPECT_EQ(render_chat_request(chat_template, request(""), {}, day)->text(), "09 Nov 2026|Nov 09 2026");
  EXPECT_EQ(
      render_chat_request(chat_template, request(R"(, "chat_template_kwargs": {"date_string": "today"})"), {}, day)
          ->text(),
      "today|Nov 09 2026");
}

// Clients keep what they were told and send it back.
TEST(ChatRequest, a_model_thinks_unless_the_request_says_otherwise) {
  const std::string source = "{{ messages[0].content }}{% if not enable_thinking %}<think></think>{% endif %}";
  const auto text = [&](const std::string& more) {
    return text_of(source, R"({"messages": [{"role": "user", "content": "a"}])" + more + "}");
  };
  EXPECT_EQ(text(""), "a");
  EXPECT_EQ(text(R"(, "reasoning_effort": "none")"), "a<think></think>");
  EXPECT_EQ(text(R"(, "chat_template_kwargs": {"enable_thinking": false})"), "a<think></think>");
}

TEST(ChatRequest, thinking_that_a_template_opens_unasked_is_closed_where_none_is_wanted) {
  const std::string source =
      "{{ messages[0].content }}[assistant]{% if add_generation_prompt %}<think>\n{% endif %}{# </think> #}";
  const auto text = [&](const std::string& more) {
    return text_of(source, R"({"messages": [{"role": "user", "content": "<think>"}])" + more + "}");
  };
  EXPECT_EQ(text(""), "<think>[assistant]<think>\n");
  EXPECT_EQ(text(R"(, "reasoning_effort": "low")"), "<think>[assistant]<think>\n");
  EXPECT_EQ(text(R"(, "reasoning_effort": "none")"), "<think>[assistant]<think>\n\n</think>\n\n");
  EXPECT_EQ(text(R"(, "reasoning_effort": "none", "add_generation_prompt": false)"), "<think>[assistant]");
  EXPECT_EQ(text_of("{{ messages[0].content }}<think>{# </think> #}",
                    R"({"messages": [{"role": "user", "content": "a"}], "reasoning_effort": "none"})"),
            "a<think>\n\n</think>\n\n");
}

TEST(ChatRequest, a_reply_of_which_nothing_came_blocks_no_later_turn) {
  EXPECT_EQ(text_of(kPlain, R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null},
      {"role": "user", "content": "b"}]})"),
            "[user:a][assistant:][user:b]>");
}

TEST(ChatRequest, a_trailing_reply_is_continued_unless_the_request_says_otherwise) {
  const auto body = [](const std::string& more) {
    return R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "It is"}])" + more + "}";
  };
  EXPECT_EQ(text_of(kPlain, body("")), "[user:q]>It is");
  EXPECT_EQ(text_of(kPlain, body(R"(, "continue_final_message": true)")), "[user:q]>It is");
  EXPECT_EQ(text_of(kPlain, body(R"(, "add_generation_prompt": false)")), "[user:q][assistant:It is]");
  EXPECT_EQ(text_of(kPlain, body(R"(, "add_generation_prompt": true)")), "[user:q][assistant:It is]>");
  EXPECT_THAT(error_of(body(R"(, "add_generation_prompt": true, "continue_final_message": true)")),
              HasSubstr("together"));
  const auto prompt = render(kPlain, body(""));
  EXPECT_EQ(prompt->pieces.back(), (PromptPiece{.text = "It is", .from_user = true, .message = 1}));
  EXPECT_THAT(
      error_of(R"({"messages": [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]})"),
      HasSubstr("two messages"));
}

const std::string kTwoCalls =
    R"({"messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": "text", "tool_calls": [
    {"id": "1", "function": {"name": "f", "arguments": "{}"}}, {"id": "2", "function": {"name": "g", "arguments": "{\"x\": 1}"}}]},
    {"role": "tool", "tool_call_id": "2", "content": "two"}, {"role": "tool", "tool_call_id": "1", "content": "one"}]})";
const std::string kCalls =
    "[{{ m.role }}:{{ m.content }}{% for c in m.tool_calls or [] %}<{{ c.function.name }}{{ c.function.arguments | "
    "tojson "
    "}}>{% endfor %}]";

TEST(ChatRequest, splits_calls_for_templates_that_raise_at_two_or_lose_the_second) {
  const std::string split = "[user:go][assistant:text<f{}>][tool:one][assistant:<g{\"x\": 1}>][tool:two]";
  EXPECT_EQ(text_of("{% for m in messages %}{% if m.tool_calls and m.tool_calls | length > 1 %}{{ "
                    "raise_exception('one') }}{% endif %}" +
                        kCalls + "{% endfor %}",
                    kTwoCalls),
            split);
  EXPECT_EQ(text_of("{% for m in messages %}[{{ m.role }}:{{ m.content }}{% if m.tool_calls %}<{{ "
                    "m.tool_calls[0].function.name }}{{ "
                    "m.tool_calls[0].function.arguments | tojson }}>{% endif %}]{% endfor %}",
                    kTwoCalls),
            split);
  EXPECT_EQ(text_of("{% for m in messages %}" + kCalls + "{% endfor %}", kTwoCalls),
            "[user:go][assistant:text<f{}><g{\"x\": 1}>][tool:two][tool:one]");
}

TEST(ChatRequest, gives_arguments_as_text_where_objects_fail) {
  EXPECT_EQ(text_of("{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}<{{ c.function.name + "
                    "c.function.arguments "
                    "}}>{% endfor %}{% endfor %}",
                    kTwoCalls),
            "gotext<f{}><g{\"x\":1}>twoone");
}

// A call that broke off comes back as the client was given it, and a template that goes through its members must not stop the session.
TEST(ChatRequest, gives_what_is_whole_of_broken_arguments_where_a_template_wants_objects) {
  const std::string source =
      "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}<{{ c.function.name }}{% for k, v in "
      "c.function.arguments | items %}[{{ k }}={{ v }}]{% endfor %}>{% endfor %}{% endfor %}";
  const auto said = [&](const std::string& arguments) {
    const Json call = {{"id", "1"}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", arguments}}}};
    const Json messages = {{{"role", "user"}, {"content", "a"}},
                           {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {call}}},
                           {{"role", "tool"}, {"tool_call_id", "1"}, {"content", "cut"}},
                           {{"role", "user"}, {"content", "again"}}};
    return text_of(source, Json{{"messages", messages}}.dump());
  };
  EXPECT_EQ(said(R"({"p": "x", "t": "one, tw)"), "a<f[p=x][t=one, tw]>cutagain");
  EXPECT_EQ(said(R"({"p": "x", "t": [1, 2, {"z)"), "a<f[p=x][t=[1, 2]]>cutagain");
  EXPECT_EQ(said(R"({"path": "p",}})"), "a<f[path=p]>cutagain");
  EXPECT_EQ(said(R"({"a":)"), "a<f>cutagain");
  EXPECT_EQ(said("ls -l"), "a<f[text=ls -l]>cutagain");
  EXPECT_EQ(said(std::string(200'000, '{')), "a<f>cutagain");
}

TEST(ChatRequest, joins_system_text_and_neighbours_where_roles_must_alternate) {
  const std::string source =
      "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate!') "
      "}}{% endif "
      "%}[{{ m.role }}:{{ m.content }}]{% endfor %}";
  const std::string body = R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"},
      {"role": "user", "content": "b"}, {"role": "assistant", "content": "c"}, {"role": "user", "content": "d"}]})";
  EXPECT_EQ(text_of(source, body), "[user:s\n\na\n\nb][assistant:c][user:d]");
  const auto prompt = render(source, body);
  EXPECT_EQ(prompt->pieces[3], (PromptPiece{.text = "c", .from_user = true, .message = 3}));
}

TEST(ChatRequest, the_user_says_what_tools_return_where_a_template_knows_no_such_role) {
  const std::string source =
      "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate!') "
      "}}{% endif %}[{{ m.role }}:{{ m.content }}]{% endfor %}";
  EXPECT_EQ(text_of(source, R"({"messages": [
      {"role": "system", "content": "Be brief."},
      {"role": "user", "content": "Read both."},
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "read", "arguments": "{\"n\": 1}"}},
        {"id": "2", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
      {"role": "tool", "content": "one", "tool_call_id": "1", "name": "read"},
      {"role": "tool", "content": "two", "tool_call_id": "2"},
      {"role": "user", "content": "Well?"}]})"),
            "[user:Be brief.\n\nRead both.][assistant:<tool_call>\n{\"name\": \"read\", \"arguments\": {\"n\":1}}\n"
            "</tool_call>\n<tool_call>\n{\"name\": \"read\", \"arguments\": {}}\n</tool_call>]"
            "[user:Result of read:\none\n\nResult:\ntwo\n\nWell?]");
}

TEST(ChatRequest, an_error_is_what_the_template_said_to_the_messages_as_they_came) {
  const auto prompt = render("{{ raise_exception('no: ' ~ messages[0].role) }}",
                             R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}]})");
  EXPECT_THAT(prompt.status().message(), HasSubstr("no: system"));
}

}  // namespace
}  // namespace ebb::chat_request_test
