// What a request has back of what its own prompt let go, over HTTP: found by its words, by names, or not at all.
#include <algorithm>

#include <gmock/gmock.h>

#include "model/toy_gguf.h"
#include "tests/api_fixture.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RecallRequests : public Server {
 protected:
  // Some 2500 tokens, the code near the front; the budget is 1024.
  static std::string document() {
    std::string text = "Listen:";
    for (int i = 0; i < 150; ++i) {
      text += " The shepherd crossed the quiet harbour before the rain began.";
      if (i == 12) text += " The code of the north gate is 4711.";
    }
    return text;
  }

  Json reply_to(const Json& messages, const Json& more) {
    Json all = {{"kv_eviction", "streaming"}, {"max_tokens", 16}, {"temperature", 0}};
    all.update(more);
    const auto reply = chat(messages, all, {});
    EXPECT_EQ(reply->status(), 200) << reply->body();
    return reply->json();
  }
  static std::string text_of(const Json& reply) { return reply["choices"][0]["message"]["content"].get<std::string>(); }
};

TEST_F(RecallRequests, a_document_and_a_question_longer_than_the_budget_are_answered) {
  const Json messages = Json::array({user(document() + "\nWhat is the code of the north gate?")});
  const Json reply = reply_to(messages, Json::object());
  EXPECT_GT(reply["usage"]["prompt_tokens"].get<int>(), 2048);
  EXPECT_LE(reply["ebb"]["prompt_peak_tokens"].get<int>(), 1024);
  EXPECT_GT(reply["ebb"]["recalled_blocks"].get<int>(), 0);
  EXPECT_THAT(text_of(reply), HasSubstr("4711"));

  const Json none = reply_to(Json::array({user("Again. " + document() + "\nWhat is the code of the north gate?")}),
                             {{"ebb", {{"recall", {{"blocks", 0}}}}}});
  EXPECT_EQ(none["ebb"]["recalled_blocks"], 0);
  EXPECT_THAT(text_of(none), Not(HasSubstr("4711")));
}

// What a client says again is held, whole; only as much of it as was asked last is computed once more, and finds what it asks for.
TEST_F(RecallRequests, a_message_that_is_answered_again_is_looked_for_again) {
  const Json messages = Json::array({user(document() + "\nWhat is the code of the north gate?")});
  const Json first = reply_to(messages, Json::object());
  const Json again = reply_to(messages, {{"ebb", {{"recall", {{"explain", true}}}}}});
  EXPECT_GT(again["ebb"]["prompt"]["new"].get<int>(), 16);
  EXPECT_LE(again["ebb"]["prompt"]["new"].get<int>(), 128);
  EXPECT_LE(again["ebb"]["prompt_peak_tokens"].get<int>(), 1024);
  const Json& looks = again["ebb"]["recall"];
  EXPECT_TRUE(std::ranges::any_of(looks, [](const Json& look) { return look["when"] == "behind its tail"; }))
      << looks.dump();
  EXPECT_EQ(text_of(again), text_of(first));
}

// Nor is it where nothing may come back for it.
TEST_F(RecallRequests, a_message_that_is_answered_again_without_recall_computes_its_last_token) {
  const Json messages = Json::array({user(document() + "\nWhat is the code of the north gate?")});
  const Json none = {{"ebb", {{"recall", {{"blocks", 0}}}}}};
  reply_to(messages, none);
  EXPECT_EQ(reply_to(messages, none)["ebb"]["prompt"]["new"], 1);
}

TEST_F(RecallRequests, a_question_between_pages_or_in_front_of_how_to_answer_is_found_and_in_sight) {
  const std::string asked = "What is the code of the north gate?";
  const std::string page = document();
  const std::size_t middle = page.find(" The shepherd", page.size() / 2);
  std::string how = "Answer in one short sentence and use the words of the text.";
  for (int i = 0; i < 12; ++i) how += " If the text does not say it, write so, and write nothing else at all.";
  for (const std::string& text : {page.substr(0, middle) + "\n\n" + asked + "\n\n" + page.substr(middle + 1),
                                  page + "\n\n" + asked + "\n\n" + how}) {
    const Json reply = reply_to(Json::array({user(text)}), {{"ebb", {{"recall", {{"explain", true}}}}}});
    const Json& looks = reply["ebb"]["recall"];
    const auto question = std::ranges::find_if(
        looks, [](const Json& look) { return look["selector"] == "question" && look["when"] == "before its tail"; });
    ASSERT_NE(question, looks.end()) << looks.dump();
    EXPECT_EQ((*question)["blocks"][0]["verdict"], "asks");
    EXPECT_THAT(text_of(reply), HasSubstr("4711"));
  }
}

// The line names a key; the sentence before the pairs asks, in words that stand nowhere else.
TEST_F(RecallRequests, a_line_behind_pairs_that_left_brings_its_pair_back_and_not_what_it_asks_with) {
  std::string text = "Extract the value for the key from this JSON object.\n{";
  const std::string syllables[] = {"ba", "ko", "ri", "tu", "me", "za", "lo", "fi", "ne", "du"};
  for (int i = 0; i < 160; ++i) {
    const std::string name = syllables[i % 10] + syllables[i / 10 % 10] + syllables[(i + i / 100) % 7];
    text += fmt::format("\"{}k\": \"{}m\",\n ", name, std::string(name.rbegin(), name.rend()));
    if (i == 20) text += "\"bijet\": \"lifaju\",\n ";
  }
  const Json reply = reply_to(Json::array({user(text + "\"z\": \"z\"}\nKey: \"bijet\"")}),
                              {{"ebb", {{"recall", {{"explain", true}, {"selectors", "lexical"}}}}}});
  EXPECT_GT(reply["usage"]["prompt_tokens"].get<int>(), 2048);
  const Json& looks = reply["ebb"]["recall"];
  ASSERT_EQ(looks.size(), 3U) << looks.dump();
  EXPECT_EQ(looks[1]["selector"], "question");
  EXPECT_EQ(looks[1]["blocks"][0]["name"], "user0#0");
  EXPECT_EQ(looks[2]["blocks"][0]["verdict"], "recall");
  EXPECT_NE(looks[2]["blocks"][0]["name"], "user0#0");
  EXPECT_THAT(text_of(reply), HasSubstr("lifaju"));
}

TEST_F(RecallRequests, what_a_tool_asks_for_is_found_and_not_only_what_a_user_did) {
  const Json call = {{"id", "1"},
                     {"type", "function"},
                     {"function", {{"name", "ask"}, {"arguments", "{\"of\":\"code of the north gate\"}"}}}};
  const Json reply =
      reply_to(Json::array({user(document()),
                            {{"role", "assistant"}, {"content", "I have read it."}},
                            user("Go on with the work now."),
                            {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}},
                            {{"role", "tool"}, {"tool_call_id", "1"}, {"content", "Look it up above."}}}),
               Json::object());
  EXPECT_GT(reply["ebb"]["recalled_blocks"].get<int>(), 0);
}

TEST_F(RecallRequests, blocks_come_back_by_name_whatever_is_asked) {
  const Json messages = Json::array({user(document() + "\nGood morning to you.")});
  const Json by_name = {{"ebb", {{"recall", {{"blocks", 0}, {"names", {"user0#2", "user0#3", "nobody#7"}}}}}}};
  const Json reply = reply_to(messages, by_name);
  EXPECT_GE(reply["ebb"]["recalled_blocks"].get<int>(), 1);
  EXPECT_LE(reply["ebb"]["recalled_blocks"].get<int>(), 2);
  const Json& last = reply["ebb"]["recall"].back();
  EXPECT_EQ(last["selector"], "identity");
  EXPECT_EQ(last["unknown_names"], Json::array({"nobody#7"}));
  for (const Json& look : reply["ebb"]["recall"]) {
    if (look.contains("unknown_names")) {
      EXPECT_EQ(look["unknown_names"], Json::array({"nobody#7"}));
    }
  }
}

TEST_F(RecallRequests, selectors_are_named_in_one_text_or_in_a_list) {
  const Json messages = Json::array({user(document() + "\nWhat is the code of the north gate?")});
  const Json reply = reply_to(messages, {{"ebb", {{"recall", {{"selectors", {"lexical", "identity"}}}}}}});
  for (const Json& look : reply["ebb"]["recall"]) {
    EXPECT_THAT(look["selector"].get<std::string>(), ::testing::AnyOf("lexical", "identity", "question"));
  }
  const Json none = reply_to(messages, {{"ebb", {{"recall", {{"selectors", Json::array()}}}}}});
  EXPECT_TRUE(none["ebb"]["recall"].empty());
}

TEST_F(RecallRequests, what_is_named_comes_back_whoever_chooses_the_rest) {
  const Json messages = Json::array({user(document() + "\nGood morning to you.")});
  for (const char* selectors : {"none", "digest", "lexical"}) {
    const Json recall = {{"selectors", selectors}, {"names", {"user0#2"}}};
    const Json reply = reply_to(messages, {{"ebb", {{"recall", recall}}}});
    std::int32_t n_named = 0;
    for (const Json& look : reply["ebb"]["recall"]) {
      if (look["selector"] == "identity") n_named += look["chosen"].get<int>();
      EXPECT_TRUE(std::string_view(selectors) != "none" || look["selector"] == "identity") << look;
    }
    EXPECT_EQ(n_named, 1) << selectors;
  }
}

// Each look tells of its own: what came back later, for what the reply said, did not come for the question.
TEST_F(RecallRequests, metrics_count_the_looks_and_what_came_for_them) {
  const Json messages = Json::array({user(document() + "\nWhat is the code of the north gate?")});
  const Json reply = reply_to(messages, {{"ebb", {{"recall", {{"explain", true}}}}}});
  const auto metrics = send("GET", "/metrics", "");
  metrics->wait();
  int n_came = 0;
  double n_looks = 0;
  for (const Json& look : reply["ebb"]["recall"]) {
    if (look["selector"] != "lexical") continue;
    ++n_looks;
    for (const Json& block : look["blocks"]) {
      n_came += block["came"].get<bool>() && block["verdict"] == "recall" ? 1 : 0;
    }
  }
  EXPECT_GT(n_came, 0);
  EXPECT_THAT(metrics->body(), HasSubstr(fmt::format("ebb:recall_looks_total{{selector=\"lexical\"}} {}\n", n_looks)));
  EXPECT_THAT(metrics->body(),
              HasSubstr(fmt::format("ebb:recall_came_blocks_total{{selector=\"lexical\"}} {}\n", n_came)));
  EXPECT_THAT(metrics->body(), HasSubstr(fmt::format("ebb:computed_again_tokens_total {}\n",
                                                     reply["ebb"]["computed_again"].get<int>())));
}

TEST_F(RecallRequests, what_there_is_no_time_for_stays_away_and_is_told) {
  const Json messages = Json::array({user(document() + "\nGood morning to you.")});
  const Json reply = reply_to(messages, {{"ebb", {{"recall", {{"blocks", 0}, {"ms", 1e-6}, {"names", {"user0"}}}}}}});
  EXPECT_GT(reply["ebb"]["late_recalls"].get<int>(), 0);
  EXPECT_LE(reply["ebb"]["recalled_blocks"].get<int>(), 8);
  EXPECT_EQ(reply_to(messages, Json::object())["ebb"]["late_recalls"], 0);
}

TEST_F(RecallRequests, an_answer_tells_why_blocks_came_where_it_is_asked_to) {
  const Json messages = Json::array({user(document() + "\nWhat is the code of the north gate?")});
  const Json told = reply_to(messages, {{"ebb", {{"recall", {{"explain", true}, {"selectors", "lexical"}}}}}});
  const Json& looks = told["ebb"]["recall"];
  ASSERT_EQ(looks.size(), 2U) << looks.dump();
  EXPECT_EQ(looks[1]["when"], "before its tail");
  EXPECT_EQ(looks[1]["selector"], "lexical");
  EXPECT_GT(looks[1]["chosen"].get<int>(), 0);
  ASSERT_FALSE(looks[1]["blocks"].empty());
  EXPECT_EQ(looks[1]["blocks"][0]["verdict"], "recall");
  EXPECT_TRUE(looks[1]["blocks"][0]["came"].get<bool>());
  EXPECT_THAT(looks[1]["blocks"][0]["name"].get<std::string>(), HasSubstr("user0#"));
  EXPECT_EQ(told["ebb"]["computed_again"], 0);

  const Json short_reply =
      reply_to(Json::array({user("Once more. " + document() + "\nWhat is the code of the north gate?")}),
               {{"ebb", {{"recall", {{"selectors", "digest"}}}}}});
  ASSERT_FALSE(short_reply["ebb"]["recall"].empty());
  EXPECT_EQ(short_reply["ebb"]["recall"][0]["when"], "behind its tail");
  for (const Json& look : short_reply["ebb"]["recall"]) {
    EXPECT_EQ(look["selector"], "digest");
    EXPECT_FALSE(look.contains("blocks"));
  }
  EXPECT_GT(short_reply["ebb"]["computed_again"].get<int>(), 0);
}

// What answers is of no use beside a question that has left.
TEST_F(RecallRequests, a_question_in_front_of_a_document_is_in_sight_when_it_ends) {
  const Json messages = Json::array({user("What is the code of the north gate?\n" + document())});
  const Json told = reply_to(messages, {{"ebb", {{"recall", {{"explain", true}, {"selectors", "lexical"}}}}}});
  const Json& looks = told["ebb"]["recall"];
  ASSERT_EQ(looks.size(), 3U) << looks.dump();
  EXPECT_EQ(looks[1]["selector"], "question");
  EXPECT_EQ(looks[1]["blocks"][0]["name"], "user0#0");
  EXPECT_EQ(looks[1]["blocks"][0]["verdict"], "asks");
  const Json none = reply_to(Json::array({user("What is the code of the north gate? Once more.\n" + document())}),
                             {{"ebb", {{"recall", {{"explain", true}, {"blocks", 0}}}}}});
  for (const Json& look : none["ebb"]["recall"]) EXPECT_EQ(look["chosen"], 0) << look.dump();
}

TEST_F(RecallRequests, a_question_before_the_message_with_the_document_is_in_sight_too) {
  const std::string asked = "What is the code of the north gate?";
  const Json shown =
      Json::array({user(asked), {{"role", "assistant"}, {"content", "Show me."}}, user("Hear. " + document())});
  const Json told =
      Json::array({{{"role", "system"}, {"content", "Say it in a few words. " + asked}}, user("Hear. " + document())});
  for (const auto& [messages, name] : {std::pair(shown, "user0#0"), std::pair(told, "system#0")}) {
    const Json reply = reply_to(messages, {{"ebb", {{"recall", {{"explain", true}, {"selectors", "lexical"}}}}}});
    const Json& looks = reply["ebb"]["recall"];
    const auto question = std::ranges::find_if(looks, [](const Json& look) { return look["selector"] == "question"; });
    ASSERT_TRUE(question != looks.end()) << looks.dump();
    EXPECT_EQ((*question)["blocks"][0]["name"], name);
    EXPECT_THAT(looks.dump(), HasSubstr("\"came\":true"));
  }
}

// With random weights, which find what is the same word for word.
TEST_F(RecallRequests, what_was_said_is_found_by_an_embedding_model_while_others_are_served) {
  const ToyGguf toy({.n_ctx_train = 300});
  embedding_model_ = toy.write_with_keys([](gguf_context* gguf) { gguf_set_val_u32(gguf, "llama.pooling_type", 1); });
  open({});
  const Json own = {{"ebb", {{"recall", {{"explain", true}, {"selectors", "embedding:wait=60000"}}}}}};
  const auto other = send("POST", "/v1/chat/completions",
                          Json({{"messages", Json::array({user("Hello")})}, {"max_tokens", 8}}).dump());
  const Json told = reply_to(Json::array({user(document() + "\nThe code of the north gate is what?")}), own);
  other->wait();
  EXPECT_EQ(other->status(), 200);
  const Json& looks = told["ebb"]["recall"];
  const auto embedding = std::ranges::find_if(
      looks, [](const Json& look) { return look["selector"] == "embedding" && look["when"] == "before its tail"; });
  ASSERT_NE(embedding, looks.end()) << looks.dump();
  EXPECT_GT((*embedding)["looked_at"].get<int>(), 16);
  EXPECT_GT((*embedding)["chosen"].get<int>(), 0);
  EXPECT_GT((*embedding)["ms"].get<double>(), 0.0);
  EXPECT_GT(told["ebb"]["recalled_blocks"].get<int>(), 0);
}

TEST_F(RecallRequests, by_an_embedding_model_that_there_is_not_are_refused_and_say_what_to_do) {
  const auto reply =
      chat(Json::array({user("Hello")}), {{"ebb", {{"recall", {{"selectors", "lexical+embedding"}}}}}}, {});
  EXPECT_EQ(reply->status(), 400);
  EXPECT_THAT(reply->json()["error"]["message"].get<std::string>(), HasSubstr("--embedding-model"));
}

TEST_F(RecallRequests, what_makes_no_sense_is_refused_with_its_field) {
  const Json messages = Json::array({user("Hello")});
  for (const auto& [own, field] : std::vector<std::pair<Json, std::string>>{
           {Json(3), "ebb"},
           {{{"recall", 3}}, "recall"},
           {{{"recall", {{"blocks", -1}}}}, "blocks"},
           {{{"recall", {{"ms", -1}}}}, "ms"},
           {{{"recall", {{"names", "user1"}}}}, "names"},
           {{{"recall", {{"selectors", "psychic"}}}}, "selectors"},
           {{{"recall", {{"selectors", {3}}}}}, "selectors"},
           {{{"recall", {{"explain", 3}}}}, "explain"},
           {{{"recall", {{"block", 3}}}}, "block"},
           {{{"recal", {{"blocks", 3}}}}, "recal"},
           {{{"recall", {{"names", std::vector<std::string>(65, "user1")}}}}, "names"}}) {
    const auto reply = chat(messages, {{"ebb", own}}, {});
    EXPECT_EQ(reply->status(), 400) << own.dump();
    EXPECT_THAT(reply->json()["error"]["message"].get<std::string>(), HasSubstr(field));
  }
}

}  // namespace
}  // namespace ebb
