// Templates of each shape that calls are written in: what is derived of them, and that it reads, streams and is forced.
#include "chat/taught_calls.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chat/call_grammar.h"
#include "chat/derive_call_form.h"
#include "chat/reply_parser.h"
#include "chat/tool_text.h"
#include "grammar/grammar_match_test.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

struct Shape {
  std::string name;
  // What a template writes of message m's calls.
  std::string calls;
  std::string turn_end = "<|im_end|>\n";
  std::string format = "derived";
};

// Written for these tests, after what models' own templates write.
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> kShapes = {
      {.name = "objects in tags",
       .calls = "{% for c in m.tool_calls %}\n<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": "
                "{{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}",
       .format = "hermes"},
      {.name = "a list of objects in a mark",
       .calls = "<TOOLCALL>[{% for c in m.tool_calls %}{\"name\": \"{{ c.function.name }}\", \"arguments\": "
                "{{ c.function.arguments | tojson }}}{% if not loop.last %}, {% endif %}{% endfor %}]</TOOLCALL>"},
      {.name = "objects with keys of their own and numbers",
       .calls = "<|START_ACTION|>[{% for c in m.tool_calls %}\n    {\"tool_call_id\": \"{{ loop.index0 }}\", "
                "\"tool_name\": \"{{ c.function.name }}\", \"parameters\": {{ c.function.arguments | tojson }}}"
                "{% if not loop.last %},{% endif %}{% endfor %}\n]<|END_ACTION|>"},
      {.name = "a name as the key",
       .calls = "<|tools_prefix|>[{% for c in m.tool_calls %}{\"{{ c.function.name }}\": "
                "{{ c.function.arguments | tojson }}}{% if not loop.last %}, {% endif %}{% endfor %}]<|tools_suffix|>"},
      {.name = "a name, then JSON, in marks that are not ASCII",
       .calls = "<\uff5ccalls\uff5c>{% for c in m.tool_calls %}<\uff5ccall\uff5c>{{ c.function.name }}<\uff5csep\uff5c>"
                "{{ c.function.arguments | tojson }}<\uff5cend\uff5c>{% endfor %}<\uff5ccalls end\uff5c>"},
      {.name = "JSON in a fence",
       .calls =
           "<|calls|>{% for c in m.tool_calls %}<|call|>function<|sep|>{{ c.function.name }}\n```json\n"
           "{{ c.function.arguments | tojson }}\n```<|end|>{% if not loop.last %}\n{% endif %}{% endfor %}<|over|>"},
      {.name = "a name with a number behind it",
       .calls = "<|section|>{% for c in m.tool_calls %}<|call|>functions.{{ c.function.name }}:{{ loop.index0 }}"
                "<|argument|>{{ c.function.arguments | tojson }}<|end|>{% endfor %}<|section_end|>"},
      {.name = "an id in front of the name",
       .calls = "<|calls|>{% for c in m.tool_calls %}<|begin|>{{ c.id }}<|name|>{{ c.function.name }}<|args|>"
                "{{ c.function.arguments | tojson }}<|end|>{% endfor %}<|over|>"},
      {.name = "tags for keys and values",
       .calls =
           "{% for c in m.tool_calls %}\n<tool_call>{{ c.function.name }}{% for k, v in c.function.arguments.items() "
           "%}\n<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v if v is string else v | tojson }}</arg_value>{% endfor "
           "%}\n</tool_call>{% endfor %}"},
      {.name = "a tag for each key",
       .calls = "<calls>\n{% for c in m.tool_calls %}<invoke name=\"{{ c.function.name }}\">\n{% for k, v in "
                "c.function.arguments.items() %}<parameter name=\"{{ k }}\">{{ v if v is string else v | tojson }}"
                "</parameter>\n{% endfor %}</invoke>\n{% endfor %}</calls>"},
      {.name = "tags that tell types",
       .calls = "<|D|calls>\n{% for c in m.tool_calls %}<|D|invoke name=\"{{ c.function.name }}\">\n{% for k, v in "
                "c.function.arguments.items() %}<|D|parameter name=\"{{ k }}\" string=\"{{ 'true' if v is string else "
                "'false' }}\">{{ v if v is string else v | tojson }}</|D|parameter>\n{% endfor %}</|D|invoke>\n"
                "{% endfor %}</|D|calls>"},
      {.name = "tags that name types, null among them",
       .calls =
           "{% for c in m.tool_calls %}<|call|>{{ c.function.name }}<|args|>{% for k, v in "
           "c.function.arguments.items() "
           "%}<|arg key=\"{{ k }}\" type=\"{{ 'string' if v is string else 'null' if v is none else 'boolean' if v is "
           "boolean else 'number' if v is number else 'object' }}\"|>{{ v if v is string else v | tojson "
           "}}<|end|>{% endfor %}<|done|>{% endfor %}"},
      {.name = "values as Python writes them, line breaks at their ends kept",
       .calls = "{% for c in m.tool_calls %}\n<s:call>\n<function={{ c.function.name }}>{% for k, v in "
                "c.function.arguments.items() %}\n<parameter={{ k }}>{{ v }}</parameter>{% endfor %}\n</function>\n"
                "</s:call>{% endfor %}"},
      {.name = "texts of several lines wrapped",
       .calls =
           "{% for c in m.tool_calls %}<function name=\"{{ c.function.name }}\">{% for k, v in "
           "c.function.arguments.items() %}<param name=\"{{ k }}\">{% if v is string and ('\\n' in v or '<' in v or "
           "'&' in v) %}<![CDATA[{{ v }}]]>{% else %}{{ v }}{% endif %}</param>{% endfor %}</function>{% endfor %}"},
      {.name = "a mark that begins like the one around all calls",
       .calls = "<function_calls>\n{% for c in m.tool_calls %}<function name=\"{{ c.function.name }}\">{% for k, v in "
                "c.function.arguments.items() %}<param name=\"{{ k }}\">{{ v if v is string else v | tojson }}</param>"
                "{% endfor %}</function>\n{% endfor %}</function_calls>"},
      {.name = "one call a message",
       .calls = "<|function_call|>{\"name\": \"{{ m.tool_calls[0].function.name }}\", \"arguments\": "
                "{{ m.tool_calls[0].function.arguments | tojson }}}"},
  };
  return kShapes;
}

ChatTemplate template_of(const Shape& shape) {
  return ChatTemplate::compile(
             "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}{% for m in messages %}"
             "<|im_start|>{{ m.role }}\n{{ m.content }}{% if m.tool_calls %}" +
             shape.calls + "{% endif %}" + shape.turn_end +
             "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
      .value();
}

std::vector<Tool> tools() {
  return {
      {.name = "write_file",
       .parameters = Json::parse(R"({"type":"object","properties":{"path":{"type":"string"},"mode":{"type":"integer"},
             "force":{"type":"boolean"},"lines":{"type":"array","items":{"type":"string"}}},"required":["path","mode"]})")},
      {.name = "list.all"}};
}

std::optional<std::string> render(const ChatTemplate& chat_template, const ProbeReply& reply) {
  return ReplyProber(chat_template, {}).render(reply);
}

const ProbeReply& asked() {
  static const ProbeReply kAsked = {
      .content = "",
      .calls = {{.name = "write_file",
                 .id = "abcDEF123",
                 .arguments = {{"path", "a \"b\" <c>\nd\n"}, {"mode", 12}, {"lines", {"x", "</y>"}}}}}};
  return kAsked;
}

TEST(TaughtCalls, reads_what_templates_of_every_shape_write) {
  for (const Shape& shape : shapes()) {
    const ChatTemplate chat_template = template_of(shape);
    const TaughtCalls taught = TaughtCalls::find(chat_template, {});
    EXPECT_EQ(taught.format().name(), shape.format) << shape.name;
    EXPECT_TRUE(taught.shows_tools()) << shape.name;
    EXPECT_TRUE(reads_back(chat_template, {}, taught.format())) << shape.name;
    const std::optional<std::string> text = render(chat_template, asked());
    ASSERT_TRUE(text) << shape.name;
    const ParsedReply reply = parse_reply({.calls = &taught.format(), .tools = tools()}, *text);
    ASSERT_EQ(reply.calls.size(), 1U) << shape.name << *text;
    EXPECT_EQ(reply.calls[0].name, "write_file");
    EXPECT_EQ(Json::parse(reply.calls[0].arguments), asked().calls[0].arguments) << shape.name;
    EXPECT_TRUE(reply.calls[0].complete) << shape.name;
    EXPECT_EQ(reply.content, "") << shape.name;
  }
}

TEST(TaughtCalls, forces_what_the_template_writes) {
  for (const Shape& shape : shapes()) {
    const TaughtCalls taught = TaughtCalls::find(template_of(shape), {});
    const auto made = call_grammar(taught.format(), {.tools = tools(), .parallel = true});
    ASSERT_TRUE(made.ok()) << shape.name << made.status().message();
    GrammarMatch grammar(made->grammar);
    EXPECT_EQ(grammar.error(), "") << shape.name;
    ProbeReply plain = asked();
    // Free text where a value wraps what is difficult is not forced to be wrapped.
    plain.calls[0].arguments = {{"path", "a.c"}, {"mode", 12}};
    std::string text = render(template_of(shape), plain).value();
    text = text.substr(text.find_first_not_of(" \n"));
    EXPECT_TRUE(grammar.matches(text.substr(0, text.find_last_not_of(" \n") + 1))) << shape.name << "\n" << text;
    plain.calls[0].arguments = {{"path", "a.c"}};
    text = render(template_of(shape), plain).value();
    text = text.substr(text.find_first_not_of(" \n"));
    EXPECT_FALSE(GrammarMatch(made->grammar).matches(text.substr(0, text.find_last_not_of(" \n") + 1))) << shape.name;
  }
}

TEST(TaughtCalls, writes_as_the_template_does) {
  for (const Shape& shape : shapes()) {
    const TaughtCalls taught = TaughtCalls::find(template_of(shape), {});
    const std::string written =
        taught.format().write({{.name = "write_file", .arguments = R"({"path": "a", "mode": 3})"}});
    const ParsedReply reply = parse_reply({.calls = &taught.format(), .tools = tools()}, written);
    ASSERT_EQ(reply.calls.size(), 1U) << shape.name << written;
    EXPECT_EQ(Json::parse(reply.calls[0].arguments), Json::parse(R"({"path": "a", "mode": 3})")) << shape.name;
  }
}

TEST(TaughtCalls, says_the_same_for_every_cut_and_keeps_all_text_of_broken_calls) {
  for (const Shape& shape : shapes()) {
    const TaughtCalls taught = TaughtCalls::find(template_of(shape), {});
    const std::string text = "So: " + render(template_of(shape), asked()).value() + " and on";
    for (std::size_t n = 0; n <= text.size(); ++n) {
      const ReplyRules rules{.calls = &taught.format(), .tools = tools(), .id_seed = 7};
      const std::string part = text.substr(0, n);
      const ParsedReply streamed = parse_reply_by_bytes(rules, part);
      EXPECT_EQ(streamed, parse_reply(rules, part)) << shape.name << ": " << part;
      if (streamed.calls.empty()) {
        EXPECT_EQ(streamed.content, part) << shape.name;
      }
    }
  }
}

TEST(TaughtCalls, describes_tools_in_the_form_that_is_read) {
  // Calls are shown, tools are not.
  Shape shape = shapes()[4];
  const ChatTemplate hides_tools = ChatTemplate::compile(
                                       "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
                                       "{% if m.tool_calls %}" +
                                       shape.calls + "{% endif %}<|im_end|>\n{% endfor %}")
                                       .value();
  const TaughtCalls taught = TaughtCalls::find(hides_tools, {});
  EXPECT_FALSE(taught.shows_tools());
  EXPECT_EQ(taught.format().name(), "derived");
  ChatRequest request;
  request.messages.push_back({{"role", "user"}, {"content", "Hello"}});
  request.tools = Json::parse(R"([{"type":"function","function":{"name":"read","parameters":{}}}])");
  taught.prepare(request);
  const auto text = request.messages[0]["content"].get<std::string>();
  EXPECT_NE(text.find("<\uff5ccall\uff5c>...<\uff5csep\uff5c>{...}<\uff5cend\uff5c>"), std::string::npos) << text;
}

TEST(TaughtCalls, where_nothing_is_read_tools_and_calls_are_written_as_hermes_has_them) {
  // The name twice, and arguments that are neither JSON nor tags.
  const ChatTemplate odd =
      ChatTemplate::compile(
          "{{ tools | tojson if tools }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% for c in "
          "m.tool_calls or [] %}!{{ c.function.name }} {{ c.function.arguments | length }} "
          "{{ c.function.name }}!{% endfor %}{% endfor %}")
          .value();
  const TaughtCalls taught = TaughtCalls::find(odd, {});
  EXPECT_EQ(&taught.format(), &hermes_calls());
  EXPECT_FALSE(taught.shows_tools());
  ChatRequest request;
  request.messages.push_back({{"role", "user"}, {"content", "Hello"}});
  request.messages.push_back(
      {{"role", "assistant"},
       {"content", ""},
       {"tool_calls",
        Json::parse(R"([{"id":"a","type":"function","function":{"name":"read","arguments":{"path":"a"}}}])")}});
  request.messages.push_back({{"role", "tool"}, {"tool_call_id", "a"}, {"content", "dark"}});
  taught.prepare(request);
  const std::string prompt = render_chat_request(odd, request, {}).value().text();
  EXPECT_NE(prompt.find("<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\":\"a\"}}\n</tool_call>"),
            std::string::npos)
      << prompt;
  EXPECT_EQ(prompt.find('!'), std::string::npos);
}

TEST(TaughtCalls, a_template_that_needs_tools_keeps_them) {
  const ChatTemplate needs = ChatTemplate::compile(
                                 "{% for t in tools %}({{ t.function.name }}){% endfor %}{% for m in messages "
                                 "%}[{{ m.role }}]{{ m.content }}{% endfor %}")
                                 .value();
  ChatRequest request;
  request.messages.push_back({{"role", "user"}, {"content", "Hello"}});
  request.tools = Json::parse(R"([{"type":"function","function":{"name":"read","parameters":{}}}])");
  TaughtCalls::find(needs, {}).prepare(request);
  const std::string prompt = render_chat_request(needs, request, {}).value().text();
  EXPECT_NE(prompt.find("(read)"), std::string::npos);
  EXPECT_NE(prompt.find("<tool_call>"), std::string::npos) << "calls in a form that is read";
}

TEST(TaughtCalls, content_is_none_where_a_template_asks_for_that) {
  const ChatTemplate asks =
      ChatTemplate::compile(
          "{{ tools | tojson if tools }}{% for m in messages %}{% if m.tool_calls %}<|call|>"
          "{{ m.tool_calls[0].function.name }}<|sep|>{{ m.tool_calls[0].function.arguments | tojson }}"
          "<|end|>{% endif %}{% if m.content is not none %}[{{ m.role }}]{{ m.content }}[over]{% endif %}"
          "{% endfor %}")
          .value();
  ChatRequest request;
  request.messages.push_back({{"role", "user"}, {"content", "Hello"}});
  request.messages.push_back(
      {{"role", "assistant"},
       {"content", ""},
       {"tool_calls", Json::parse(R"([{"id":"a","type":"function","function":{"name":"read","arguments":{}}}])")}});
  EXPECT_EQ(render_chat_request(asks, request, {}).value().text(), "[user]Hello[over]<|call|>read<|sep|>{}<|end|>");
}

TEST(TaughtCalls, finding_out_takes_no_more_steps_than_are_allowed_together) {
  // Each rendering keeps to its own limit.
  const ChatTemplate slow =
      ChatTemplate::compile("{% for i in range(100) %}{% for j in range(5000) %}{% endfor %}{% endfor %}" +
                            template_of(shapes()[1]).source())
          .value();
  ASSERT_TRUE(slow.render({.messages = Json::array()}).ok());
  const TaughtCalls taught = TaughtCalls::find(slow, {});
  EXPECT_NE(taught.doubt().find("steps"), std::string::npos);
  EXPECT_EQ(taught.format().name(), "hermes");
  EXPECT_FALSE(taught.shows_tools());
  ChatRequest request;
  request.messages.push_back({{"role", "user"}, {"content", "Hello"}});
  request.tools = Json::array({{{"type", "function"}, {"function", {{"name", "look"}}}}});
  taught.prepare(request);
  EXPECT_NE(Json(request.messages).dump().find("look"), std::string::npos);
  for (const Shape& shape : shapes()) EXPECT_EQ(TaughtCalls::find(template_of(shape), {}).doubt(), "") << shape.name;
}

}  // namespace
}  // namespace ebb
