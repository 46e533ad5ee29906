// Tool fields: which tools a chat request declares, and whether and how the answer may call them.
//
// Thread rule: a function of its arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chat/calls/tool.h"
#include "json/json_fields.h"

namespace ebb {

enum class ToolUse : std::uint8_t { kNone, kAuto, kRequired };

struct ToolFields {
  // kNone where there are no tools.
  ToolUse use = ToolUse::kNone;
  // tool_choice names this one.
  std::optional<std::string> only = std::nullopt;
  bool parallel = true;
  std::vector<Tool> tools = {};
};

// Reads a body whose tools have passed read_chat_request. kInvalidArgument names the field; also for a tool that is
// strict and whose schema asks for what cannot be enforced.
Result<ToolFields> read_tool_fields(const Json& body);

}  // namespace ebb
