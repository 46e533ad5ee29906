// Templates that leave out what was said, or refuse it: written for these tests, after what models' own templates do.
#include "chat/template_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chat/call_ids.h"
#include "chat/taught_calls.h"
#include "json/parse_json.h"

namespace ebb::template_losses_test {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// As `ebb apply-template` and the server have it.
std::string prompt_of(const std::string& source, const Json& body) {
  const ChatTemplate chat_template = ChatTemplate::compile(source).value();
  ChatRequest request = read_chat_request(body).value();
  const TaughtCalls taught = TaughtCalls::find(chat_template, {});
  taught.prepare(request);
  const Result<ChatPrompt> prompt = render_chat_request(chat_template, request, {});
  EXPECT_TRUE(prompt.ok()) << prompt.status().message();
  return prompt.ok() ? prompt->text() : std::string();
}

std::string text_of(const std::string& source, const std::string& messages) {
  return prompt_of(source, Json{{"messages", parse_json(messages).value()}});
}

// Phi 3.5: other roles have no case.
const std::string kThreeRoles =
    "{% for m in messages %}{% if m.role == 'system' and m.content %}<|system|>{{ m.content }}{% elif m.role == 'user' "
    "%}<|user|>{{ m.content }}{% elif m.role == 'assistant' %}<|assistant|>{{ m.content }}{% endif %}{% endfor %}";
// Calls and results as some templates know them.
const std::string kCalls =
    "{% for c in m.tool_calls or [] %}<{{ c.function.name }} {{ c.id }} {{ c.function.arguments | tojson }}>{% endfor "
    "%}";
const std::string kAll =
    "{% for m in messages %}[{{ m.role }}{{ ' ' ~ m.tool_call_id if m.tool_call_id }}:{{ m.content }}" + kCalls +
    "]{% endfor %}";

const std::string kHistory = R"([{"role": "user", "content": "look"},
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "call_one", "type": "function", "function": {"name": "ls", "arguments": "{\"dir\":\"x\"}"}},
      {"id": "call_two", "type": "function", "function": {"name": "ls", "arguments": "{\"dir\":\"y\"}"}}]},
    {"role": "tool", "tool_call_id": "call_one", "content": "first result"},
    {"role": "tool", "tool_call_id": "call_two", "content": "second result"}])";

TEST(TemplateLosses, the_user_says_what_tools_return_where_a_template_has_no_case_for_it) {
  const std::string text = text_of(kThreeRoles, kHistory);
  EXPECT_THAT(text, HasSubstr("<|user|>Result:\nfirst result<|user|>Result:\nsecond result"));
  EXPECT_THAT(text, HasSubstr("<|assistant|><tool_call>\n{\"name\": \"ls\", \"arguments\": {\"dir\":\"x\"}}"));
  EXPECT_THAT(text_of(kAll, kHistory), HasSubstr("[tool call_one:first result][tool call_two:second result]"));
}

TEST(TemplateLosses, results_stay_where_a_template_shows_them_beside_tools_alone) {
  const std::string source =
      "{{ tools | tojson if tools }}{% for m in messages %}{% if m.role != 'tool' %}[{{ m.role }}:{{ m.content }}" +
      kCalls + "]{% elif tools %}<result>{{ m.content }}</result>{% endif %}{% endfor %}";
  Json body = {{"messages", parse_json(kHistory).value()}};
  EXPECT_THAT(prompt_of(source, body), HasSubstr("[user:Result:\nfirst result]"));
  body["tools"] = parse_json(R"([{"type": "function", "function": {"name": "ls", "parameters": {}}}])").value();
  ChatRequest request = read_chat_request(body).value();
  const ChatTemplate chat_template = ChatTemplate::compile(source).value();
  EXPECT_THAT(render_chat_request(chat_template, request, {})->text(), HasSubstr("<result>first result</result>"));
}

TEST(TemplateLosses, later_system_text_is_said_by_the_user_where_a_template_shows_one) {
  const std::string first =
      "{% if messages[0].role == 'system' %}<|system|>{{ messages[0].content }}{% endif %}{% for m in messages %}"
      "{% if m.role != 'system' %}<|{{ m.role }}|>{{ m.content }}{% endif %}{% endfor %}";
  // R1 and RWKV: the last one is shown, in front.
  const std::string last =
      "{% set ns = namespace(s='') %}{% for m in messages %}{% if m.role == 'system' %}{% set ns.s = m.content %}"
      "{% endif %}{% endfor %}<|system|>{{ ns.s }}{% for m in messages %}{% if m.role != 'system' %}<|{{ m.role }}|>"
      "{{ m.content }}{% endif %}{% endfor %}";
  const std::string one = R"([{"role": "system", "content": "a"}, {"role": "developer", "content": "b"},
      {"role": "user", "content": "c"})";
  const std::string more =
      R"(, {"role": "assistant", "content": "d"}, {"role": "developer", "content": "e"}, {"role": "user", "content": "f"}])";
  for (const std::string& source : {first, last}) {
    EXPECT_EQ(text_of(source, one + "]"), "<|system|>a\n\nb<|user|>c");
    EXPECT_EQ(text_of(source, one + more), "<|system|>a\n\nb<|user|>c<|assistant|>d<|user|>e<|user|>f");
  }
  EXPECT_THAT(text_of(kAll, one + more), HasSubstr("[system:a][system:b][user:c]"));
}

TEST(TemplateLosses, system_text_joins_the_first_message_where_a_template_shows_none) {
  EXPECT_EQ(text_of("{% for m in messages %}{% if m.role != 'system' %}<|{{ m.role }}|>{{ m.content }}{% endif %}"
                    "{% endfor %}",
                    R"([{"role": "system", "content": "a"}, {"role": "user", "content": "b"}])"),
            "<|user|>a\n\nb");
}

// Mistral's and Gemma's.
TEST(TemplateLosses, later_system_text_leaves_the_beginning_as_it_was_where_a_template_raises_at_it) {
  const std::string one = R"([{"role": "system", "content": "a"}, {"role": "user", "content": "b"})";
  const std::string more =
      R"(, {"role": "assistant", "content": "c"}, {"role": "developer", "content": "d"}, {"role": "user", "content": "e"}])";
  for (const char* allowed : {"1", "0"}) {
    const std::string source = std::string("{% for m in messages %}{% if m.role == 'system' and loop.index > ") +
                               allowed +
                               " %}{{ raise_exception('no') }}{% endif %}<|{{ m.role }}|>{{ m.content }}{% endfor %}";
    const std::string text = text_of(source, one + "]");
    EXPECT_EQ(text_of(source, one + more), text + "<|assistant|>c<|user|>d<|user|>e") << allowed;
  }
}

TEST(TemplateLosses, calls_beside_text_get_a_message_of_their_own_where_a_template_shows_one_of_both) {
  const std::string source =
      "{{ tools | tojson if tools }}{% for m in messages %}<|{{ m.role }}|>{% if m.content %}{{ m.content }}{% else %}"
      "{% for c in m.tool_calls %}<call>{\"name\": \"{{ c.function.name }}\", \"arguments\": "
      "{{ c.function.arguments | tojson }}}</call>{% endfor %}{% endif %}{% endfor %}";
  EXPECT_EQ(text_of(source, R"([{"role": "user", "content": "look"}, {"role": "assistant", "content": "I look.",
      "tool_calls": [{"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "a", "content": "x"}])"),
            "<|user|>look<|assistant|>I look.<|assistant|><call>{\"name\": \"ls\", \"arguments\": {}}</call><|tool|>x");
}

// Mistral's.
const std::string kNineLetters =
    "{% for m in messages %}{% for c in m.tool_calls or [] %}{% if c.id | length != 9 %}{{ raise_exception('length 9') "
    "}}{% endif %}{% endfor %}{% if m.role == 'tool' and m.tool_call_id | length != 9 %}{{ raise_exception('length 9') "
    "}}{% endif %}{% endfor %}" +
    kAll;

TEST(TemplateLosses, ids_of_other_servers_are_shortened_where_a_template_refuses_them) {
  const std::string one = CallIds::short_id("call_one");
  const std::string two = CallIds::short_id("call_two");
  EXPECT_TRUE(CallIds::is_id(one)) << one;
  EXPECT_NE(one, two);
  EXPECT_EQ(CallIds::short_id("abcDEF123"), "abcDEF123");
  const std::string text = text_of(kNineLetters, kHistory);
  EXPECT_THAT(text, HasSubstr("<ls " + one + " {\"dir\": \"x\"}><ls " + two + " {\"dir\": \"y\"}>"));
  EXPECT_THAT(text, HasSubstr("[tool " + one + ":first result][tool " + two + ":second result]"));
  Json longer = parse_json(kHistory).value();
  for (const char* id : {"abcDEF123", "toolu_01"}) {
    longer.push_back({{"role", "assistant"}, {"content", ""}});
    longer.back()["tool_calls"] = Json::array(
        {{{"id", id}, {"type", "function"}, {"function", {{"name", "ls"}, {"arguments", Json::object()}}}}});
    longer.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", "more"}});
  }
  const std::string all = prompt_of(kNineLetters, Json{{"messages", longer}});
  EXPECT_THAT(all, StartsWith(text));
  EXPECT_THAT(all, HasSubstr("[tool abcDEF123:more]"));
  EXPECT_THAT(text_of(kAll, kHistory), HasSubstr("<ls call_one ")) << "a template that takes them shows them";
}

TEST(TemplateLosses, calls_without_ids_are_numbered_and_their_results_answer_them_in_order) {
  Json history = parse_json(kHistory).value();
  for (Json& message : history) {
    message.erase("tool_call_id");
    if (!message.contains("tool_calls")) continue;
    for (Json& call : message["tool_calls"]) call.erase("id");
  }
  const std::string one = CallIds::short_id("call 1");
  const std::string two = CallIds::short_id("call 2");
  const std::string text = text_of(kNineLetters, history.dump());
  EXPECT_THAT(text, HasSubstr("<ls " + one + " {\"dir\": \"x\"}><ls " + two + " {\"dir\": \"y\"}>"));
  EXPECT_THAT(text, HasSubstr("[tool " + one + ":first result][tool " + two + ":second result]"));
}

// Mistral's: behind a result comes the assistant.
const std::string kResultThenAssistant =
    "{% set ns = namespace(last='') %}{% for m in messages %}{% if ns.last == 'tool' and m.role == 'user' %}{{ "
    "raise_exception('roles must alternate') }}{% endif %}{% if m.role == 'assistant' and not m.content and not "
    "m.tool_calls %}{{ raise_exception('must have a string') }}{% endif %}{% if ns.last == m.role and m.role == 'user' "
    "%}{{ "
    "raise_exception('roles must alternate') }}{% endif %}{% set ns.last = m.role %}{% endfor %}" +
    kAll;

TEST(TemplateLosses, what_is_said_behind_a_result_joins_it_where_a_template_wants_the_assistant_there) {
  Json history = parse_json(kHistory).value();
  while (history.back()["role"] != "tool") history.erase(history.size() - 1);
  history.push_back({{"role", "user"}, {"content", "go on"}});
  EXPECT_THAT(text_of(kResultThenAssistant, history.dump()), HasSubstr(":second result\n\ngo on]"));
}

TEST(TemplateLosses, a_turn_that_says_nothing_is_left_out_where_a_template_refuses_it) {
  EXPECT_EQ(text_of(kResultThenAssistant, R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": null},
                                              {"role": "user", "content": "b"}])"),
            "[user:a\n\nb]");
}

// Command-R+: goes through tools that are not there, and raises where a property says less than it wants.
const std::string kNeedsDescriptions =
    "{% for t in tools %}({{ t.function.name }}{% for k, v in t.function.parameters.properties | items %} {{ k + ': ' "
    "+ "
    "v.description }}{% endfor %}){% endfor %}" +
    kAll;

TEST(TemplateLosses, a_request_without_tools_is_taken_where_a_template_goes_through_them) {
  EXPECT_EQ(text_of(kNeedsDescriptions, R"([{"role": "user", "content": "hi"}])"), "[user:hi]");
}

TEST(TemplateLosses, tools_at_which_a_template_raises_are_described) {
  const Json messages = Json::array({{{"role", "user"}, {"content", "hi"}}});
  const auto tools = [](const char* property) {
    return parse_json(fmt::format(R"([{{"type": "function", "function": {{"name": "ls", "description": "lists",
        "parameters": {{"type": "object", "properties": {{"dir": {}}}}}}}}}])",
                                  property))
        .value();
  };
  for (const std::string& source :
       {kNeedsDescriptions,
        "{% for t in tools or [] %}{{ 'have: ' + t.function.parameters.properties.dir.description "
        "}}{% endfor %}" +
            kAll}) {
    const std::string text = prompt_of(source, Json{{"messages", messages}, {"tools", tools(R"({"type": "string"})")}});
    EXPECT_THAT(text, HasSubstr("[system:You may call these tools:\n{\"name\":\"ls\"")) << source;
    EXPECT_THAT(text, HasSubstr("[user:hi]"));
  }
  // What raises knows tools, and shows all others itself.
  const std::string hermes =
      "{% for t in tools or [] %}{{ t.function.name + t.function.parameters.properties.values() | map(attribute="
      "'description') | join }}{% if t.function.parameters.properties.dir is defined %}{{ 'x' + "
      "t.function.parameters.properties.dir.description }}{% endif %}{% endfor %}{% for m in messages %}<|{{ m.role "
      "}}|>"
      "{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>\n{\"name\": \"{{ c.function.name }}\", "
      "\"arguments\": "
      "{{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}<|end|>{% endfor %}";
  EXPECT_THAT(prompt_of(hermes, Json{{"messages", messages}, {"tools", tools(R"({"type": "string"})")}}),
              StartsWith("<|system|>You may call these tools:\n"));
  EXPECT_THAT(prompt_of(hermes, Json{{"messages", messages}, {"tools", tools(R"({"description": "where"})")}}),
              StartsWith("lswherexwhere<|user|>hi"));
  // What is put in front is no message of the request.
  ChatRequest request = read_chat_request({{"messages", messages}, {"tools", tools("{}")}}).value();
  request.may_describe_tools = true;
  const ChatPrompt prompt = render_chat_request(ChatTemplate::compile(hermes).value(), request, {}).value();
  for (const PromptPiece& piece : prompt.pieces) {
    EXPECT_EQ(piece.message.has_value(), piece.text == "hi") << piece.text;
  }
}

TEST(TemplateLosses, functions_are_the_tools_as_text_where_a_template_asks_for_them) {
  const std::string source = "{% set f = 'functions: ' + functions %}{{ f + '; ' + datetime[:0] }}" + kThreeRoles;
  const Json messages = Json::array({{{"role", "user"}, {"content", "hi"}}});
  EXPECT_EQ(prompt_of(source, Json{{"messages", messages}}), "functions: ; <|user|>hi");
  const Json tools = parse_json(R"([{"type": "function", "function": {"name": "ls"}}])").value();
  ChatRequest request = read_chat_request({{"messages", messages}, {"tools", tools}}).value();
  EXPECT_EQ(render_chat_request(ChatTemplate::compile(source).value(), request, {})->text(),
            "functions: " + tools.dump(2) + "; <|user|>hi");
}

}  // namespace
}  // namespace ebb::template_losses_test
