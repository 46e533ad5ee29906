#include "bench/api_client.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <utility>

#include "json/parse_json.h"
#include "server/lane_id.h"

namespace ebb {
namespace {

constexpr std::string_view kSessionHeader = "x-session-id";

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

// ok: the answer is 200.
Status accept(const HttpRequest& request, const HttpAnswer& answer) {
  if (answer.status == 200) return {};
  const Result<Json> json = parse_json(answer.body);
  const bool says_why = json.ok() && json->contains("error");
  return error(Code::kInvalidArgument, "{} {} was answered with {}: {}", request.method, request.path, answer.status,
               says_why ? (*json)["error"].value("message", "") : "");
}

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

HttpAnswer ApiClient::ask(HttpRequest request) {
  auto responder = std::make_shared<OneAnswer>();
  std::future<HttpAnswer> answer = responder->answer();
  api_->handle(std::move(request), std::move(responder));
  return answer.get();
}

Result<Json> ApiClient::post(std::string path, const Json& body, std::string_view session) {
  HttpRequest request = {.method = "POST", .path = std::move(path), .body = body.dump()};
  if (!session.empty()) request.headers.push_back({std::string(kSessionHeader), std::string(session)});
  const HttpAnswer got = ask(request);
  EBB_RETURN_IF_ERROR(accept(request, got));
  return parse_json(got.body);
}

Status ApiClient::fork(const Json& body, std::string_view session, std::string_view as) {
  const auto id_of = [&](std::string_view name) {
    return chat_lane_id({.headers = {{std::string(kSessionHeader), std::string(name)}}}, body);
  };
  const HttpRequest exporting = {.method = "POST", .path = fmt::format("/v1/sessions/{}/export", id_of(session))};
  HttpAnswer image = ask(exporting);
  EBB_RETURN_IF_ERROR(accept(exporting, image));
  const HttpRequest importing = {.method = "POST",
                                 .path = "/v1/sessions/import",
                                 .query = fmt::format("id={}", id_of(as)),
                                 .body = std::move(image.body)};
  return accept(importing, ask(importing));
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
