// What tests of the reply parser have in common: tools that a reply may call, and the rules of a format with them.
#pragma once

#include <vector>

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

}  // namespace ebb
