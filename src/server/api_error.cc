#include "server/api_error.h"

#include <utility>

namespace ebb {
namespace {

// The field that a message begins with, as JsonFields writes it; null where it names none.
Json named_field(std::string_view message) {
  constexpr std::string_view kBegin = "Field '";
  if (!message.starts_with(kBegin)) return nullptr;
  message.remove_prefix(kBegin.size());
  return message.substr(0, message.find('\''));
}

std::string_view anthropic_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503: return "overloaded_error";
    default: return status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

std::string json_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json error_json(const ApiError& error) {
  Json inner = {
      {"code", error.status}, {"type", error.type}, {"param", named_field(error.message)}, {"message", error.message}};
  inner.update(error.more);
  return {{"error", inner}};
}

HttpAnswer json_answer(const Json& json, int status) {
  return {.status = status, .headers = {{"Content-Type", "application/json; charset=utf-8"}}, .body = json_text(json)};
}

Json anthropic_error_json(const ApiError& error) {
  // Clients compact when they read these words.
  const bool is_too_long = error.type == "exceed_context_size_error";
  Json inner = {{"type", anthropic_type(error.status)},
                {"message", (is_too_long ? "prompt is too long: " : "") + error.message}};
  inner.update(error.more);
  return {{"type", "error"}, {"error", std::move(inner)}};
}

HttpAnswer to_answer(const ApiError& error, ErrorShape shape) {
  HttpAnswer answer = json_answer(shape(error), error.status);
  if (error.retry_after_s > 0) answer.headers.push_back({"Retry-After", std::to_string(error.retry_after_s)});
  return answer;
}

ApiError to_api_error(const Status& status) {
  switch (status.code()) {
    case Code::kInvalidArgument:
    case Code::kUnsupported: return {.message = status.message()};
    case Code::kNotFound: return {.status = 404, .type = "not_found_error", .message = status.message()};
    case Code::kOutOfBudget:
    case Code::kCancelled:
      return {.status = 503, .type = "unavailable_error", .message = status.message(), .retry_after_s = 1};
    default: return {.status = 500, .type = "server_error", .message = status.message()};
  }
}

ApiError internal_error() {
  return {.status = 500, .type = "server_error", .message = "an error inside the server; this request was given up"};
}

HttpAnswer http_error_answer(int status, std::string_view message) {
  ApiError error{.status = status, .message = std::string(message)};
  if (status == 429) error.type = "rate_limit_error";
  if (status == 503) error.type = "unavailable_error";
  if (status == 429 || status == 503) error.retry_after_s = 1;
  return to_answer(error);
}

}  // namespace ebb
