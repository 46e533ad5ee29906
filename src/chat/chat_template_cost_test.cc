// What a template's filters, tests, methods and operators cost: steps in proportion to what they look at.
#include <string>

#include <gtest/gtest.h>

#include "chat/chat_template.h"

namespace ebb {
namespace {

constexpr std::size_t kSteps = std::size_t{1} << 24;

struct Rendering {
  std::string text;
  std::size_t n_steps = 0;
};

Rendering render(const std::string& source) {
  const auto allowance = std::make_shared<RenderAllowance>(RenderAllowance{.n_steps = kSteps});
  const TemplateInputs inputs{.messages = nlohmann::ordered_json::array()};
  const Result<ChatPrompt> prompt = ChatTemplate::compile(source)->within(allowance).render(inputs);
  return {.text = prompt.ok() ? prompt->text() : prompt.status().message(), .n_steps = kSteps - allowance->n_steps};
}

// What one evaluation takes where the string s has so many letters and the list l as many items by 16.
std::size_t steps_of(const std::string& expression, std::size_t n) {
  const std::string begin = "{% set s = 'x' * " + std::to_string(n) + " %}{% set w = ' ' * " + std::to_string(n) +
                            " %}{% set l = [1] * " + std::to_string(n / 16) + " %}";
  return render(begin + "{% set t = " + expression + " %}").n_steps - render(begin).n_steps;
}

TEST(ChatTemplateCost, what_looks_at_a_string_or_list_is_paid_for_in_proportion) {
  constexpr std::size_t kLong = 64000;
  for (const std::string expression : {
           "w.strip()",
           "w.lstrip()",
           "s.strip('x')",
           "w | trim",
           "s | trim('x')",
           "s is upper",
           "s is lower",
           "s.isupper()",
           "s.islower()",
           "s.isalpha()",
           "'y' in s",
           "s in s",
           "s in [s]",
           "s in {s: 1}",
           "w | int",
           "s | int(0, 36)",
           "w | float",
           "s | wordcount",
           "s | length",
           "s.startswith(s)",
           "s.endswith(s)",
           "s.startswith((s, s))",
           "s.removeprefix(s)",
           "s.partition('y')",
           "s.rpartition('y')",
           "s.find('y')",
           "s.rfind('y')",
           "s.count('xy')",
           "s.count('x')",
           "s.replace('y', '')",
           "s | replace('x', 'y')",
           "s.split('y')",
           "w.split()",
           "s.rsplit('y')",
           "s.splitlines()",
           "s == s ~ ''",
           "s < s",
           "s is sameas(s ~ '')",
           "[s, s] | max",
           "[s, s] | sort",
           "[s, s] | unique",
           "[s, s] | map(attribute=s)",
           "{}[s]",
           "{s: 1}",
           "{}.get(s)",
           "{s: 1}.copy()",
           "dict({s: 1})",
           "s[5:]",
           "s[:-1]",
           "s[-1]",
           "s[::-1]",
           "s | first",
           "s | list",
           "s ~ s",
           "s + s",
           "s * 2",
           "'%s' % s",
           "'%.1s' % s",
           "s % ()",
           "s.format()",
           "'{}'.format(s)",
           "s | string | safe",
           "s | upper",
           "s.lower()",
           "s | title",
           "s.capitalize()",
           "s | escape",
           "s | urlencode",
           "s | indent",
           "[s] | join",
           "s.join([1, 2] | map('string'))",
           "s | tojson",
           "{s: 1} | tojson",
           "{s: 1} | tojson(sort_keys=true)",
           "[1, [2]] | tojson(indent=s)",

           "[s] | string",
           "s | reverse",
           "l + l",
           "l[1:]",
           "l == l[:]",
           "l < l[:]",
           "l | map('string')",
           "l | select",
           "l | sum",
           "l | max",
           "l | list",
           "l | unique",
           "l | reverse",
           "2 in l",
           "l | tojson",
           "l | string",
           "l.copy()",
           "l.count(1)",
           "l | join",
           "l | batch(2)",
           "l | sort",
           "l * 2",
           "l | groupby(0)",
       }) {
    EXPECT_GE(steps_of(expression, kLong), steps_of(expression, 64) + kLong / 128) << expression;
  }
}

TEST(ChatTemplateCost, what_is_looked_for_may_be_long_and_begin_everywhere) {
  const std::string begin =
      "{% set s = 'x' * 600000 %}{% set n = 'x' * 300000 ~ 'y' %}{% set m = 'y' ~ 'x' * 300000 %}";
  EXPECT_EQ(render(begin + "{{ n in s }} {{ s.find(n) }} {{ s.count(n) }} {{ s.split(n) | length }} "
                           "{{ s.replace(n, '') == s }} {{ s.partition(n)[1] }}|{{ s.rfind(m) }} "
                           "{{ s.rsplit(m) | length }} {{ s.rpartition(m)[2] == s }} {{ s.strip(m) | length }}")
                .text,
            "False -1 0 1 True |-1 1 True 0");
  EXPECT_EQ(render("{{ 'abcabcab'.rfind('cab') }} {{ 'aabaaab'.rfind('aab') }} {{ 'abab'.rfind('') }} "
                   "{{ 'a-b--c'.rsplit('-', 2) }} {{ 'xaxxa'.rpartition('xa') }} {{ ''.rfind('a') }}")
                .text,
            "5 4 4 ['a-b', '', 'c'] ('xax', 'xa', '') -1");
}

TEST(ChatTemplateCost, names_are_found_among_many) {
  std::string source;
  for (int i = 0; i < 3000; ++i) source += "{% set v" + std::to_string(i) + " = " + std::to_string(i) + " %}";
  EXPECT_EQ(render(source + "{% set v7 = 'seven' %}{{ v0 }} {{ v7 }} {{ v2999 }} {{ v3000 is defined }}").text,
            "0 seven 2999 False");
}

TEST(ChatTemplateCost, one_step_that_costs_more_than_all_is_refused) {
  EXPECT_NE(render("{% set t = ('x' * 60000000).split('y') %}{{ t | length }}").text.find("steps"), std::string::npos);
}

}  // namespace
}  // namespace ebb
