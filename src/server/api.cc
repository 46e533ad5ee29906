#include "server/api.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>

#include <arpa/inet.h>

#include "server/answer.h"
#include "server/api_error.h"
#include "server/api_keys.h"
#include "server/api_state.h"
#include "server/http_wire.h"
#include "server/request_id.h"
#include "server/request_log.h"

namespace ebb {
namespace {

using Route = void (*)(ApiState&, const ApiCall&);

// Which thread answers: the caller's what is at hand, an asker's what waits for the scheduler's step to end, a worker's
// what takes a while.
enum class By : std::uint8_t { kCaller, kAsker, kWorker };

struct Entry {
  std::string_view method;
  std::string_view path;  // without the optional "/v1"; {name} stands for one step
  Route route;
  By by = By::kWorker;
  bool is_open = false;  // to those without a key
};

constexpr std::array kRoutes = {
    Entry{"GET", "/", answer_page, By::kCaller, true},
    Entry{"GET", "/page/{id}", answer_page, By::kCaller, true},
    Entry{"GET", "/health", answer_health, By::kCaller, true},
    Entry{"GET", "/models", answer_models, By::kCaller, true},
    Entry{"GET", "/models/{id}", answer_model, By::kCaller, true},
    Entry{"GET", "/props", answer_props},
    Entry{"GET", "/metrics", answer_metrics},
    Entry{"GET", "/slots", answer_slots, By::kAsker},
    Entry{"POST", "/slots/{id}", answer_slot_act, By::kCaller},
    Entry{"GET", "/budget", answer_budget, By::kAsker},
    Entry{"POST", "/budget", answer_set_budget, By::kAsker},
    Entry{"GET", "/sessions", answer_sessions, By::kAsker},
    Entry{"POST", "/sessions/import", answer_import, By::kAsker},
    Entry{"GET", "/sessions/{id}", answer_session, By::kAsker},
    Entry{"DELETE", "/sessions/{id}", answer_delete_session, By::kAsker},
    Entry{"GET", "/sessions/{id}/blocks", answer_blocks, By::kAsker},
    Entry{"POST", "/sessions/{id}/blocks/{act}", answer_block_act, By::kAsker},
    Entry{"POST", "/sessions/{id}/budget", answer_session_budget, By::kAsker},
    Entry{"POST", "/sessions/{id}/policy", answer_session_policy, By::kAsker},
    Entry{"POST", "/sessions/{id}/export", answer_export, By::kAsker},
    Entry{"GET", "/policies", answer_policies},
    Entry{"GET", "/store", answer_store},
    Entry{"POST", "/chat/completions", answer_chat},
    Entry{"POST", "/chat/completions/input_tokens", answer_chat_input_tokens},
    Entry{"POST", "/responses", answer_responses},
    Entry{"POST", "/responses/input_tokens", answer_responses_tokens},
    Entry{"POST", "/messages", answer_messages},
    Entry{"POST", "/messages/count_tokens", answer_messages_tokens},
    Entry{"POST", "/completions", answer_completion},
    Entry{"POST", "/embeddings", answer_embeddings},
    Entry{"POST", "/embedding", answer_native_embedding},
    Entry{"POST", "/completion", answer_native_completion},
    Entry{"POST", "/infill", answer_infill},
    Entry{"POST", "/tokenize", answer_tokenize},
    Entry{"POST", "/detokenize", answer_detokenize},
    Entry{"POST", "/apply-template", answer_apply_template},
};

bool is_local_origin(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!origin.starts_with(scheme)) continue;
    const std::string_view rest = origin.substr(scheme.size());
    for (const std::string_view host : {"localhost", "127.0.0.1", "[::1]"}) {
      if (rest == host || (rest.starts_with(host) && rest[host.size()] == ':')) return true;
    }
  }
  return false;
}

bool is_allowed_origin(std::string_view origin, const std::vector<std::string>& allowed) {
  return is_local_origin(origin) || std::ranges::find(allowed, origin) != allowed.end() ||
         std::ranges::find(allowed, "*") != allowed.end();
}

HttpHeaders cors_headers(const HttpRequest& request, const std::vector<std::string>& allowed) {
  const std::string* origin = request.find_header("origin");
  if (origin == nullptr || !is_allowed_origin(*origin, allowed)) return {};
  return {{"Access-Control-Allow-Origin", *origin}, {"Vary", "Origin"}, {"Access-Control-Allow-Credentials", "true"}};
}

// What every answer has. Anthropic's clients look for the second name of its id.
HttpHeaders headers_of(const HttpRequest& request, const std::string& id, const std::vector<std::string>& allowed) {
  HttpHeaders headers = cors_headers(request, allowed);
  headers.push_back({"x-request-id", id});
  headers.push_back({"request-id", id});
  return headers;
}

// Whether a web page asks that is neither this server's own nor allowed. Browsers ask before they send for a page, but
// not where the request looks like a form's; and its body counts as JSON whatever it is called.
bool is_foreign_page(const HttpRequest& request, const std::vector<std::string>& allowed) {
  const std::string* origin = request.find_header("origin");
  if (origin == nullptr || is_allowed_origin(*origin, allowed)) return false;
  const std::string* host = request.find_header("host");
  const std::size_t scheme_end = origin->find("://");
  return host == nullptr || scheme_end == std::string::npos ||
         !equal_ignoring_case(std::string_view(*origin).substr(scheme_end + 3), *host);
}

bool is_address(const std::string& host) {
  in_addr address{};
  return host.starts_with('[') || ::inet_pton(AF_INET, host.c_str(), &address) == 1;
}

// Names that public DNS never serves: those without a dot, and below what is reserved (RFC 6761, 6762, 8375; ICANN's
// .internal), such as containers' host.docker.internal.
bool is_private_name(std::string_view host) {
  constexpr std::array<std::string_view, 4> kReserved = {".localhost", ".local", ".internal", ".home.arpa"};
  const auto ends_host = [&](std::string_view end) {
    return host.size() > end.size() && equal_ignoring_case(host.substr(host.size() - end.size()), end);
  };
  return host.find('.') == std::string_view::npos || std::ranges::any_of(kReserved, ends_host);
}

// Whether this server is asked by a name that only a stranger can have given it: a web page of evil.example whose
// name's address became ours asks from its own origin. Addresses are no names.
bool is_foreign_host(const HttpRequest& request, const ApiOptions& options) {
  const std::string* header = request.find_header("host");
  if (header == nullptr || request.remote_address == "unix") return false;
  const std::string host = header->substr(0, header->starts_with('[') ? std::string::npos : header->find(':'));
  if (is_address(host) || is_private_name(host)) return false;
  const auto is_host = [&](const std::string& name) { return name == "*" || equal_ignoring_case(name, host); };
  return std::ranges::none_of(options.allowed_hosts, is_host) &&
         std::ranges::find(options.cors_origins, "*") == options.cors_origins.end();
}

bool only_reads(std::string_view method) { return method == "GET" || method == "HEAD" || method == "OPTIONS"; }

// Why nobody who asks so is answered, by the request's head alone; nothing for those who may ask.
std::optional<ApiError> find_refusal(const ApiOptions& options, const ApiKeys& keys, const HttpRequest& head) {
  if (!keys.empty()) {
    if (keys.find_owner(head)) return std::nullopt;
    return ApiError{.status = 401, .type = "authentication_error", .message = "Invalid API Key"};
  }
  if (is_foreign_host(head, options)) {
    return ApiError{.status = 403,
                    .type = "permission_error",
                    .message =
                        "the Host header has a name that this server does not know as its own; ask by address, "
                        "or start the server with --allowed-hosts and that name, or with --api-key"};
  }
  // A key is what no page can send without being asked first.
  if (!only_reads(head.method) && is_foreign_page(head, options.cors_origins)) {
    return ApiError{.status = 403,
                    .type = "permission_error",
                    .message =
                        "a web page of another origin asks; start the server with --cors-origins and that "
                        "origin, or with --api-key"};
  }
  return std::nullopt;
}

std::string_view next_step(std::string_view& path) {
  const std::size_t end = std::min(path.find('/', 1), path.size());
  const std::string_view step = path.substr(0, end);
  path.remove_prefix(end);
  return step;
}

// Whether a path is of a route's shape; then `call` has what its braces stand for.
bool matches(std::string_view shape, std::string_view path, ApiCall& call) {
  std::string id;
  std::string act;
  while (!shape.empty() && !path.empty()) {
    const std::string_view wanted = next_step(shape);
    const std::string_view given = next_step(path);
    if (wanted == "/{id}" && given.size() > 1) {
      id = given.substr(1);
    } else if (wanted == "/{act}" && given.size() > 1) {
      act = given.substr(1);
    } else if (wanted != given) {
      return false;
    }
  }
  if (!shape.empty() || !path.empty()) return false;
  call.id = std::move(id);
  call.act = std::move(act);
  return true;
}

// What is left of a path behind the prefix and the optional version; "" where it does not begin with the prefix.
std::string_view route_path(std::string_view path, std::string_view prefix) {
  if (!path.starts_with(prefix)) return {};
  path.remove_prefix(prefix.size());
  if (path.starts_with("/v1/")) path.remove_prefix(3);
  return path;
}

// Who speaks Anthropic's API is told so, also where there is no route or the route is both APIs'.
bool speaks_anthropic(const HttpRequest& request, std::string_view path) {
  if (path == "/messages" || path.starts_with("/messages/")) return true;
  return is_anthropics(request) && std::ranges::none_of(kRoutes, [&](const Entry& entry) {
           ApiCall call;
           return !entry.path.starts_with("/models") && matches(entry.path, path, call);
         });
}

}  // namespace

struct Api::State : ApiState {
  using ApiState::ApiState;
};

Result<std::unique_ptr<Api>> Api::create(const Engine& engine, Scheduler& scheduler, ApiOptions options) {
  auto state = std::make_unique<State>(engine, scheduler, std::move(options));
  EBB_RETURN_IF_ERROR(state->open());
  return std::unique_ptr<Api>(new Api(std::move(state)));
}

Api::Api(std::unique_ptr<State> state) : state_(std::move(state)) {}
Api::~Api() = default;

const std::string& Api::template_doubt() const { return state_->taught_calls.doubt(); }

// Nothing of strangers is read: no route that is open to them takes a body.
std::optional<HttpAnswer> Api::check_body(const HttpRequest& head) const {
  const std::optional<ApiError> refusal = find_refusal(state_->options, *state_->keys(), head);
  if (!refusal) return std::nullopt;
  const std::string_view path = route_path(head.path, state_->options.prefix);
  HttpAnswer answer = to_answer(*refusal, speaks_anthropic(head, path) ? anthropic_error_json : error_json);
  const std::string id = request_id(head);
  std::ranges::move(headers_of(head, id, state_->options.cors_origins), std::back_inserter(answer.headers));
  if (const auto& log = state_->options.log_request; log) {
    log(request_line(id, head, {.status = answer.status}));
  }
  return answer;
}

HttpBodyShare Api::share_body(const HttpRequest& head) const {
  const std::shared_ptr<const ApiKeys> keys = state_->keys();
  return {.owner = keys->find_owner(head).value_or(""),
          .most_bytes = key_bound(state_->options.key_body_bytes, state_->options.max_bodies_bytes, keys->size())};
}

void Api::set_keys(ApiKeys keys) { state_->set_keys(std::move(keys)); }

void Api::handle(HttpRequest request, std::shared_ptr<Responder> responder) {
  ApiCall call{.request = std::move(request), .responder = std::move(responder)};
  const std::string request_name = request_id(call.request);
  call.headers = headers_of(call.request, request_name, state_->options.cors_origins);
  if (const auto& log = state_->options.log_request; log) {
    call.responder = log_answer(std::move(call.responder), request_name, call.request, log);
  }
  if (call.request.method == "OPTIONS") {
    call.headers.push_back({"Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"});
    call.headers.push_back({"Access-Control-Allow-Headers", "*"});
    return call.send({});
  }
  // The page's own links are relative to a folder.
  if (const std::string& prefix = state_->options.prefix; !prefix.empty() && call.request.path == prefix) {
    return call.send({.status = 308, .headers = {{"Location", prefix + "/"}}});
  }
  const std::string_view path = route_path(call.request.path, state_->options.prefix);
  const bool is_head = call.request.method == "HEAD";
  const Entry* found = nullptr;
  std::string methods;
  for (const Entry& entry : kRoutes) {
    if (!matches(entry.path, path, call)) continue;
    methods += (methods.empty() ? "" : ", ") + std::string(entry.method);
    if (entry.method == call.request.method || (is_head && entry.method == "GET")) found = &entry;
  }
  if (speaks_anthropic(call.request, path)) call.error_shape = anthropic_error_json;
  const std::shared_ptr<const ApiKeys> keys = state_->keys();
  const std::optional<ApiError> refusal = find_refusal(state_->options, *keys, call.request);
  if (refusal && (found == nullptr || !found->is_open)) return call.refuse(*refusal);
  call.owner = keys->find_owner(call.request).value_or("");
  if (found == nullptr && methods.empty()) {
    return call.refuse({.status = 404, .type = "not_found_error", .message = "no such route"});
  }
  if (found == nullptr) {
    call.headers.push_back({"Allow", methods});
    return call.refuse({.status = 405, .message = "this route takes " + methods});
  }
  if (found->by == By::kCaller) return answer_guarded(call, [&] { found->route(*state_, call); });
  auto shared = std::make_shared<ApiCall>(std::move(call));
  Workers& workers = found->by == By::kAsker ? state_->askers : state_->workers;
  const Workers::Room room = workers.post(
      shared->owner, shared->request.body.size(),
      [state = state_.get(), shared, route = found->route] {
        answer_guarded(*shared, [&] { route(*state, *shared); });
      },
      state_->most_waiting());
  if (room == Workers::Room::kTaken) return;
  if (room == Workers::Room::kNoneOfOwner) {
    return shared->refuse({.status = 429,
                           .type = "rate_limit_error",
                           .message = "too many requests of this key are waiting to be read; try again later",
                           .retry_after_s = 1});
  }
  shared->refuse({.status = 503,
                  .type = "unavailable_error",
                  .message = "too many requests are waiting to be read; try again later",
                  .retry_after_s = 1});
}

}  // namespace ebb
