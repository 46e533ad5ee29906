#include "bench/api_client.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <utility>

#include "json/parse_json.h"

namespace ebb {
namespace {

// Keeps the one answer of a request that does not stream.
class OneAnswer final : public Responder {
 public:
  ~OneAnswer() override {
    if (!is_answered_) answer_.set_value({.status = 500});
  }
  void send(HttpAnswer answer) override {
    is_answered_ = true;
    answer_.set_value(std::move(answer));
  }
  void begin_stream(HttpStreamHead head) override { send({.status = head.status}); }
  std::size_t write(std::string_view) override { return 0; }
  void finish() override {}
  void abort() override {}
  [[nodiscard]] bool is_closed() const override { return is_answered_; }
  // Nobody leaves before the answer.
  [[nodiscard]] bool on_close(std::function<void()>) override { return !is_answered_; }

  [[nodiscard]] std::future<HttpAnswer> answer() { return answer_.get_future(); }

 private:
  std::promise<HttpAnswer> answer_;
  std::atomic<bool> is_answered_ = false;
};

const Session* last_used(const Lanes& lanes) {
  const auto last = std::ranges::max_element(lanes.all(), {}, &Lane::last_use);
  return last == lanes.all().end() ? nullptr : last->session.get();
}

}  // namespace

Json make_message(std::string_view role, std::string_view content) { return {{"role", role}, {"content", content}}; }

Result<std::unique_ptr<ApiClient>> ApiClient::open(const EngineOptions& engine, const SchedulerOptions& scheduler,
                                                   ApiOptions api) {
  std::unique_ptr<ApiClient> client(new ApiClient());
  EBB_ASSIGN_OR_RETURN(client->engine_, Engine::open(engine));
  EBB_ASSIGN_OR_RETURN(client->scheduler_, Scheduler::start(*client->engine_, scheduler));
  EBB_ASSIGN_OR_RETURN(client->api_, Api::create(*client->engine_, *client->scheduler_, std::move(api)));
  return client;
}

Result<Json> ApiClient::post(std::string path, const Json& body, std::string_view session) {
  auto responder = std::make_shared<OneAnswer>();
  std::future<HttpAnswer> answer = responder->answer();
  HttpHeaders headers;
  if (!session.empty()) headers.push_back({"x-session-id", std::string(session)});
  api_->handle({.method = "POST", .path = path, .headers = std::move(headers), .body = body.dump()},
               std::move(responder));
  const HttpAnswer got = answer.get();
  EBB_ASSIGN_OR_RETURN(Json json, parse_json(got.body));
  if (got.status == 200) return json;
  return error(Code::kInvalidArgument, "POST {} was answered with {}: {}", path, got.status,
               json.contains("error") ? json["error"].value("message", "") : "");
}

Result<std::vector<Token>> ApiClient::prompt_tokens(const Json& body) {
  EBB_ASSIGN_OR_RETURN(const Json rendered, post("/apply-template", body, ""));
  return vocabulary().tokenize(rendered["prompt"].get<std::string>(), {.parse_special = true});
}

std::vector<Token> ApiClient::held_tokens() {
  std::vector<Token> tokens;
  scheduler_->inspect([&](const Lanes& lanes) {
    const Session* const session = last_used(lanes);
    if (session == nullptr) return;
    tokens.assign(session->tokens().begin(), session->tokens().end());
    tokens.insert(tokens.end(), session->unfinished().begin(), session->unfinished().end());
  });
  return tokens;
}

std::int32_t ApiClient::peak_hot_tokens() {
  std::int32_t peak = 0;
  scheduler_->inspect([&](const Lanes& lanes) {
    const Session* const session = last_used(lanes);
    if (session != nullptr) peak = session->peak_hot_tokens();
  });
  return peak;
}

}  // namespace ebb
