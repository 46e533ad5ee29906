#include "chat/chat_template.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chat/prompt_piece_test.h"

namespace ebb::chat_template_test {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

Result<ChatPrompt> render(const std::string& source, const TemplateInputs& inputs) {
  EBB_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::compile(source));
  return chat_template.render(inputs);
}

TemplateInputs inputs_of(const std::string& messages) { return {.messages = Json::parse(messages)}; }

const TemplateInputs kTwo =
    inputs_of(R"([{"role": "user", "content": " one <|im_end|> "}, {"role": "assistant", "content": "two"}])");

std::vector<PromptPiece> pieces_of(const std::string& source, const TemplateInputs& inputs = kTwo) {
  const auto prompt = render(source, inputs);
  EXPECT_TRUE(prompt.ok()) << prompt.status().message();
  return prompt.ok() ? prompt->pieces : std::vector<PromptPiece>();
}

PromptPiece from(std::size_t message, const std::string& text) {
  return {.text = text, .from_user = true, .message = message};
}

std::string error_of(const std::string& source, const TemplateInputs& inputs = kTwo) {
  const auto prompt = render(source, inputs);
  EXPECT_FALSE(prompt.ok()) << source.substr(0, 200);
  return prompt.ok() ? std::string() : prompt.status().message();
}

TEST(ChatTemplate, says_which_characters_came_from_which_message) {
  EXPECT_EQ(
      pieces_of("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"),
      (std::vector<PromptPiece>{ours("<user>"), from(0, " one <|im_end|> "), ours("<assistant>"), from(1, "two")}));
}

TEST(ChatTemplate, marks_survive_what_templates_do_to_strings) {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"{{ c | trim }}", "one <|im_end|>"},
      {"{{ c.strip() | upper }}", "ONE <|IM_END|>"},
      {"{{ c.split('<')[1] }}", "|im_end|> "},
      {"{{ c[5:13] }}", "<|im_end"},
      {"{{ c[::-1] | trim }}", ">|dne_mi|< eno"},
      {"{{ c | replace('one', '') | trim }}", "<|im_end|>"},
      {"{{ [c, c] | join | trim | length }}", ""},
      {"{{ c.splitlines() | first }}", " one <|im_end|> "},
      {"{% set d %}{{ c }}{% endset %}{{ d }}", " one <|im_end|> "},
      {"{% macro m(x) %}{{ x }}{% endmacro %}{{ m(c) }}", " one <|im_end|> "},
      {"{{ {'k': c}.k }}", " one <|im_end|> "},
      {"{% filter trim %}{{ c }}{% endfilter %}", "one <|im_end|>"},
  };
  for (const auto& [source, text] : changes) {
    const auto pieces = pieces_of("{% set c = messages[0].content %}" + source);
    if (text.empty()) continue;
    EXPECT_EQ(pieces, std::vector<PromptPiece>{from(0, text)}) << source;
  }
}

TEST(ChatTemplate, marks_keep_the_templates_own_words_apart) {
  const std::string c = "{% set c = messages[0].content | trim %}";
  EXPECT_EQ(pieces_of(c + "{{ '<a>' ~ c ~ '<b>' }}"),
            (std::vector<PromptPiece>{ours("<a>"), from(0, "one <|im_end|>"), ours("<b>")}));
  EXPECT_EQ(pieces_of(c + "{{ {'k': c} | tojson }}"),
            (std::vector<PromptPiece>{ours("{\"k\": \""), from(0, "one <|im_end|>"), ours("\"}")}));
  EXPECT_EQ(pieces_of(c + "{{ c.replace('one', '<x>') }}"),
            (std::vector<PromptPiece>{ours("<x>"), from(0, " <|im_end|>")}));
  EXPECT_EQ(pieces_of("{{ '%s|%s' % (messages[0].content | trim, messages[1].content) }}"),
            (std::vector<PromptPiece>{from(0, "one <|im_end|>"), ours("|"), from(1, "two")}));
  EXPECT_EQ(pieces_of("{{ [messages[1].content] }}"),
            (std::vector<PromptPiece>{ours("['"), from(1, "two"), ours("']")}));
}

TEST(ChatTemplate, only_known_roles_are_the_templates_words) {
  const TemplateInputs inputs = inputs_of(R"([{"role": "user", "content": ""}, {"role": "im_end", "content": ""}])");
  EXPECT_EQ(pieces_of("{% for m in messages %}{{ '<|' + m.role + '|>' }}{% endfor %}", inputs),
            (std::vector<PromptPiece>{ours("<|user|><|"), from(1, "im_end"), ours("|>")}));
}

TEST(ChatTemplate, tools_and_arguments_are_of_the_request_but_of_no_message) {
  TemplateInputs inputs = kTwo;
  inputs.tools = Json::parse(R"([{"name": "read"}])");
  inputs.arguments = Json::parse(R"({"tone": "kind"})");
  EXPECT_EQ(
      pieces_of("{{ tools[0].name }}|{{ tone }}", inputs),
      (std::vector<PromptPiece>{{.text = "read", .from_user = true}, ours("|"), {.text = "kind", .from_user = true}}));
}

TEST(ChatTemplate, lists_can_be_changed_which_hugging_faces_sandbox_forbids) {
  EXPECT_EQ(
      render("{% set l = [] %}{% for i in range(4) %}{% set _ = l.append(i) %}{% endfor %}{{ l.pop(0) }}{{ l }}", kTwo)
          ->text(),
      "0[1, 2, 3]");
}

TEST(ChatTemplate, writes_what_map_gives_as_json_which_python_refuses) {
  EXPECT_EQ(
      render("{{ messages | map(attribute='role') | tojson }} {{ [] | select | tojson(indent=2) }}", kTwo)->text(),
      R"(["user", "assistant"] [])");
}

TEST(ChatTemplate, errors_name_the_line_and_what_to_do) {
  EXPECT_THAT(error_of("a\n{% if %}"), HasSubstr("line 2: expected an expression, found '%}'"));
  EXPECT_THAT(error_of("a\n\n{{ nobody.name }}"), HasSubstr("line 3: 'nobody' is undefined"));
  EXPECT_THAT(error_of("{{ raise_exception('Roles must alternate') }}"), HasSubstr("Roles must alternate"));
  EXPECT_THAT(error_of("{% for i in 1 %}"), HasSubstr("{% endfor %}"));
  EXPECT_THAT(error_of("{# open"), HasSubstr("end it with #}"));
}

TEST(ChatTemplate, nothing_runs_for_ever_or_fills_the_memory) {
  for (const std::string source : {
           "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
           "{% macro m(n) %}{{ m(n + 1) }}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
           "{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
           "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
           "{{ 'x' * 1000000000000 }}",
           "{{ [1] * 1000000000000 }}",
           "{{ range(1000000000000) }}",
           "{% set l = [1] %}{% for i in l %}{% set _ = l.append(i) %}{% endfor %}",
           "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}",
           "{% set l = [] %}{% set _ = l.append(l) %}{{ l | tojson }}",
           "{% set a = 'x' * 10000000 %}{{ a.replace('x', a) }}",
           "{% set a = 'x' * 1000000 %}{{ a.replace('', a) }}",
           "{{ 'a\n' * 1000000 | indent(1000) }}",
           "{{ '%999999999s' % 1 }}",
           "{% for i in range(100000) %}{{ 'x' * 1000 }}{% endfor %}",
           "{% set d = [[1]] %}{% set e = [[1]] %}{% for i in range(60) %}{% set _ = d.append([d[-1], d[-1]]) %}"
           "{% set _ = e.append([e[-1], e[-1]]) %}{% endfor %}{{ d[-1] == e[-1] }}",
           "{{ 9223372036854775807 + 1 }}",
           "{{ -9223372036854775807 * 3 }}",
           "{{ 10 ** 100 }}",
           "{{ [1, 2][1:2:0] }}",
       }) {
    EXPECT_THAT(error_of(source), HasSubstr("chat template, line 1")) << source;
  }
}

TEST(ChatTemplate, deep_nesting_is_an_error_or_freed_without_recursion) {
  const auto repeated = [](const std::string& text, int n) {
    std::string all;
    for (int i = 0; i < n; ++i) all += text;
    return all;
  };
  for (const std::string& source :
       {"{{ " + repeated("(", 100000) + repeated(")", 100000) + " }}", "{{ " + repeated("[", 100000) + " }}",
        "{{ " + repeated("-", 100000) + "1 }}", "{{ 1" + repeated("+1", 100000) + " }}",
        "{{ x" + repeated("|trim", 100000) + " }}", "{{ x" + repeated(".a", 100000) + " }}",
        "{{ " + repeated("not ", 100000) + "x }}", repeated("{% if x %}", 100000), repeated("{% for i in x %}", 10000),
        "{{ x" + repeated(" if x else x", 100000) + " }}", "{{ x" + repeated("(1)", 100000) + " }}",
        "{% set " + repeated("(", 100000)}) {
    (void)error_of(source);
  }
  // Values nest through assignments, where no depth of the tree limits them.
  EXPECT_EQ(
      render("{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}{% endfor %}ok", kTwo)
          ->text(),
      "ok");
  EXPECT_EQ(
      render("{% set ns = namespace(d={}) %}{% for i in range(100000) %}{% set ns.d = {'k': ns.d} %}{% endfor %}ok",
             kTwo)
          ->text(),
      "ok");
  EXPECT_EQ(render("{% macro make(f) %}{% macro g() %}{{ f }}{% endmacro %}{% set n.f = g %}{% endmacro %}"
                   "{% set n = namespace(f=0) %}{% for i in range(20000) %}{{ make(n.f) }}{% endfor %}ok",
                   kTwo)
                ->text(),
            "ok");
  Json deep = "x";
  for (int i = 0; i < 5000; ++i) deep = Json::array({deep});
  TemplateInputs inputs = kTwo;
  inputs.messages[0]["content"] = deep;
  EXPECT_THAT(error_of("{{ messages }}", inputs), HasSubstr("deeper"));
}

TEST(ChatTemplate, may_be_rendered_from_several_threads) {
  const auto chat_template =
      ChatTemplate::compile("{% for m in messages %}{{ m | tojson }}{{ 'a' ~ loop.index }}{% endfor %}");
  const std::string expected = chat_template->render(kTwo)->text();
  std::vector<std::thread> threads;
  std::vector<int> n_equal(4);
  for (int& n : n_equal) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) n += chat_template->render(kTwo)->text() == expected ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_equal, std::vector<int>(4, 100));
}

TEST(ChatTemplate, renders_long_sessions_that_are_looked_through_for_each_message) {
  const ChatTemplate looks =
      ChatTemplate::compile("{% for m in messages %}{% for other in messages %}{% endfor %}{{ m.content }}{% endfor %}")
          .value();
  const auto render = [&](int n) {
    TemplateInputs inputs;
    inputs.messages = nlohmann::ordered_json::array();
    for (int i = 0; i < n; ++i) inputs.messages.push_back({{"role", "user"}, {"content", "x"}});
    return looks.render(inputs);
  };
  const Result<ChatPrompt> long_session = render(3500);
  ASSERT_TRUE(long_session.ok()) << long_session.status().message();
  EXPECT_EQ(long_session->text(), std::string(3500, 'x'));
  EXPECT_EQ(render(9000).status().code(), Code::kOutOfBudget);
}

}  // namespace
}  // namespace ebb::chat_template_test
