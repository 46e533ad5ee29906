// Sessions over HTTP: seen by their owner alone, and pinned, evicted, recalled, exported, taken in and deleted between two
// requests; and the budget at run time.
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/lane_image.h"
#include "tests/api_fixture.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

class SessionRoutes : public Server {
 protected:
  // A session of some blocks; its public id.
  std::string talk(const std::string& client_id, HttpHeaders headers = {}) {
    messages_ = Json::array({user("The code of the north gate is 4711."),
                             {{"role", "assistant"}, {"content", "Noted."}},
                             user(filler(32))});
    headers.push_back({"x-session-id", client_id});
    const auto reply = chat(messages_, {}, headers);
    EXPECT_EQ(reply->status(), 200) << reply->body();
    const Json sessions = ask("GET", "/v1/sessions", "", headers)->json();
    for (const Json& session : sessions["data"]) {
      if (session["id"].get<std::string>().starts_with(client_id + "~")) return session["id"];
    }
    return {};
  }

  Json blocks(const std::string& id) { return ask("GET", "/v1/sessions/" + id + "/blocks")->json()["data"]; }

  std::shared_ptr<Kept> act(const std::string& id, const std::string& act, const Json& names) {
    return ask("POST", "/v1/sessions/" + id + "/blocks/" + act, Json({{"names", names}}).dump());
  }

  Json messages_;
};

TEST_F(SessionRoutes, a_session_is_listed_inspected_and_its_blocks_are_told) {
  const std::string id = talk("ses");
  const Json session = ask("GET", "/v1/sessions/" + id)->json();
  EXPECT_EQ(session["id"], id);
  EXPECT_FALSE(session["busy"]);
  EXPECT_GT(session["tokens"].get<int>(), 100);
  const Json all = blocks(id);
  ASSERT_EQ(all.size(), session["blocks"].get<std::size_t>());
  int next = 0;
  for (const Json& block : all) {
    EXPECT_EQ(block["begin"], next);
    next = block["end"];
    EXPECT_FALSE(block["name"].get<std::string>().empty());
    EXPECT_FALSE(block["pinned"]);
    EXPECT_TRUE(block["score"].is_number()) << block;
  }
  EXPECT_EQ(next, session["tokens"]);
}

TEST_F(SessionRoutes, looking_at_a_parked_session_leaves_it_parked_and_tells_the_same_blocks) {
  const std::string id = talk("ses");
  const Json before = blocks(id);
  const std::string name = before[0]["name"];
  ASSERT_EQ(act(id, "pin", {name})->status(), 200);
  scheduler_->act([](Lanes& lanes) { EXPECT_TRUE(lanes.park_one()); });
  ASSERT_EQ(engine_->pool().n_free(), engine_->pool().n_frames());
  for (int look = 0; look < 2; ++look) {
    const Json parked = blocks(id);
    ASSERT_EQ(parked.size(), before.size());
    for (std::size_t i = 0; i < parked.size(); ++i) {
      for (const char* member : {"name", "begin", "end", "tokens"}) EXPECT_EQ(parked[i][member], before[i][member]);
      EXPECT_EQ(parked[i]["state"], "saved");
      EXPECT_EQ(parked[i]["pinned"], i == 0);
      EXPECT_TRUE(parked[i]["score"].is_null());
    }
    EXPECT_EQ(ask("GET", "/v1/sessions/" + id)->json()["parked"], true);
    EXPECT_EQ(engine_->pool().n_free(), engine_->pool().n_frames());
  }
  const Json again = chat(messages_, {}, {{"x-session-id", "ses"}})->json();
  EXPECT_EQ(again["ebb"]["prompt"]["recomputed"], 0);
  EXPECT_GT(again["ebb"]["prompt"]["recalled_exact"], 0);
}

TEST_F(SessionRoutes, the_list_begins_with_what_is_at_work_and_goes_on_with_what_was_used_last) {
  const auto kept = start_endless();
  for (const char* client : {"one", "two", "one"}) talk(client);
  const Json data = ask("GET", "/v1/sessions")->json()["data"];
  kept->leave();
  kept->wait();
  ASSERT_EQ(data.size(), 3U);
  EXPECT_EQ(data[0]["id"], "busy~text");
  EXPECT_TRUE(data[1]["id"].get<std::string>().starts_with("one~"));
  EXPECT_TRUE(data[2]["id"].get<std::string>().starts_with("two~"));
}

TEST_F(SessionRoutes, counters_survive_parking) {
  const std::string id = talk("ses");
  const std::string name = blocks(id)[1]["name"];
  ASSERT_EQ(act(id, "evict", {name})->status(), 200);
  ASSERT_EQ(act(id, "recall", {name})->status(), 200);
  const Json before = ask("GET", "/v1/sessions/" + id)->json();
  EXPECT_EQ(before["evicted_blocks"], 1);
  EXPECT_EQ(before["recalled_blocks"], 1);
  scheduler_->act([](Lanes& lanes) { EXPECT_TRUE(lanes.park_one()); });
  const Json parked = ask("GET", "/v1/sessions/" + id)->json();
  EXPECT_EQ(parked["parked"], true);
  EXPECT_EQ(ask("GET", "/v1/sessions")->json()["data"][0]["recalled_blocks"], 1);
  ASSERT_EQ(chat(messages_, {}, {{"x-session-id", "ses"}})->status(), 200);
  const Json awake = ask("GET", "/v1/sessions/" + id)->json();
  for (const char* counter :
       {"evicted_blocks", "saved_blocks", "recalled_blocks", "recomputed_blocks", "missed_recalls", "rebases"}) {
    EXPECT_GE(parked[counter], before[counter]) << counter;
    EXPECT_GE(awake[counter], parked[counter]) << counter;
  }
}

TEST_F(SessionRoutes, a_session_without_a_clients_id_gets_one) {
  ASSERT_EQ(chat(Json::array({user("Hello there.")}))->status(), 200);
  const Json data = ask("GET", "/v1/sessions")->json()["data"];
  ASSERT_EQ(data.size(), 1U);
  const std::string id = data[0]["id"];
  EXPECT_THAT(id, ::testing::MatchesRegex("auto-[0-9a-f]{16}"));
  EXPECT_EQ(ask("GET", "/v1/sessions/" + id)->status(), 200);
}

TEST_F(SessionRoutes, an_id_that_cannot_stand_in_a_url_is_known_by_its_hash) {
  ASSERT_EQ(chat(Json::array({user("Hello")}), {}, {{"x-session-id", "a/b?c#d"}})->status(), 200);
  const std::string id = ask("GET", "/v1/sessions")->json()["data"][0]["id"];
  EXPECT_THAT(id, ::testing::MatchesRegex("[0-9a-f]{32}~[0-9a-f]{8}"));
}

TEST_F(SessionRoutes, blocks_leave_and_come_back_by_name_and_the_next_request_computes_only_what_is_new) {
  const std::string id = talk("ses");
  const std::string name = blocks(id)[1]["name"];
  const auto evicted = act(id, "evict", {name});
  ASSERT_EQ(evicted->status(), 200) << evicted->body();
  EXPECT_EQ(evicted->json()["data"][0]["state"], "saved");
  EXPECT_TRUE(evicted->json()["data"][0]["score"].is_null());
  const auto recalled = act(id, "recall", {name});
  EXPECT_THAT(recalled->json()["data"][0]["state"], ::testing::AnyOf("hot", "clean"));
  const Json again = chat(messages_, {}, {{"x-session-id", "ses"}})->json();
  EXPECT_LE(again["ebb"]["prompt"]["new"].get<int>() + again["ebb"]["prompt"]["recomputed"].get<int>(), 64);
  EXPECT_EQ(again["ebb"]["prompt"]["holes"], 0);
}

TEST_F(SessionRoutes, a_block_leaves_in_some_heads_and_recall_brings_it_back_whole) {
  const std::string id = talk("ses");
  const Json block = blocks(id)[1];
  const int n_heads = block["hot_heads"];
  ASSERT_GT(n_heads, 1);
  const auto act_in = [&](const std::string& act, const Json& heads) {
    return ask("POST", "/v1/sessions/" + id + "/blocks/" + act,
               Json({{"names", {block["name"]}}, {"heads", heads}}).dump());
  };
  for (const char* wrong : {"[]", "[[0,99]]", "[[-1,0]]", "[[0]]", "[0,0]", "\"all\"", "[[0,0.5]]"}) {
    const auto refused = act_in("evict", Json::parse(wrong));
    EXPECT_EQ(refused->status(), 400) << wrong;
    EXPECT_EQ(refused->json()["error"]["param"], "heads") << wrong;
  }
  EXPECT_EQ(act_in("recall", Json::parse("[[0,0]]"))->status(), 400);
  const auto evicted = act_in("evict", Json::parse("[[0,0]]"));
  ASSERT_EQ(evicted->status(), 200) << evicted->body();
  EXPECT_EQ(evicted->json()["data"][0]["hot_heads"], n_heads - 1);
  EXPECT_EQ(evicted->json()["data"][0]["state"], "partly");
  const auto recalled = act(id, "recall", Json::array({block["name"]}));
  EXPECT_EQ(recalled->json()["data"][0]["hot_heads"], n_heads);
  EXPECT_EQ(chat(messages_, {}, {{"x-session-id", "ses"}})->json()["ebb"]["prompt"]["holes"], 0);
}

TEST_F(SessionRoutes, looking_and_moving_blocks_between_two_requests_changes_no_names) {
  std::vector<Json> names;
  for (const bool is_watched : {false, true}) {
    const std::string client = is_watched ? "watched" : "alone";
    const std::string id = talk(client);
    if (is_watched) {
      const Json first = Json::array({blocks(id)[0]["name"]});
      ASSERT_EQ(act(id, "evict", first)->status(), 200);
      ASSERT_EQ(act(id, "recall", first)->status(), 200);
      scheduler_->act([&](Lanes& lanes) { lanes.park(*lanes.find("", id)); });
      ASSERT_FALSE(blocks(id).empty());
    }
    messages_.push_back({{"role", "assistant"}, {"content", "It rained."}});
    messages_.push_back(user("What is the code of the north gate?"));
    ASSERT_EQ(chat(messages_, {}, {{"x-session-id", client}})->status(), 200);
    Json& told = names.emplace_back();
    scheduler_->act([&](Lanes& lanes) {
      for (const Part& part : lanes.find("", id)->session->parts()) told.push_back(part.name);
    });
  }
  EXPECT_EQ(names[0], names[1]);
  EXPECT_EQ(names[0].back(), "reply2");
}

TEST_F(SessionRoutes, a_pin_is_told_and_more_than_half_of_a_share_is_not_pinned) {
  const std::string id = talk("ses");
  const std::string name = blocks(id)[0]["name"];
  EXPECT_EQ(act(id, "pin", {name})->json()["data"][0]["pinned"], true);
  EXPECT_EQ(act(id, "unpin", {name})->json()["data"][0]["pinned"], false);
  Json all = Json::array();
  for (const Json& block : blocks(id)) all.push_back(block["name"]);
  const auto refused = act(id, "pin", all);
  EXPECT_EQ(refused->status(), 400) << "more than half of 512 tokens: " << all;
  EXPECT_THAT(refused->json()["error"]["message"].get<std::string>(), HasSubstr("would be pinned"));
  for (const Json& block : blocks(id)) EXPECT_FALSE(block["pinned"]);
}

TEST_F(SessionRoutes, names_that_no_block_has_change_nothing_and_are_told) {
  const std::string id = talk("ses");
  const auto refused = act(id, "evict", {blocks(id)[0]["name"], "nowhere"});
  EXPECT_EQ(refused->status(), 404);
  EXPECT_THAT(refused->body(), HasSubstr("nowhere"));
  EXPECT_EQ(act(id, "shake", {"x"})->status(), 404);
  EXPECT_EQ(act("nobody", "evict", {"x"})->status(), 404);
  EXPECT_EQ(act(id, "evict", Json::array())->status(), 400);
  EXPECT_EQ(act(id, "evict", {1})->status(), 400);
  for (const Json& block : blocks(id)) EXPECT_NE(block["state"], "saved");
}

TEST_F(SessionRoutes, owners_see_and_touch_only_their_own) {
  open({.keys = ApiKeys({"alpha", "beta"})});
  const HttpHeaders alpha = {{"Authorization", "Bearer alpha"}};
  const HttpHeaders beta = {{"Authorization", "Bearer beta"}};
  const std::string id = talk("ses", alpha);
  ASSERT_FALSE(id.empty());
  const std::string path = "/v1/sessions/" + id;
  EXPECT_EQ(ask("GET", path, "", alpha)->status(), 200);
  EXPECT_EQ(ask("GET", path, "", beta)->status(), 404);
  EXPECT_EQ(ask("DELETE", path, "", beta)->status(), 404);
  EXPECT_EQ(ask("POST", path + "/export", "", beta)->status(), 404);
  EXPECT_EQ(ask("GET", path + "/blocks", "", beta)->status(), 404);
  EXPECT_EQ(ask("GET", path + "/blocks")->status(), 401);
  EXPECT_EQ(ask("POST", "/v1/budget", R"({"tokens":512})", alpha)->status(), 403);
  EXPECT_EQ(ask("GET", path, "", alpha)->status(), 200);
}

TEST_F(SessionRoutes, a_deleted_session_gives_its_frames_back_and_its_blocks_are_forgotten) {
  const std::string id = talk("ses");
  EXPECT_LT(engine_->pool().n_free(), engine_->pool().n_frames());
  EXPECT_EQ(ask("DELETE", "/v1/sessions/" + id)->json()["deleted"], true);
  EXPECT_EQ(engine_->pool().n_free(), engine_->pool().n_frames());
  EXPECT_EQ(ask("DELETE", "/v1/sessions/" + id)->status(), 404);
  EXPECT_TRUE(ask("GET", "/v1/sessions")->json()["data"].empty());
  const Json again = chat(messages_, {}, {{"x-session-id", "ses"}})->json();
  EXPECT_EQ(again["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

TEST_F(SessionRoutes, of_a_deleted_session_what_another_begins_with_stays) {
  const std::string id = talk("one");
  Json other = messages_;
  other.push_back({{"role", "assistant"}, {"content", "Yes."}});
  other.push_back(user("And then?"));
  ASSERT_EQ(chat(other, {}, {{"x-session-id", "two"}})->status(), 200);
  EXPECT_EQ(ask("DELETE", "/v1/sessions/" + id)->status(), 200);
  const Json third = chat(messages_, {}, {{"x-session-id", "three"}})->json();
  EXPECT_GE(third["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>(), 64);
}

TEST_F(SessionRoutes, an_exported_session_is_taken_in_under_another_id_and_goes_on_without_a_prefill) {
  const std::string id = talk("ses");
  const auto image = ask("POST", "/v1/sessions/" + id + "/export");
  ASSERT_EQ(image->status(), 200);
  EXPECT_EQ(image->header("Content-Type"), "application/octet-stream");
  EXPECT_EQ(ask("POST", "/v1/sessions/import?id=" + id, image->body())->status(), 409);
  const std::string twin = "twin" + id.substr(id.find('~'));
  const auto taken = ask("POST", "/v1/sessions/import?id=" + twin, image->body());
  ASSERT_EQ(taken->status(), 200) << taken->body();
  EXPECT_EQ(taken->json()["id"], twin);
  messages_.push_back({{"role", "assistant"}, {"content", "It rained."}});
  messages_.push_back(user("What is the code of the north gate?"));
  const Json first = chat(messages_, {}, {{"x-session-id", "twin"}})->json();
  EXPECT_GE(first["ebb"]["prompt"]["recalled_exact"].get<int>(), 128);
  EXPECT_EQ(first["ebb"]["prompt"]["recomputed"], 0);
  EXPECT_THAT(first["choices"][0]["message"]["content"].get<std::string>(), HasSubstr("4711"));
  EXPECT_THAT(ask("POST", "/v1/sessions/import", image->body())->json()["id"].get<std::string>(),
              ::testing::StartsWith("auto-"));
}

TEST_F(SessionRoutes, a_damaged_or_foreign_export_is_refused) {
  const std::string id = talk("ses");
  const std::string image = ask("POST", "/v1/sessions/" + id + "/export")->body();
  for (std::size_t at = 0; at < image.size(); at += 97) {
    std::string damaged = image;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_EQ(ask("POST", "/v1/sessions/import", damaged)->status(), 400) << at;
  }
  EXPECT_EQ(ask("POST", "/v1/sessions/import", image.substr(0, image.size() / 2))->status(), 400);
  EXPECT_EQ(ask("POST", "/v1/sessions/import", "")->status(), 400);
  EXPECT_EQ(ask("POST", "/v1/sessions/import?id=a%2Fb", image)->status(), 400);
  EXPECT_EQ(ask("GET", "/v1/sessions")->json()["data"].size(), 1U);
}

TEST_F(SessionRoutes, an_export_of_more_tokens_than_are_taken_in_is_refused_before_any_work) {
  const std::string id = talk("ses");
  const std::string image = ask("POST", "/v1/sessions/" + id + "/export")->body();
  Result<LaneImage> huge = decode_lane_image(std::as_bytes(std::span(image)));
  ASSERT_TRUE(huge.ok());
  huge->image.unfinished.assign(Lanes::kMostTakenTokens, Token(5));
  const std::vector<std::byte> bytes = encode_lane_image(*huge);
  const auto refused = ask("POST", "/v1/sessions/import", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  EXPECT_EQ(refused->status(), 400);
  EXPECT_THAT(refused->body(), HasSubstr("at most 1048576 are taken in"));
  EXPECT_EQ(ask("GET", "/v1/sessions")->json()["data"].size(), 1U);
}

// One field of an image changed to what no session has, or might have.
void spoil(SessionImage& image, std::mt19937_64& random) {
  constexpr std::array<std::int32_t, 8> kOdd = {-1, 0, 1, 63, 64, 100'000, 1 << 30, std::numeric_limits<int>::max()};
  const std::int32_t odd = kOdd[random() % kOdd.size()];
  SessionImage::Block& block = image.blocks[random() % image.blocks.size()];
  Part& part = image.parts[random() % image.parts.size()];
  switch (random() % 12) {
    case 0: image.next_anchor = Position(odd); break;
    case 1: image.n_turns = odd; break;
    case 2: image.epoch = odd; break;
    case 3: block.info.anchor = Position(odd); break;
    case 4: block.info.epoch = odd; break;
    case 5: block.info.variant = {.low = random(), .high = random()}; break;
    case 6: block.info.lineage.add({.low = random()}, odd); break;
    case 7: part.span.begin = Position(odd); break;
    case 8: part.span.end = Position(odd); break;
    case 9: part.priority = odd % 2 == 0 ? std::numeric_limits<double>::infinity() : std::nan(""); break;
    case 10: image.tokens[random() % image.tokens.size()] = Token(odd); break;
    default: image.unfinished.assign(random() % 5, Token(odd % 100)); break;
  }
}

TEST_F(SessionRoutes, whatever_stands_in_an_image_is_refused_or_goes_on) {
  const std::string id = talk("ses");
  const std::string image = ask("POST", "/v1/sessions/" + id + "/export")->body();
  const Result<LaneImage> sound = decode_lane_image(std::as_bytes(std::span(image)));
  ASSERT_TRUE(sound.ok());
  const std::string twin = "twin" + id.substr(id.find('~'));
  int n_refused = 0;
  std::mt19937_64 random(11);
  for (int i = 0; i < 60; ++i) {
    LaneImage spoilt = *sound;
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n) spoil(spoilt.image, random);
    const std::vector<std::byte> bytes = encode_lane_image(spoilt);
    const auto taken =
        ask("POST", "/v1/sessions/import?id=" + twin, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    ASSERT_THAT(taken->status(), ::testing::AnyOf(200, 400)) << taken->body();
    if (taken->status() == 400) ++n_refused;
    if (taken->status() != 200) continue;
    EXPECT_EQ(chat(messages_, {{"max_tokens", 2}}, {{"x-session-id", "twin"}})->status(), 200);
    EXPECT_EQ(ask("DELETE", "/v1/sessions/" + twin)->status(), 200);
  }
  EXPECT_GT(n_refused, 10);
  EXPECT_LT(n_refused, 60);
}

TEST_F(SessionRoutes, a_busy_session_is_looked_at_and_pinned_but_not_moved) {
  const auto kept = start_endless();
  const std::string path = "/v1/sessions/busy~text";
  EXPECT_EQ(ask("GET", path)->json()["busy"], true);
  const Json all = ask("GET", path + "/blocks")->json()["data"];
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(act("busy~text", "pin", Json::array({all[0]["name"]}))->status(), 200);
  for (const auto& busy :
       {ask("DELETE", path), ask("POST", path + "/export"), act("busy~text", "evict", Json::array({all[0]["name"]})),
        act("busy~text", "recall", Json::array({all[0]["name"]}))}) {
    EXPECT_EQ(busy->status(), 409) << busy->body();
    EXPECT_EQ(busy->header("Retry-After"), "1");
  }
  const Json slots = ask("GET", "/slots")->json();
  ASSERT_EQ(slots.size(), 2U);
  EXPECT_EQ(slots[0]["is_processing"], true);
  EXPECT_GT(slots[0]["n_prompt_tokens"].get<int>(), 0);
  EXPECT_EQ(slots[0]["params"]["n_predict"], 100'000);
  EXPECT_EQ(slots[1]["is_processing"], false);
  EXPECT_EQ(ask("GET", "/slots?fail_on_no_slot=1")->status(), 200);
  kept->leave();
  kept->wait();
  EXPECT_EQ(ask("DELETE", path)->status(), 200);
}

TEST_F(SessionRoutes, the_budget_changes_at_run_time_and_is_kept) {
  EXPECT_EQ(ask("GET", "/v1/budget")->json()["tokens"], 1024);
  const std::string id = talk("ses");
  const auto kept = start_endless();
  const auto lower = ask("POST", "/v1/budget", R"({"tokens":512})");
  ASSERT_EQ(lower->status(), 200) << lower->body();
  EXPECT_EQ(lower->json()["tokens"], 512);
  EXPECT_LE(lower->json()["hot_tokens"].get<int>(), 512);
  const Json long_reply = chat(messages_, {}, {{"x-session-id", "ses"}})->json();
  EXPECT_LE(long_reply["ebb"]["hot_tokens"].get<int>(), 256);
  EXPECT_LE(ask("GET", "/v1/budget")->json()["hot_tokens"].get<int>(), 512);
  kept->leave();
  kept->wait();
  for (const char* wrong : {R"({"tokens":64})", R"({"tokens":4096})", R"({"tokens":"x"})", "{}"}) {
    const auto refused = ask("POST", "/v1/budget", wrong);
    EXPECT_EQ(refused->status(), 400) << wrong;
    EXPECT_EQ(refused->json()["error"]["param"], "tokens") << wrong;
  }
  EXPECT_EQ(ask("POST", "/v1/budget", R"({"tokens":1024})")->json()["tokens"], 1024);
}

TEST_F(SessionRoutes, a_session_keeps_its_own_budget) {
  const std::string id = talk("ses");
  const auto lower = ask("POST", "/v1/sessions/" + id + "/budget", R"({"tokens":256})");
  ASSERT_EQ(lower->status(), 200) << lower->body();
  EXPECT_LE(lower->json()["hot_tokens"].get<int>(), 256);
  const Json reply = chat(messages_, {}, {{"x-session-id", "ses"}})->json();
  EXPECT_LE(reply["ebb"]["hot_tokens"].get<int>(), 256);
  EXPECT_EQ(reply["ebb"]["budget_tokens"], 256);
  for (const char* wrong : {R"({"tokens":1})", R"({"tokens":9999999})", "{}"}) {
    const auto refused = ask("POST", "/v1/sessions/" + id + "/budget", wrong);
    EXPECT_EQ(refused->status(), 400) << wrong;
    EXPECT_EQ(refused->json()["error"]["param"], "tokens") << wrong;
  }
}

TEST_F(SessionRoutes, slots_are_not_told_where_the_operator_says_so) {
  open({.slots = false});
  EXPECT_EQ(ask("GET", "/slots")->status(), 501);
}

}  // namespace
}  // namespace ebb
