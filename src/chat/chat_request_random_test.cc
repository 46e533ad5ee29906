// Requests that are cut, mutated or have members of the wrong types: reading one ends with a request that renders, or with an
// error that names a field.
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/toy_rounds.h"
#include "chat/chat_request.h"
#include "json/parse_json.h"

namespace ebb {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kWhole =
    R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "q"}]},
    {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [{"id": "1", "type": "function",
    "function": {"name": "f", "arguments": "{\"a\": 1}"}}]}, {"role": "tool", "tool_call_id": "1", "content": "r"}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "chat_template_kwargs": {"enable_thinking": false}, "reasoning_effort": "low", "add_generation_prompt": true})";

Json random_value(std::mt19937& random) {
  static const std::vector<Json> kValues = {nullptr,
                                            true,
                                            5,
                                            -1.5,
                                            "",
                                            "text",
                                            "assistant",
                                            "function",
                                            Json::array(),
                                            Json::object(),
                                            Json::array({1, "a"}),
                                            Json::array({Json::object()}),
                                            Json{{"type", "text"}, {"text", "t"}},
                                            Json{{"name", 5}}};
  return kValues[random() % kValues.size()];
}

// Some value inside, the whole now and then.
Json& random_place(Json& json, std::mt19937& random) {
  Json* at = &json;
  while (at->is_structured() && !at->empty() && random() % 6 != 0) {
    auto inside = at->begin();
    std::advance(inside, static_cast<std::ptrdiff_t>(random() % at->size()));
    at = &*inside;
  }
  return *at;
}

TEST(ChatRequestRandom, is_read_and_rendered_or_a_field_is_named) {
  const ChatTemplate chat_template =
      ChatTemplate::compile(
          "{% for m in messages %}[{{ m.role }}:{{ m.content }}{% for c in m.tool_calls or [] %}<{{ c.function.name "
          "}}{{ "
          "c.function.arguments | tojson }}>{% endfor %}]{% endfor %}{{ tools | tojson if tools }}")
          .value();
  const Json whole = parse_json(kWhole).value();
  int n_rendered = 0;
  int n_refused = 0;
  for (RandomRounds rounds(4000); rounds.next();) {
    SCOPED_TRACE(rounds.seed());
    std::mt19937 random(rounds.seed());
    Json body = whole;
    for (auto n = 1 + random() % 3; n > 0; --n) random_place(body, random) = random_value(random);
    const Result<ChatRequest> request = read_chat_request(body);
    if (!request.ok()) {
      ++n_refused;
      ASSERT_EQ(request.status().code(), Code::kInvalidArgument);
      ASSERT_THAT(request.status().message(), AnyOf(StartsWith("Field '"), HasSubstr("JSON object"))) << body.dump();
      continue;
    }
    ++n_rendered;
    const Result<ChatPrompt> prompt = render_chat_request(chat_template, *request, {});
    ASSERT_TRUE(prompt.ok()) << prompt.status().message() << "\n" << body.dump();
  }
  EXPECT_GT(n_rendered, 200);
  EXPECT_GT(n_refused, 200);
}

}  // namespace
}  // namespace ebb
