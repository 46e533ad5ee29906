// Requests of OpenAI's Responses API, said as chat requests: the rest of the way is chat's (server/chat_plan.h).
//
// Thread rule: a function of its arguments.
#pragma once

#include <string>
#include <vector>

#include "json/json_fields.h"

namespace ebb {

struct ResponsesRequest {
  // The request as a body of /v1/chat/completions.
  Json chat = Json::object();
  // What was left out: tools that are not functions.
  std::vector<std::string> warnings = {};
};

// kInvalidArgument names the field.
Result<ResponsesRequest> read_responses_request(const Json& body);

}  // namespace ebb
