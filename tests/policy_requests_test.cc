// Policies that a request or a session's owner chooses over HTTP: by what a session goes, which are refused, and that
// nothing but what leaves depends on them.
#include <map>

#include <gmock/gmock.h>

#include "policy/policy.h"
#include "tests/api_fixture.h"

namespace ebb {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class PolicyRequests : public Server {
 protected:
  // The next turn of a client's conversation; what the reply says of itself.
  Json say(const std::string& client, const std::string& text, const std::string& policy = "", std::int32_t n = 24) {
    Json& messages = said_[client];
    messages.push_back(user(text));
    Json more = {{"max_tokens", n}};
    if (!policy.empty()) more["kv_eviction"] = policy;
    const auto reply = chat(messages, more, {{"x-session-id", client}});
    EXPECT_EQ(reply->status(), 200) << reply->body();
    const Json json = reply->json();
    messages.push_back(json["choices"][0]["message"]);
    EXPECT_LE(json["ebb"]["hot_tokens"], json["ebb"]["budget_tokens"]);
    return json;
  }

  std::string text_of(const Json& reply) { return reply["choices"][0]["message"]["content"]; }

  Json session(const std::string& client) {
    const Json sessions = ask("GET", "/v1/sessions")->json();
    for (const Json& one : sessions["data"]) {
      if (one["id"].get<std::string>().starts_with(client + "~")) return one;
    }
    ADD_FAILURE() << "no session of " << client;
    return {};
  }

  std::shared_ptr<Kept> set_policy(const std::string& id, const Json& policy) {
    return ask("POST", "/v1/sessions/" + id + "/policy", Json({{"kv_eviction", policy}}).dump());
  }

  std::map<std::string, Json> said_;
};

TEST_F(PolicyRequests, a_session_goes_by_what_its_request_says_and_by_the_servers_where_it_says_nothing) {
  EXPECT_EQ(say("one", "Hello.")["ebb"]["kv_eviction"], kDefaultPolicy);
  EXPECT_EQ(say("one", "And on.", "snapkv:kernel=5,window=16")["ebb"]["kv_eviction"], "snapkv:window=16");
  EXPECT_EQ(session("one")["kv_eviction"], "snapkv:window=16") << "until its next request";
  EXPECT_EQ(session("one")["own_kv_eviction"], nullptr);
  EXPECT_EQ(say("one", "And on.")["ebb"]["kv_eviction"], kDefaultPolicy);
  EXPECT_EQ(session("one")["kv_eviction"], kDefaultPolicy);
}

TEST_F(PolicyRequests, every_route_that_generates_takes_it) {
  const Json with = {{"kv_eviction", "tova"}, {"max_tokens", 2}};
  const auto reply_of = [&](const std::string& path, Json body) {
    body.update(with);
    const auto reply = ask("POST", path, body.dump());
    EXPECT_EQ(reply->status(), 200) << path << reply->body();
    return reply->json();
  };
  const Json messages = Json::array({user("Hello.")});
  EXPECT_EQ(reply_of("/v1/chat/completions", {{"messages", messages}})["ebb"]["kv_eviction"], "tova");
  EXPECT_EQ(reply_of("/v1/responses", {{"input", "Hello."}})["ebb"]["kv_eviction"], "tova");
  EXPECT_EQ(reply_of("/v1/completions", {{"prompt", {"One", "Two"}}, {"n", 2}})["ebb"]["kv_eviction"], "tova");
  EXPECT_EQ(reply_of("/completion", {{"prompt", "Hello."}})["ebb"]["kv_eviction"], "tova");
  Json streamed = with;
  streamed["stream"] = true;
  streamed["messages"] = messages;
  const std::vector<std::string> all = events(ask("POST", "/v1/chat/completions", streamed.dump())->body());
  ASSERT_GE(all.size(), 2U);
  EXPECT_EQ(Json::parse(all[all.size() - 2])["ebb"]["kv_eviction"], "tova");
}

TEST_F(PolicyRequests, what_may_not_be_chosen_is_refused_with_what_may_and_before_any_work) {
  const std::string long_name(5000, 'x');
  std::string many_umlauts = "x";  // a cut at any even number of bytes splits one
  for (int i = 0; i < 100; ++i) many_umlauts += "\u00e4";
  const std::vector<std::pair<Json, std::string>> refusals = {
      {"foo", "there are streaming, scored"},
      {"none", "'none' is no policy that may be chosen here"},
      {"snapkv:foo=1", "window (1 to 512, default 32)"},
      {"snapkv:window=513", "give a whole number from 1 to 512"},
      {"snapkv:window=1e999", "give a whole number"},
      {"snapkv:window=16,window=16", "given twice"},
      {"snapkv:window", "no parameter with a value"},
      {"snapkv:", "no parameter behind the colon"},
      {"tova:a=1", "it takes none"},
      {" tova", "' tova' is no policy"},
      {"TOVA", "'TOVA' is no policy"},
      {":", "'' is no policy"},
      {"tova\n", "is no policy"},
      {std::string("tova\0", 5), "is no policy"},
      {many_umlauts, "is no policy"},
      {long_name, "5000 bytes; give 512 at most"},
      {5, "must be a string"},
      {Json::array({"tova"}), "must be a string"},
      {Json::object({{"name", "tova"}}), "must be a string"},
      {true, "must be a string"},
  };
  const std::map<std::string, Json> routes = {
      {"/v1/chat/completions", {{"messages", Json::array({user("x")})}}},
      {"/v1/chat/completions/input_tokens", {{"messages", Json::array({user("x")})}}},
      {"/v1/responses", {{"input", "x"}}},
      {"/v1/completions", {{"prompt", "x"}, {"stream", true}}},
      {"/completion", {{"prompt", "x"}}},
  };
  for (const auto& [path, body] : routes) {
    for (const auto& [value, why] : refusals) {
      Json asked = body;
      asked["kv_eviction"] = value;
      const auto refused = ask("POST", path, asked.dump());
      EXPECT_EQ(refused->status(), 400) << path << value;
      EXPECT_EQ(refused->json()["error"]["param"], "kv_eviction") << path << value;
      EXPECT_THAT(refused->json()["error"]["message"].get<std::string>(), HasSubstr(why)) << path;
      EXPECT_LT(refused->body().size(), 1000U) << path;
    }
  }
  EXPECT_TRUE(ask("GET", "/v1/sessions")->json()["data"].empty());
}

TEST_F(PolicyRequests, null_and_nothing_are_the_servers) {
  for (const Json& none : {Json(nullptr), Json("")}) {
    EXPECT_EQ(chat(Json::array({user("Hello.")}), {{"kv_eviction", none}})->json()["ebb"]["kv_eviction"],
              kDefaultPolicy);
  }
}

TEST_F(PolicyRequests, the_operator_says_which_may_be_chosen) {
  open({}, {}, {.policies = OfferedPolicies::parse("tova,none").value()});
  EXPECT_EQ(say("one", "Hello.", "none")["ebb"]["kv_eviction"], "none");
  const auto refused = chat(Json::array({user("Hello.")}), {{"kv_eviction", "snapkv"}});
  EXPECT_EQ(refused->status(), 400);
  EXPECT_THAT(refused->body(), AllOf(HasSubstr("there are tova, none"), Not(HasSubstr("adakv"))));
  open({}, {}, {.policies = OfferedPolicies::parse("own").value()});
  EXPECT_THAT(chat(Json::array({user("Hello.")}), {{"kv_eviction", "tova"}})->body(), HasSubstr("leave it out"));
  EXPECT_EQ(say("two", "Hello.", std::string(kDefaultPolicy))["ebb"]["kv_eviction"], kDefaultPolicy)
      << "the server's own may be named";
}

TEST_F(PolicyRequests, what_there_is_and_may_be_chosen_is_told_as_the_registry_has_it) {
  const Json told = ask("GET", "/v1/policies")->json();
  EXPECT_EQ(told["default"], kDefaultPolicy);
  EXPECT_EQ(ask("GET", "/props")->json()["kv_eviction"], kDefaultPolicy);
  ASSERT_EQ(told["data"].size(), policies().size());
  for (std::size_t i = 0; i < policies().size(); ++i) {
    const Json& one = told["data"][i];
    const PolicyEntry& entry = policies()[i];
    EXPECT_EQ(one["name"], entry.name);
    EXPECT_EQ(one["allowed"], entry.is_open);
    ASSERT_EQ(one["parameters"].size(), entry.parameters.size());
    std::string spec = one["name"];
    for (const Json& parameter : one["parameters"]) {
      spec += fmt::format("{}{}={}", spec == entry.name ? ":" : ",", parameter["name"].get<std::string>(),
                          parameter["least"].get<double>());
      EXPECT_LE(parameter["least"], parameter["default"]);
      EXPECT_LE(parameter["default"], parameter["most"]);
    }
    EXPECT_TRUE(make_policy(spec).ok()) << spec;
  }
}

TEST_F(PolicyRequests, a_sessions_own_holds_for_requests_that_say_nothing_until_it_is_lifted) {
  say("one", "Hello.");
  const std::string id = session("one")["id"];
  const Json set = set_policy(id, "adakv:window=8")->json();
  EXPECT_EQ(set["own_kv_eviction"], "adakv:window=8");
  EXPECT_EQ(set["kv_eviction"], "adakv:window=8");
  EXPECT_EQ(say("one", "And on.")["ebb"]["kv_eviction"], "adakv:window=8");
  EXPECT_EQ(say("one", "And on.", "tova")["ebb"]["kv_eviction"], "tova");
  EXPECT_EQ(say("one", "And on.")["ebb"]["kv_eviction"], "adakv:window=8");
  EXPECT_EQ(say("two", "Hello.")["ebb"]["kv_eviction"], kDefaultPolicy) << "another session";
  EXPECT_EQ(set_policy(id, "")->json()["own_kv_eviction"], nullptr);
  EXPECT_EQ(say("one", "And on.")["ebb"]["kv_eviction"], kDefaultPolicy);
  for (const Json& wrong : {Json(nullptr), Json("none"), Json(5), Json("foo")}) {
    const auto refused = set_policy(id, wrong);
    EXPECT_EQ(refused->status(), 400) << wrong;
    EXPECT_EQ(refused->json()["error"]["param"], "kv_eviction") << wrong;
  }
  EXPECT_EQ(set_policy("nobodys", "tova")->status(), 404);
  EXPECT_EQ(ask("GET", "/v1/sessions/" + id + "/policy")->status(), 405);
}

TEST_F(PolicyRequests, a_sessions_own_survives_parking_and_an_export) {
  say("one", filler(30));
  const std::string id = session("one")["id"];
  const auto park = [&] { scheduler_->act([](Lanes& lanes) { EXPECT_TRUE(lanes.park_one()); }); };
  park();
  EXPECT_EQ(set_policy(id, "h2o:recent=0.25")->json()["kv_eviction"], "h2o:recent=0.25");
  EXPECT_EQ(say("one", "And on.")["ebb"]["kv_eviction"], "h2o:recent=0.25");
  park();
  EXPECT_EQ(session("one")["kv_eviction"], "h2o:recent=0.25");
  const std::string image = ask("POST", "/v1/sessions/" + id + "/export")->body();
  EXPECT_EQ(ask("POST", "/v1/sessions/import?id=copy", image)->json()["own_kv_eviction"], "h2o:recent=0.25");
  // Elsewhere, where it may not be chosen.
  open({}, {}, {.policies = OfferedPolicies::parse("tova").value()});
  const Json taken = ask("POST", "/v1/sessions/import?id=copy", image)->json();
  EXPECT_EQ(taken["own_kv_eviction"], nullptr);
  EXPECT_EQ(taken["kv_eviction"], kDefaultPolicy);
}

TEST_F(PolicyRequests, of_a_session_at_work_another_holds_from_its_next_request_on) {
  const auto kept = start_endless();
  const Json set = set_policy("busy~text", "tova")->json();
  EXPECT_EQ(set["own_kv_eviction"], "tova");
  EXPECT_EQ(set["kv_eviction"], kDefaultPolicy);
  kept->leave();
  kept->wait();
  const Json body = {{"prompt", "The code of"}, {"max_tokens", 1}};
  EXPECT_EQ(ask("POST", "/v1/completions", body.dump(), {{"x-session-id", "busy"}})->json()["ebb"]["kv_eviction"],
            "tova");
}

TEST_F(PolicyRequests, a_policy_that_changes_half_way_changes_no_word_where_all_is_seen) {
  const auto conversation = [&](const std::string& client, bool changes) {
    std::vector<std::string> replies = {text_of(say(client, "The code of the north gate is 4711."))};
    replies.push_back(text_of(say(client, filler(20), changes ? "h2o" : "")));
    if (changes) {
      const std::string id = session(client)["id"];
      const Json blocks = ask("GET", "/v1/sessions/" + id + "/blocks")->json()["data"];
      const Json names = {{"names", {blocks[0]["name"], blocks[1]["name"]}}};
      EXPECT_EQ(ask("POST", "/v1/sessions/" + id + "/blocks/evict", names.dump())->status(), 200);
    }
    const Json last = say(client, "What is the code of the north gate?", changes ? "keydiff" : "");
    EXPECT_EQ(last["ebb"]["prompt"]["holes"], 0);
    EXPECT_EQ(last["ebb"]["prompt"]["recalled_exact"] > 0, changes);
    replies.push_back(text_of(last));
    return replies;
  };
  open({}, {.adopts = false});
  const std::vector<std::string> plain = conversation("plain", false);
  EXPECT_EQ(conversation("changed", true), plain);
  EXPECT_THAT(plain.back(), HasSubstr("4711"));
}

TEST_F(PolicyRequests, whatever_follows_on_whatever_a_long_session_keeps_its_budget_and_finds_its_fact) {
  say("long", "The code of the north gate is 4711.");
  std::int64_t n_evicted = 0;
  for (const char* policy : {"snapkv", "", "h2o", "tova", "pyramidkv:beta=5", "keydiff", "evoke", "random:heads=1"}) {
    n_evicted += say("long", filler(30), policy, 2)["ebb"]["evicted_blocks"].get<std::int64_t>();
    scheduler_->inspect([&](const Lanes& lanes) {
      for (const Lane& lane : lanes.all()) lane.session->check_invariants();
      EXPECT_LE(engine_->pool().n_hot(), engine_->pool().n_frames());
    });
  }
  EXPECT_GT(n_evicted, 20);
  EXPECT_GT(session("long")["tokens"], 2 * engine_->budget_tokens());
  EXPECT_THAT(text_of(say("long", "What is the code of the north gate?", "adakv")), HasSubstr("4711"));
}

}  // namespace
}  // namespace ebb
