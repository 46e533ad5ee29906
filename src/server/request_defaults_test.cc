#include "server/request_defaults.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(RequestDefaults, hold_where_a_request_does_not_say) {
  Json body = Json::parse(R"({"temperature":0.5,"top_k":null,"chat_template_kwargs":{"a":1}})");
  const Result<Json> defaults = default_members({.sampling = {.temperature = 0.0F, .top_k = 7, .seed = 42},
                                                 .max_tokens = 9,
                                                 .chat_template_kwargs = R"({"a":2,"enable_thinking":false})"});
  ASSERT_TRUE(defaults.ok());
  add_missing(body, *defaults);
  EXPECT_EQ(body["temperature"], 0.5);
  EXPECT_EQ(body["top_k"], 7);
  EXPECT_EQ(body["seed"], 42);
  EXPECT_EQ(body["max_tokens"], 9);
  EXPECT_EQ(body["chat_template_kwargs"], Json::parse(R"({"a":1,"enable_thinking":false})"));
}

TEST(RequestDefaults, refuse_template_arguments_that_are_no_object) {
  for (const char* text : {"{", "[]", "true"}) {
    const Result<Json> defaults = default_members({.chat_template_kwargs = text});
    EXPECT_EQ(defaults.status().code(), Code::kInvalidArgument) << text;
    EXPECT_NE(defaults.status().message().find("--chat-template-kwargs"), std::string::npos);
  }
}

}  // namespace
}  // namespace ebb
