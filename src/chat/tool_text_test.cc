#include "chat/tool_text.h"

#include "chat/calls/call_format.h"
#include "gtest/gtest.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

ChatRequest request_with(std::initializer_list<Json> messages) {
  ChatRequest request;
  request.messages = messages;
  request.tools = Json::parse(R"([{"type":"function","function":{"name":"read","parameters":{}}}])");
  return request;
}

TEST(ToolText, knows_which_templates_show_tools) {
  const auto shows = [](std::string source) {
    return shows_tools(ChatTemplate::compile(std::move(source)).value(), {});
  };
  EXPECT_TRUE(shows("{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{{ messages[0].content }}"));
  EXPECT_FALSE(shows("{{ messages[0].content }}{% if tools %}tools{% endif %}"));
  EXPECT_FALSE(shows("{{ raise_exception('no') }}"));
}

TEST(ToolText, knows_which_templates_show_calls_and_the_system) {
  const auto compiled = [](std::string source) { return ChatTemplate::compile(std::move(source)).value(); };
  const ChatTemplate all = compiled(
      "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}"
      "{% endfor %}");
  EXPECT_TRUE(shows_calls(all, {}));
  EXPECT_TRUE(shows_system_text(all, {}));
  const ChatTemplate users = compiled("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}");
  EXPECT_FALSE(shows_calls(users, {}));
  // What it leaves out is said by the user (chat/template_losses.h).
  EXPECT_TRUE(shows_system_text(users, {}));
  EXPECT_FALSE(shows_system_text(compiled("{{ messages[0].role }}"), {}));
}

TEST(ToolText, puts_tools_into_the_system_message_with_a_form_that_is_read) {
  ChatRequest with_system = request_with({{{"role", "system"}, {"content", "Be kind."}}});
  describe_tools(with_system, hermes_calls());
  ASSERT_EQ(with_system.messages.size(), 1U);
  const auto text = with_system.messages[0]["content"].get<std::string>();
  EXPECT_TRUE(text.starts_with("Be kind.\n\n"));
  EXPECT_NE(text.find("\"name\":\"read\""), std::string::npos);
  EXPECT_EQ(find_call_format(text), &hermes_calls());
  EXPECT_TRUE(with_system.tools.is_null());
  EXPECT_EQ(with_system.n_put_in_front, 0U);
  ChatRequest without = request_with({{{"role", "user"}, {"content", "Hello"}}});
  describe_tools(without, hermes_calls());
  ASSERT_EQ(without.messages.size(), 2U);
  EXPECT_EQ(without.messages[0]["role"], "system");
  EXPECT_EQ(without.n_put_in_front, 1U);
}

}  // namespace
}  // namespace ebb
