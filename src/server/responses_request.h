// Requests of OpenAI's Responses API, said as chat requests: the rest of the way is chat's (server/chat_plan.h).
//
// Thread rule: a function of its arguments.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "json/json_fields.h"

namespace ebb {

// What a function of the chat is called in the answer.
struct RenamedTool {
  std::string name;
  std::string space = {};  // the namespace; "": none
  bool is_custom = false;
};
using RenamedTools = std::map<std::string, RenamedTool, std::less<>>;

struct ResponsesRequest {
  // The request as a body of /v1/chat/completions.
  Json chat = Json::object();
  RenamedTools renamed = {};
  // What was left out: tools that are not functions, items of other servers' tools.
  std::vector<std::string> warnings = {};
};

// kInvalidArgument names the field.
Result<ResponsesRequest> read_responses_request(const Json& body);

}  // namespace ebb
