// What tests of the reply parser have in common: tools that a reply may call, and the rules of a format with them.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "chat/reply_parser.h"

namespace ebb {

inline std::vector<Tool> toy_tools() {
  return {{.name = "read",
           .parameters = nlohmann::ordered_json::parse(
               R"({"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"},
             "all":{"type":"boolean"},"tags":{"type":"array"},"any":{},"maybe":{"type":["string","null"]}}})")},
          {.name = "ls"}};
}

inline ReplyRules rules_for(const CallFormat* calls) { return {.calls = calls, .tools = toy_tools(), .id_seed = 7}; }

}  // namespace ebb
