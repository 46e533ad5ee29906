// Api: the routes of `ebb serve` (docs/http_api.md): OpenAI's, llama.cpp's where they mean the same, and ebb's own.
//
// It reads requests, refuses those of strangers and those that make no sense, and gives the rest to the scheduler. It
// does not know sockets, and computes nothing. Prompt text and keys are in no log and no error message.
// Thread rule: handle() from any thread; answers come from worker threads and the scheduler's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/embedder.h"
#include "engine/scheduler.h"
#include "server/api_keys.h"
#include "server/http.h"
#include "server/request_defaults.h"

namespace ebb {

struct ApiOptions {
  // What /v1/models calls the model.
  std::string model_name;
  std::string model_path;
  // Jinja, instead of the model's own templates.
  std::string chat_template;
  // Tokens of a prompt and its reply together, as clients see it; 0: the trained context is told, and sessions go on past it. And however that is,
  // of a prompt at most.
  std::int32_t window_tokens = 0;
  std::int32_t most_prompt_tokens = 1 << 20;
  // Further names of the model.
  std::vector<std::string> aliases = {};
  // For embeddings, and what to call it; null: there are none. It must outlive the API, and is its alone.
  Embedder* embedder = nullptr;
  std::string embedding_model_name;
  // Empty: everyone may ask. Until set_keys().
  ApiKeys keys;
  // Bytes of the bodies of all requests and of one key's that may be on their way; none: as key_bound() has it.
  std::size_t max_bodies_bytes = HttpOptions().max_bodies_bytes;
  std::optional<std::size_t> key_body_bytes = std::nullopt;
  // In front of every route, such as "/llm".
  std::string prefix;
  // Web pages of other origins that may ask; pages of this machine always may.
  std::vector<std::string> cors_origins;
  // Names that public DNS may serve by which this server may be asked where there are no keys (docs/http_api.md).
  std::vector<std::string> allowed_hosts;
  // A stream that says nothing for so long gets a comment, so that nobody takes it for dead.
  std::chrono::milliseconds ping_after{30'000};
  // Requests that may be read and rendered at once, those beside them that take long, and those that may wait for it.
  int n_workers = 2;
  int n_most_workers = 8;
  std::size_t max_waiting = 256;
  // Told a line of each request that ended: its id, what it asked for, its status and time; no query, prompt or key. None:
  // nothing is told. Called from any thread.
  std::function<void(std::string_view line)> log_request = {};
  // Told what requests lose, as LossLog has it. None: nothing is told. Called from any thread.
  std::function<void(std::string_view line)> tell_loss = {};
  // Whether GET /slots answers.
  bool slots = true;
  // For /metrics: what became of connections. None: nothing is told of them.
  std::function<HttpCounters()> http_counters = {};
  // What holds for requests that do not say; same_reply is not looked at.
  ResumeOptions resuming;
  RequestDefaults defaults = {};
  // Blocks that a turn recalls for what its last message asks.
  std::optional<std::int32_t> n_recalled_blocks = std::nullopt;
  // RecallAsk::most_ms.
  double most_recall_ms = kMostRecallMs;
  // Who chooses them.
  SelectorList selectors = SelectorList::fused();
};

class Api {
 public:
  // Engine and scheduler must outlive it; `engine` is only asked for what never changes. kInvalidArgument for a chat
  // template that does not compile.
  static Result<std::unique_ptr<Api>> create(const Engine& engine, Scheduler& scheduler, ApiOptions options);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // What whoever runs the server should know of the model's chat template, in a line; else empty (TaughtCalls::doubt).
  [[nodiscard]] const std::string& template_doubt() const;
  void handle(HttpRequest request, std::shared_ptr<Responder> responder);
  // What the head of a request with a body gets instead of being read to its end: HttpOptions::check_body.
  [[nodiscard]] std::optional<HttpAnswer> check_body(const HttpRequest& head) const;
  // HttpOptions::share_body.
  [[nodiscard]] HttpBodyShare share_body(const HttpRequest& head) const;
  // From the next request on; none were there before, or are now, where everyone may ask. From any thread.
  void set_keys(ApiKeys keys);

 private:
  struct State;
  explicit Api(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ebb
