// The server as clients see it: routes, shapes, streams, errors, sessions. The API with the scheduler and a model, behind
// a responder that keeps what it is given; sockets are http_test's affair.
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/api_fixture.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

TEST_F(Server, a_chat_is_answered_in_openais_shape_with_honest_counters) {
  const auto kept = chat({user("The code of the north gate is 4711."),
                          {{"role", "assistant"}, {"content", "Noted."}},
                          user("What is the code of the north gate?")});
  ASSERT_EQ(kept->status(), 200) << kept->body();
  const Json json = kept->json();
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_THAT(json["id"].get<std::string>(), ::testing::MatchesRegex("chatcmpl-[A-Za-z0-9]{32}"));
  EXPECT_EQ(json["model"], "m");
  EXPECT_EQ(json["choices"][0]["message"]["role"], "assistant");
  EXPECT_THAT(json["choices"][0]["message"]["content"].get<std::string>(), HasSubstr("4711"));
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
  const Json& usage = json["usage"];
  EXPECT_EQ(usage["total_tokens"], usage["prompt_tokens"].get<int>() + usage["completion_tokens"].get<int>());
  EXPECT_EQ(json["timings"]["cache_n"].get<int>() + json["timings"]["prompt_n"].get<int>(),
            usage["prompt_tokens"].get<int>());
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], json["timings"]["cache_n"]);
  const Json& prompt = json["ebb"]["prompt"];
  int n = 0;
  for (const auto& [name, count] : prompt.items()) n += count.get<int>();
  EXPECT_EQ(n, usage["prompt_tokens"].get<int>());
}

TEST_F(Server, a_stream_says_role_text_end_usage_and_done_in_this_order) {
  const Json messages = {user("The code of the north gate is 4711."),
                         {{"role", "assistant"}, {"content", "Noted."}},
                         user("What is the code of the north gate?")};
  const std::string whole = chat(messages)->json()["choices"][0]["message"]["content"];
  const auto kept = chat(messages, {{"stream", true}, {"stream_options", {{"include_usage", true}}}});
  EXPECT_EQ(kept->status(), 200);
  EXPECT_EQ(kept->header("Content-Type"), "text/event-stream");
  const std::vector<std::string> all = events(kept->body());
  ASSERT_GE(all.size(), 5U);
  EXPECT_EQ(Json::parse(all.front())["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(all.back(), "[DONE]");
  const Json usage = Json::parse(all[all.size() - 2]);
  EXPECT_TRUE(usage["choices"].empty());
  EXPECT_GT(usage["usage"]["completion_tokens"], 0);
  EXPECT_EQ(Json::parse(all[all.size() - 3])["choices"][0]["finish_reason"], "stop");
  std::string text;
  for (std::size_t i = 1; i + 3 < all.size(); ++i) {
    const Json chunk = Json::parse(all[i]);
    EXPECT_FALSE(chunk.contains("usage"));
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    text += chunk["choices"][0]["delta"]["content"].get<std::string>();
  }
  EXPECT_EQ(text, whole);
}

TEST_F(Server, a_history_that_goes_on_is_not_computed_again) {
  Json messages = Json::array({user("The code of the north gate is 4711.")});
  for (const std::string header : {"", "ses_1"}) {
    const HttpHeaders headers = header.empty() ? HttpHeaders{} : HttpHeaders{{"x-session-id", header}};
    messages = Json::array({user("The code of the north gate is 4711" + header)});
    const Json first = chat(messages, {}, headers)->json();
    messages.push_back({{"role", "assistant"}, {"content", first["choices"][0]["message"]["content"]}});
    messages.push_back(user("What is the code of the north gate?"));
    const Json second = chat(messages, {}, headers)->json();
    const int n_first = first["usage"]["prompt_tokens"];
    EXPECT_GE(second["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>(), n_first) << header;
    EXPECT_THAT(second["choices"][0]["message"]["content"].get<std::string>(), HasSubstr("4711"));
  }
}

TEST_F(Server, cached_tokens_are_those_that_the_model_saw_and_nobody_computed_now) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += fmt::format("The {}th quagga sleeps by the river. ", i);
  // Whole blocks leave and come back, so that what is seen fits the budget.
  const Json recall = {{"recall", {{"selectors", "identity+lexical+digest:heads=0"}}}};
  const Json whole = {{"kv_eviction", "streaming"}, {"ebb", recall}};
  const Json json = chat(Json::array({user(text)}), whole)->json();
  const int n_prompt = json["usage"]["prompt_tokens"].get<int>();
  ASSERT_GT(n_prompt, 2 * 1024) << "longer than the budget";
  EXPECT_EQ(json["usage"]["prompt_tokens_details"]["cached_tokens"], 0) << "nobody ever said it before";
  EXPECT_GE(json["ebb"]["prompt"]["holes"].get<int>(), n_prompt - 1024);
  EXPECT_EQ(json["timings"]["prompt_n"], n_prompt) << "also what has left again";

  // Again: but for its last tokens, what is not hot is neither seen nor computed.
  Json more = {{"kv_eviction", "streaming"},
               {"ebb", recall},
               {"stream", true},
               {"return_progress", true},
               {"stream_options", {{"include_usage", true}}}};
  std::vector<Json> parts;
  for (const std::string& data : events(chat(Json::array({user(text)}), more)->body())) {
    if (data != "[DONE]") parts.push_back(Json::parse(data));
  }
  const Json& last = parts.back();
  const int n_cached = last["usage"]["prompt_tokens_details"]["cached_tokens"];
  EXPECT_LE(n_cached, 1024);
  EXPECT_EQ(last["timings"]["cache_n"], n_cached);
  EXPECT_LE(last["timings"]["prompt_n"].get<int>(), 128) << "its end is looked for again: " << last["timings"];
  bool any_progress = false;
  for (const Json& part : parts) {
    if (!part.contains("prompt_progress")) continue;
    any_progress = true;
    EXPECT_LE(part["prompt_progress"]["cache"].get<int>(), 1024) << part["prompt_progress"];
    EXPECT_GE(part["prompt_progress"]["processed"].get<int>(), n_prompt - 128) << "holes are no work";
  }
  EXPECT_TRUE(any_progress);
}

TEST_F(Server, what_is_seen_by_some_heads_is_cached_and_no_hole) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += fmt::format("The {}th quagga sleeps by the river. ", i);
  (void)chat(Json::array({user(text)}));
  const Json json = chat(Json::array({user(text)}))->json();
  const Json& prompt = json["ebb"]["prompt"];
  ASSERT_GT(prompt["partly_hot"], 0) << prompt;
  EXPECT_LE(json["ebb"]["hot_tokens"], 1024) << "as many frames as that";
  EXPECT_EQ(json["usage"]["prompt_tokens_details"]["cached_tokens"],
            json["usage"]["prompt_tokens"].get<int>() - prompt["holes"].get<int>() - prompt["new"].get<int>() -
                prompt["recomputed"].get<int>());
}

TEST_F(Server, a_fact_far_beyond_the_budget_is_still_answered_with_hot_tokens_within_it) {
  // The oldest leave, but for the first block.
  const Json more = {{"kv_eviction", "streaming"}};
  std::string opening = "Listen:";
  for (int i = 0; i < 8; ++i) opening += " The miller counted his sacks beside the slow river at noon.";
  Json messages = Json::array({user(opening + " The code of the north gate is 4711.")});
  for (int turn = 0; turn < 14; ++turn) {
    const Json reply = chat(messages, more, {{"x-session-id", "long"}})->json();
    ASSERT_TRUE(reply.contains("choices")) << reply.dump();
    EXPECT_LE(reply["ebb"]["hot_tokens"].get<int>(), 1024);
    messages.push_back({{"role", "assistant"}, {"content", reply["choices"][0]["message"]["content"]}});
    std::string filler = "Read this:";
    for (int i = 0; i < 16; ++i) filler += " The shepherd crossed the quiet harbour before the rain began.";
    messages.push_back(user(filler));
  }
  messages.back() = user("What is the code of the north gate?");
  const Json reply = chat(messages, more, {{"x-session-id", "long"}})->json();
  EXPECT_GT(reply["usage"]["prompt_tokens"].get<int>(), 2048);
  EXPECT_GT(reply["ebb"]["recalled_blocks"].get<int>(), 0);
  EXPECT_THAT(reply["choices"][0]["message"]["content"].get<std::string>(), HasSubstr("4711"));
}

TEST_F(Server, what_makes_no_sense_is_refused_before_any_work_with_the_field_named) {
  const std::map<std::string, std::pair<int, std::string>> bodies = {
      {"{", {400, "not JSON"}},
      {"[]", {400, "JSON object"}},
      {R"({"messages":"hi"})", {400, "messages"}},
      {R"({"messages":[{"role":"user","content":"x"}],"n":9})", {400, "'n'"}},
      {R"({"messages":[{"role":"user","content":"x"}],"temperature":"hot"})", {400, "'temperature'"}},
      {R"({"messages":[{"role":"user","content":"x"}],"max_tokens":-5})", {400, "'max_tokens'"}},
      {R"({"messages":[{"role":"user","content":"x"}],"grammar":"root ::= ("})", {400, "rammar"}},
      {R"({"messages":[{"role":"user","content":"x"}],"logprobs":5})", {400, "'logprobs'"}},
      {R"({"messages":[{"role":"user","content":"x"}],"stream":1})", {400, "'stream'"}},
      {Json({{"messages", Json::array({user("x")})}, {"stop", std::vector<std::string>(33, "x")}}).dump(),
       {400, "up to 32 strings"}},
      {std::string(1000, '['), {400, "nested"}},
      {R"({"messages":[{"role":"user","content":"x"}],"temperature":1e400})", {400, "too large"}},
  };
  for (const auto& [body, wanted] : bodies) {
    const auto kept = ask("POST", "/v1/chat/completions", body);
    EXPECT_EQ(kept->status(), wanted.first) << body;
    EXPECT_THAT(kept->json()["error"]["message"].get<std::string>(), HasSubstr(wanted.second)) << body;
    EXPECT_EQ(kept->json()["error"]["type"], "invalid_request_error");
  }
  EXPECT_EQ(scheduler_->stats().n_requests, 0);
}

TEST_F(Server, arguments_of_calls_may_be_nested_as_deep_as_a_client_likes) {
  constexpr std::size_t kLevels = 200'000;
  std::string deep;
  for (std::size_t i = 0; i < kLevels; ++i) deep += "{\"a\":";
  deep += "1" + std::string(kLevels, '}');
  const Json call = {{"id", "1"}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", deep}}}};
  const Json assistant = {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}};
  const Json tool = {{"role", "tool"}, {"tool_call_id", "1"}, {"content", "done"}};
  const auto kept =
      ask("POST", "/apply-template", Json({{"messages", Json::array({user("x"), assistant, tool})}}).dump());
  ASSERT_EQ(kept->status(), 200) << kept->body().substr(0, 1000);
  EXPECT_THAT(kept->json()["prompt"].get<std::string>(), HasSubstr("done"));
}

TEST_F(Server, an_id_in_metadata_that_is_no_json_is_none) {
  EXPECT_EQ(chat(Json::array({user("x")}), {{"metadata", {{"user_id", R"({"session_id":1e400})"}}}})->status(), 200);
}

TEST_F(Server, a_prompt_beyond_the_context_is_refused_in_the_words_that_clients_know) {
  open({}, {.rebases = false});
  std::string text;
  while (text.size() < 200'000) text += "a b c d e f g h ";
  const auto kept = chat(Json::array({user(text)}));
  EXPECT_EQ(kept->status(), 400);
  EXPECT_EQ(kept->json()["error"]["type"], "exceed_context_size_error");
  EXPECT_THAT(kept->json()["error"]["message"].get<std::string>(), HasSubstr("exceeds the available context size"));
}

TEST_F(Server, strangers_are_refused_and_owners_do_not_see_each_other) {
  open({.keys = ApiKeys({"alpha", "beta"})});
  EXPECT_EQ(ask("GET", "/v1/sessions")->status(), 401);
  EXPECT_EQ(ask("GET", "/v1/sessions", "", {{"Authorization", "Bearer alph"}})->status(), 401);
  EXPECT_EQ(ask("GET", "/health")->status(), 200);
  EXPECT_EQ(ask("GET", "/v1/models")->status(), 200);
  const HttpHeaders alpha = {{"Authorization", "Bearer alpha"}, {"x-session-id", "s"}};
  const HttpHeaders beta = {{"X-Api-Key", "beta"}, {"x-session-id", "s"}};
  const Json messages = Json::array({user(std::string(400, 'x') + " The code of the north gate is 4711.")});
  EXPECT_EQ(chat(messages, {}, alpha)->status(), 200);
  const Json other = chat(messages, {}, beta)->json();
  EXPECT_EQ(other["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  const Json sessions = ask("GET", "/v1/sessions", "", beta)->json();
  ASSERT_EQ(sessions["data"].size(), 1U);
  EXPECT_THAT(sessions["data"][0]["id"].get<std::string>(), ::testing::StartsWith("s~"));
}

TEST_F(Server, routes_that_are_not_there_and_methods_that_do_not_fit_say_so) {
  EXPECT_EQ(ask("GET", "/nowhere")->status(), 404);
  const auto wrong = ask("GET", "/v1/chat/completions");
  EXPECT_EQ(wrong->status(), 405);
  EXPECT_EQ(wrong->header("Allow"), "POST");
  const auto preflight = ask("OPTIONS", "/v1/chat/completions", "", {{"Origin", "http://localhost:3000"}});
  EXPECT_EQ(preflight->status(), 200);
  EXPECT_EQ(preflight->header("Access-Control-Allow-Origin"), "http://localhost:3000");
  EXPECT_EQ(ask("GET", "/health", "", {{"Origin", "https://evil.example"}})->header("Access-Control-Allow-Origin"), "");
}

TEST_F(Server, without_keys_pages_of_other_origins_may_look_and_not_act) {
  open({.cors_origins = {"https://chat.example"}, .allowed_hosts = {"box.lan"}});
  const auto status = [&](const std::string& method, const std::string& origin) {
    return ask(method, method == "GET" ? "/v1/sessions" : "/tokenize", R"({"content":"x"})",
               {{"Host", "Box.lan:8080"}, {"Origin", origin}, {"Content-Type", "text/plain"}})
        ->status();
  };
  for (const std::string foreign :
       {"https://evil.example", "null", "http://box.lan", "http://box.lan:8080.evil.example"}) {
    EXPECT_EQ(status("POST", foreign), 403) << foreign;
    EXPECT_EQ(status("GET", foreign), 200) << foreign;
  }
  for (const std::string ours :
       {"http://box.lan:8080", "https://chat.example", "http://localhost:3000", "http://127.0.0.1:8080"}) {
    EXPECT_EQ(status("POST", ours), 200) << ours;
  }
  EXPECT_EQ(ask("POST", "/tokenize", R"({"content":"x"})")->status(), 200);
  const auto deleted = ask("DELETE", "/v1/sessions/x", "", {{"Origin", "https://evil.example"}});
  EXPECT_EQ(deleted->status(), 403);
  EXPECT_THAT(deleted->json()["error"]["message"].get<std::string>(), HasSubstr("--cors-origins"));
}

TEST_F(Server, pages_of_all_origins_may_act_where_all_are_allowed_or_with_a_key) {
  const HttpHeaders page = {{"Origin", "https://evil.example"}, {"X-Api-Key", "alpha"}};
  open({.cors_origins = {"*"}});
  EXPECT_EQ(ask("POST", "/tokenize", R"({"content":"x"})", page)->status(), 200);
  open({.keys = ApiKeys({"alpha"})});
  EXPECT_EQ(ask("POST", "/tokenize", R"({"content":"x"})", page)->status(), 200);
}

TEST_F(Server, without_keys_names_that_are_not_this_servers_own_are_refused_whoever_asks_by_them) {
  open({.allowed_hosts = {"box.lan"}});
  const auto status = [&](const std::string& host, const std::string& path = "/v1/sessions") {
    return ask("GET", path, "", {{"Host", host}})->status();
  };
  for (const char* foreign :
       {"evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example",
        "box.lan.evil.example:8080", "evil.example.", "local.example", "evillocal.example", ".local"}) {
    EXPECT_EQ(status(foreign), 403) << foreign;
    // Its own page asks, as it does once its name means this machine.
    EXPECT_EQ(ask("POST", "/tokenize", R"({"content":"x"})",
                  {{"Host", foreign}, {"Origin", std::string("http://") + foreign}})
                  ->status(),
              403)
        << foreign;
    EXPECT_EQ(status(foreign, "/health"), 200) << foreign;
  }
  for (const char* ours : {"localhost", "localhost:8080", "127.0.0.1:8080", "192.168.1.7", "[::1]:8080", "[fe80::1]",
                           "Box.LAN:8080", "box:8080", "host.docker.internal:8080", "box.local", ""}) {
    EXPECT_EQ(status(ours), 200) << ours;
  }
  EXPECT_EQ(ask("GET", "/v1/sessions")->status(), 200) << "without a Host, as HTTP/1.0 may";
  EXPECT_THAT(ask("GET", "/v1/sessions", "", {{"Host", "evil.example"}})->json()["error"]["message"].get<std::string>(),
              HasSubstr("--allowed-hosts"));
  auto over_unix = std::make_shared<Kept>();
  api_->handle(
      {.method = "GET", .path = "/v1/sessions", .headers = {{"Host", "evil.example"}}, .remote_address = "unix"},
      over_unix);
  over_unix->wait();
  EXPECT_EQ(over_unix->status(), 200);
}

TEST_F(Server, with_keys_or_where_all_names_are_allowed_a_host_may_be_any) {
  const HttpHeaders headers = {{"Host", "api.example"}, {"X-Api-Key", "alpha"}};
  for (const ApiOptions& options : {ApiOptions{.keys = ApiKeys({"alpha"})}, ApiOptions{.allowed_hosts = {"*"}},
                                    ApiOptions{.cors_origins = {"*"}}}) {
    open(options);
    EXPECT_EQ(ask("GET", "/v1/sessions", "", headers)->status(), 200);
  }
}

TEST_F(Server, strangers_are_refused_before_their_body_is_read) {
  open({.keys = ApiKeys({"alpha"}), .cors_origins = {"https://chat.example"}});
  HttpRequest head{.method = "POST", .path = "/v1/chat/completions", .headers = {{"Origin", "https://chat.example"}}};
  for (const char* path : {"/v1/chat/completions", "/health", "/nowhere"}) {
    head.path = path;
    const std::optional<HttpAnswer> answer = api_->check_body(head);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 401);
    EXPECT_EQ(Json::parse(answer->body)["error"]["type"], "authentication_error");
    EXPECT_THAT(answer->headers,
                ::testing::Contains(::testing::Field(&HttpHeader::name, "Access-Control-Allow-Origin")));
  }
  head.headers.push_back({"X-Api-Key", "alpha"});
  EXPECT_FALSE(api_->check_body(head));
  open({});
  head.headers = {};
  EXPECT_FALSE(api_->check_body(head));
  head.headers = {{"Origin", "https://evil.example"}};
  EXPECT_EQ(api_->check_body(head).value().status, 403);
}

TEST_F(Server, texts_are_completed_and_tokens_told) {
  const auto tokens = ask("POST", "/tokenize", R"({"content":"north gate","with_pieces":true})")->json()["tokens"];
  ASSERT_FALSE(tokens.empty());
  Json ids = Json::array();
  for (const Json& token : tokens) ids.push_back(token["id"]);
  EXPECT_EQ(ask("POST", "/detokenize", Json({{"tokens", ids}}).dump())->json()["content"], "north gate");
  const auto completed = ask("POST", "/v1/completions", R"({"prompt":"The code of","max_tokens":4,"temperature":0})");
  ASSERT_EQ(completed->status(), 200) << completed->body();
  EXPECT_EQ(completed->json()["object"], "text_completion");
  EXPECT_TRUE(completed->json()["choices"][0]["text"].is_string());
  const auto prompt = ask("POST", "/apply-template", Json({{"messages", Json::array({user("hi")})}}).dump());
  EXPECT_THAT(prompt->json()["prompt"].get<std::string>(), HasSubstr("hi"));
  EXPECT_THAT(ask("GET", "/metrics")->body(), HasSubstr("llamacpp:tokens_predicted_total 4"));
  EXPECT_EQ(ask("GET", "/props")->json()["model_alias"], "m");
}

// Where each character of UTF-8 text begins.
std::vector<std::size_t> characters(const std::string& text) {
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) begins.push_back(i);
  }
  return begins;
}

TEST_F(Server, text_offsets_count_characters_whole_and_streamed) {
  const std::string said = "n\u00e9 \u00e0 5 \u20ac \u65e5\u672c end";
  Json body = Json::parse(R"({"prompt":"The code of","temperature":0,"logprobs":1})");
  body["grammar"] = "root ::= \"" + said + "\"";
  const Json choice = ask("POST", "/v1/completions", body.dump())->json()["choices"][0];
  ASSERT_EQ(choice["text"], said);
  const Json& logprobs = choice["logprobs"];
  ASSERT_EQ(logprobs["text_offset"].size(), logprobs["tokens"].size());
  const std::vector<std::size_t> begins = characters(said);
  std::size_t n_whole = 0;
  for (std::size_t i = 0; i < logprobs["tokens"].size(); ++i) {
    const std::string token = logprobs["tokens"][i];
    const auto offset = logprobs["text_offset"][i].get<std::size_t>();
    ASSERT_LT(offset, begins.size());
    if (token.find("\uFFFD") != std::string::npos) continue;
    EXPECT_TRUE(said.substr(begins[offset]).starts_with(token)) << token << " at " << offset;
    ++n_whole;
  }
  EXPECT_GT(n_whole, 3U);
  EXPECT_EQ(logprobs["text_offset"][0], 0);
  EXPECT_GT(logprobs["text_offset"].back(), 8);
  body["stream"] = true;
  Json streamed = Json::array();
  for (const std::string& data : events(ask("POST", "/v1/completions", body.dump())->body())) {
    if (data == "[DONE]") break;
    const Json part = Json::parse(data)["choices"][0]["logprobs"];
    if (part.is_object()) streamed.insert(streamed.end(), part["text_offset"].begin(), part["text_offset"].end());
  }
  EXPECT_EQ(streamed, logprobs["text_offset"]);
}

TEST_F(Server, a_client_that_leaves_stops_its_request) {
  auto kept =
      send("POST", "/v1/completions", R"({"prompt":"The code of","max_tokens":100000,"stream":true,"temperature":1})");
  kept->wait_for("data: ");
  kept->leave();
  kept->wait();
  EXPECT_EQ(scheduler_->stats().n_requests, 1);
}

TEST_F(Server, what_a_library_throws_is_answered_and_ends_nothing) {
  const auto kept = std::make_shared<ThrowsOnce>();
  api_->handle({.method = "GET", .path = "/v1/models"}, kept);
  kept->wait();
  EXPECT_EQ(kept->status(), 500);
  EXPECT_EQ(kept->json()["error"]["type"], "server_error");
  EXPECT_EQ(kept->body().find("secret"), std::string::npos);
  EXPECT_EQ(ask("GET", "/v1/models")->status(), 200);
}

// A client to whom the writes from one on, and as many as given, end in an exception.
class ThrowsWhileWriting final : public Kept {
 public:
  ThrowsWhileWriting(int first, int n) : first_(first), end_(first + n) {}
  std::size_t write(std::string_view text) override {
    const int number = n_writes_++;
    if (number >= first_ && number < end_) throw std::runtime_error("secret");
    return Kept::write(text);
  }
  void send(HttpAnswer answer) override {
    EXPECT_EQ(n_writes_, 0) << "a stream is no place for a second answer";
    Kept::send(std::move(answer));
  }

 private:
  const int first_;
  const int end_;
  int n_writes_ = 0;
};

TEST_F(Server, what_is_thrown_in_the_midst_of_a_stream_breaks_it_off_and_nothing_else) {
  Json body = {{"messages", Json::array({user("The code of the north gate is 4711.")})},
               {"stream", true},
               {"max_tokens", 100'000}};
  for (std::int32_t t = 0; t < engine_->vocabulary().n_tokens(); ++t) {
    if (engine_->vocabulary().is_end_of_generation(Token(t))) body["logit_bias"][std::to_string(t)] = false;
  }
  // On the route's thread, on the scheduler's, and so that not even the error can be told.
  const std::vector<std::pair<int, int>> faults = {{0, 1}, {3, 1}, {0, 1000}, {3, 1000}};
  for (const auto& [first, n] : faults) {
    const auto kept = std::make_shared<ThrowsWhileWriting>(first, n);
    api_->handle({.method = "POST", .path = "/v1/chat/completions", .body = body.dump()}, kept);
    kept->wait();
    EXPECT_EQ(kept->body().find("server_error") != std::string::npos, n == 1) << kept->body();
    EXPECT_EQ(kept->body().find("[DONE]"), std::string::npos);
    EXPECT_EQ(kept->body().find("secret"), std::string::npos);
    // Its work ends with the step that is under way.
    const auto is_busy = [&] { return std::ranges::any_of(scheduler_->seats(), &Seat::busy); };
    for (int i = 0; i < 10 && is_busy(); ++i) continue;
    EXPECT_FALSE(is_busy());
  }
  EXPECT_EQ(chat(Json::array({user("Hello")}))->status(), 200);
}

}  // namespace
}  // namespace ebb
