// ApiClient: a server without its sockets: an engine, a scheduler and the routes of `ebb serve`, asked as a client would.
//
// What a request goes through is what it goes through in `ebb serve`, from its JSON to its JSON. It knows no bench.
// Thread rule: one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/scheduler.h"
#include "json/json_fields.h"
#include "server/api.h"
#include "server/http_message.h"
#include "session/turn.h"

namespace ebb {

// A message of a chat request.
[[nodiscard]] Json make_message(std::string_view role, std::string_view content);

class ApiClient {
 public:
  static Result<std::unique_ptr<ApiClient>> open(const EngineOptions& engine, const SchedulerOptions& scheduler,
                                                 ApiOptions api);

  // The answer to a POST. kInvalidArgument with the server's message for any status but 200.
  Result<Json> post(std::string path, const Json& body, std::string_view session);
  // A second session that stands where the one stands in which this chat request was asked as `session`, and goes its own way: asked as
  // `as`. Its blocks come back without a forward pass.
  Status fork(const Json& body, std::string_view session, std::string_view as);
  // The tokens that a chat request's prompt has when it says it all.
  Result<std::vector<Token>> prompt_tokens(const Json& body);
  // What the session that was asked last holds now, with what waits in it.
  [[nodiscard]] std::vector<Token> held_tokens();
  // Tokens that were hot at once in it, at most.
  [[nodiscard]] std::int32_t peak_hot_tokens();
  [[nodiscard]] const Vocabulary& vocabulary() const { return engine_->vocabulary(); }

 private:
  ApiClient() = default;

  // The answer to any request, whatever its status.
  HttpAnswer ask(HttpRequest request);

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Api> api_;
};

}  // namespace ebb
