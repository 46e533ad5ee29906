// What tests of the reply parser have in common: tools that a reply may call, the rules of a format with them, and what a reply is to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chat/calls/form_calls.h"
#include "chat/reply_parser.h"

namespace ebb {

inline std::vector<Tool> toy_tools() {
  return {{.name = "read",
           .parameters = nlohmann::ordered_json::parse(
               R"({"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"},
             "all":{"type":"boolean"},"tags":{"type":"array"},"any":{},"maybe":{"type":["string","null"]}}})")},
          {.name = "ls"}};
}

// As derived from GLM's templates.
inline const CallFormat& glm_form() {
  static const FormCalls kGlm({.between = "\n",
                               .call = {{.text = "<tool_call>"},
                                        {.kind = CallPiece::Kind::kName},
                                        {.text = "\n"},
                                        {.kind = CallPiece::Kind::kArguments},
                                        {.text = "</tool_call>"}},
                               .tags = ArgumentTags{.before_key = "<arg_key>",
                                                    .key_ends = {{JsonType::kAny, "</arg_key>\n<arg_value>"}},
                                                    .value_end = "</arg_value>\n"}});
  return kGlm;
}

inline ReplyRules rules_for(const CallFormat* calls) { return {.calls = calls, .tools = toy_tools(), .id_seed = 7}; }

// A call as it is to be read.
struct ExpectedCall {
  std::string name;
  std::string arguments;
  bool complete = true;
};

inline void expect_reply(const ParsedReply& reply, std::string_view content, const std::vector<ExpectedCall>& calls) {
  EXPECT_EQ(reply.content, content);
  ASSERT_EQ(reply.calls.size(), calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(reply.calls[i].name, calls[i].name);
    EXPECT_EQ(reply.calls[i].arguments, calls[i].arguments);
    EXPECT_EQ(reply.calls[i].complete, calls[i].complete);
    EXPECT_TRUE(CallIds::is_id(reply.calls[i].id));
  }
}

}  // namespace ebb
