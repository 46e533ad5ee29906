// API errors: what a client is told, in OpenAI's shape or Anthropic's. SDKs raise by the HTTP status and read
// error.message, type and code; they try again after 409, 429 and 5xx, so what is wrong for good is never one of those.
#pragma once

#include <string>
#include <string_view>

#include "json/json_fields.h"
#include "server/http_message.h"

namespace ebb {

struct ApiError {
  int status = 400;
  std::string type = "invalid_request_error";
  std::string message;
  // Further members of the error object.
  Json more = Json::object();
  // When to ask again after a temporary error; 0: not said.
  int retry_after_s = 0;
};

// How a family of routes says an error: a function of its own.
using ErrorShape = Json (*)(const ApiError&);
// {"error": {"code", "type", "param", "message", ...}}
[[nodiscard]] Json error_json(const ApiError& error);
// {"type": "error", "error": {"type", "message", ...}}, with Anthropic's types, which go by the status.
[[nodiscard]] Json anthropic_error_json(const ApiError& error);
[[nodiscard]] HttpAnswer to_answer(const ApiError& error, ErrorShape shape = error_json);
// What a lower room says of a request: kInvalidArgument and kUnsupported are the client's, the rest is ours.
[[nodiscard]] ApiError to_api_error(const Status& status);
// The error for what was thrown: it does not say what, for that may hold text of the request.
[[nodiscard]] ApiError internal_error();
// The answer to what HTTP itself refuses.
[[nodiscard]] HttpAnswer http_error_answer(int status, std::string_view message);
[[nodiscard]] HttpAnswer json_answer(const Json& json, int status = 200);

// Never throws: bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_text(const Json& json);

}  // namespace ebb
