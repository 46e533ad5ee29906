// The C ABI as a program in another language calls it, with what strangers might send.
#include "ebb/policy_abi.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/parse_json.h"
#include "policy/choose.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

struct Answer {
  std::int32_t code = 0;
  std::string text;
  [[nodiscard]] Json json() const { return Json::parse(text); }
};

Answer taken(ebb_reply* reply) {
  Answer answer{.code = reply->code, .text = std::string(reply->text, reply->n_bytes)};
  EXPECT_EQ(reply->text[reply->n_bytes], '\0');
  ebb_reply_free(reply);
  return answer;
}

using Columns = std::vector<std::pair<std::string, std::vector<double>>>;

// Each array in memory of its own, so that sanitizers see a read past its end.
std::vector<ebb_numbers> to_numbers(const Columns& columns) {
  std::vector<ebb_numbers> numbers;
  for (const auto& [name, values] : columns)
    numbers.push_back({values.empty() ? nullptr : values.data(), values.size()});
  return numbers;
}

Answer ask(Json question, const Columns& columns = {}) {
  for (const auto& [name, values] : columns) question["arrays"].push_back(name);
  const std::string text = question.dump();
  const std::vector<ebb_numbers> numbers = to_numbers(columns);
  return taken(ebb_policy_ask(text.data(), text.size(), numbers.data(), numbers.size()));
}

TEST(PolicyAbi, a_choice_is_the_engines) {
  const Columns columns = {{"begin", {0, 4, 8, 12}},
                           {"end", {4, 8, 12, 14}},
                           {"last", {5, 1, 3, 2, 1, 2, 3, 4}},
                           {"priority", {1, 4, 1, 1}}};
  const Answer answer = ask(
      {{"ask", "choose"}, {"policy", "tova"}, {"n_layers", 2}, {"n_kv_heads", 3}, {"grain", 4}, {"keep_frames", 12}},
      columns);
  ASSERT_EQ(answer.code, 0) << answer.text;
  Evidence evidence{.n_layers = 2, .n_scopes = 2, .grain = 4, .end = Position(14)};
  for (std::int32_t b = 0; b < 4; ++b) {
    evidence.blocks.push_back({.block = BlockIndex(b),
                               .span = {Position(4 * b), Position(std::min(14, 4 * b + 4))},
                               .priority = b == 1 ? 4.0 : 1.0});
  }
  for (std::int32_t s = 0; s < 2; ++s) {
    ScopeEvidence scope{.index = s};
    for (std::int32_t b = 0; b < 4; ++b) scope.rows.push_back({.block = b, .n_frames = 3});
    for (int i = 0; i < 4; ++i) scope.last.push_back(columns[2].second[static_cast<std::size_t>(4 * s + i)]);
    evidence.scopes.push_back(std::move(scope));
  }
  std::vector<std::vector<int>> expected(2);
  for (const Victim& victim : choose_victims(*make_policy("tova").value(), evidence, 12, 12)) {
    expected[static_cast<std::size_t>(victim.scope)].push_back(victim.block.value());
  }
  ASSERT_FALSE(expected[0].empty());
  for (std::size_t s = 0; s < 2; ++s) EXPECT_EQ(answer.json()["scopes"][s]["evicted"], Json(expected[s]));
}

// What is told of slices of one token in blocks of four is what is told of blocks of one, and a policy chooses by it.
TEST(PolicyAbi, slices_are_told_and_taken) {
  std::mt19937 random(4);
  std::vector<double> attention;
  for (const std::size_t n : {7 * 7, 8, 9, 10}) {
    for (std::size_t i = 0; i < n; ++i) attention.push_back(static_cast<double>(random() % 9) / 8.0);
  }
  const Columns recording = {{"steps", {7, 1, 1, 1}}, {"attention", attention}};
  Json question = {{"ask", "observe"}, {"totals", true}, {"window", 2}, {"last", true}, {"grain", 1}};
  const Json tokens = ask(question, recording).json()["columns"];
  question.update({{"grain", 4}, {"slice", 1}});
  const Answer told = ask(question, recording);
  ASSERT_EQ(told.code, 0) << told.text;
  EXPECT_EQ(told.json()["n_slices"], 4);
  const Json columns = told.json()["columns"];
  for (const std::string name : {"total", "n_queries", "window_mean", "window_max", "last"}) {
    Json of_tokens = columns["slice_" + name];
    ASSERT_EQ(of_tokens.size(), 12U) << name;
    of_tokens.erase(of_tokens.begin() + 10, of_tokens.end());
    EXPECT_EQ(of_tokens, tokens[name]) << name;
  }
  question["slice"] = 3;
  EXPECT_THAT(ask(question, recording).text, HasSubstr("slices of 3 tokens do not fill blocks of 4"));

  const Json choose = {{"ask", "choose"}, {"policy", "snapkv:window=2,kernel=1,slice=1,lift=1"}, {"grain", 4}};
  const Columns given = {{"begin", columns["begin"]},
                         {"end", columns["end"]},
                         {"window_mean", columns["window_mean"]},
                         {"window_max", columns["window_max"]},
                         {"slice_window_max", columns["slice_window_max"]},
                         {"slice_window_mean", {1, 2, 8, 1, 3, 3, 3, 3, 4, 7, 99, 99}}};
  const Answer chosen = ask(choose, given);
  ASSERT_EQ(chosen.code, 0) << chosen.text;
  EXPECT_EQ(chosen.json()["scopes"][0]["scores"], (Json{8.0, 3.0, 7.0})) << "of the last block two tokens are there";
  EXPECT_THAT(ask(choose, {given.begin(), given.end() - 1}).text, HasSubstr("slice_window_mean"));
}

TEST(PolicyAbi, null_pointers_with_a_length_are_refused) {
  EXPECT_EQ(taken(ebb_policy_ask(nullptr, 5, nullptr, 0)).code, 1);
  EXPECT_EQ(taken(ebb_policy_ask("{}", 2, nullptr, 1)).code, 1);
  const ebb_numbers nothing = {nullptr, 3};
  EXPECT_THAT(taken(ebb_policy_ask("{}", 2, &nothing, 1)).text, HasSubstr("null pointer"));
  EXPECT_EQ(taken(ebb_policy_replay(nullptr, 1)).code, 1);
  EXPECT_EQ(taken(ebb_areas_make("{}", 2, nullptr)).code, 1);
  EXPECT_EQ(taken(ebb_areas_act(nullptr, "{}", 2, nullptr, 0)).code, 1);
  EXPECT_EQ(taken(ebb_areas_copy(nullptr, nullptr)).code, 1);
  ebb_areas_free(nullptr);
  ebb_reply_free(nullptr);
}

TEST(PolicyAbi, lengths_that_do_not_fit_are_refused_with_both) {
  const Json question = {{"ask", "choose"}, {"policy", "tova"}, {"keep_frames", 1}};
  EXPECT_THAT(ask(question, {{"begin", {0, 1}}, {"end", {1}}}).text,
              HasSubstr("'end' has 1 numbers, and [blocks] are 2"));
  EXPECT_THAT(ask(question, {{"begin", {0, 1}}, {"end", {1, 2}}, {"last", {1, 2, 3}}}).text, HasSubstr("'last' has 3"));
  EXPECT_THAT(ask(question, {{"begin", {0, 0.5}}, {"end", {1, 2}}}).text, HasSubstr("0.5 is no whole number"));
  Json more = question;
  more["arrays"] = {"begin", "end"};
  const std::string text = more.dump();
  EXPECT_THAT(taken(ebb_policy_ask(text.data(), text.size(), nullptr, 0)).text,
              HasSubstr("names 2 arrays, and 0 came"));
  more["foo"] = 1;
  EXPECT_THAT(ask(more).text, HasSubstr("Field 'foo': is not known here"));
  EXPECT_THAT(ask({{"ask", "foo"}}).text, HasSubstr("there are list, show, observe, choose"));
  EXPECT_THAT(ask({{"ask", "choose"}}, {{"begin", {0}}, {"begin", {0}}}).text, HasSubstr("given twice"));
}

TEST(PolicyAbi, a_sequence_of_areas_goes_on_as_it_was_after_a_refusal) {
  const std::string recording =
      R"({"block_size":2,"n_layers":1,"prompt_tokens":8,"steps":[],"cache_eviction_config":{"start_size":2,"recent_size":2,
          "max_cache_size":6,"snapkv_window_size":0}})";
  ebb_areas* areas = nullptr;
  ASSERT_EQ(taken(ebb_areas_make(recording.data(), recording.size(), &areas)).code, 0);
  const auto act = [&](ebb_areas* of, const std::string& text, const Columns& columns = {}) {
    const std::vector<ebb_numbers> numbers = to_numbers(columns);
    return taken(ebb_areas_act(of, text.data(), text.size(), numbers.data(), numbers.size()));
  };
  const std::string scores = R"({"act":"register_scores","scheduled":8,"arrays":["scores"]})";
  EXPECT_EQ(act(areas, scores, {{"scores", {1, 2, 3}}}).code, 1);
  EXPECT_EQ(act(areas, scores, {{"scores", {1, 2, 3, 4, 5, 6, 7, std::numeric_limits<double>::infinity()}}}).code, 1);
  EXPECT_EQ(act(areas, scores, {{"scores", {1, 2, 3, 4, 5, 6, 7, 1e300}}}).code, 1);
  EXPECT_EQ(act(areas, R"({"act":"state"})").json()["processed"], 0);
  EXPECT_EQ(act(areas, scores, {{"scores", {1, 2, 3, 4, 5, 6, 7, 8}}}).json()["cached"], 8);
  EXPECT_EQ(act(areas, R"({"act":"evict"})").json()["layers"][0]["evicted"], Json::array());
  ebb_areas* copy = nullptr;
  ASSERT_EQ(taken(ebb_areas_copy(areas, &copy)).code, 0);
  ebb_areas_free(areas);
  EXPECT_EQ(act(copy, R"({"act":"register_scores","scheduled":1,"arrays":["scores"]})",
                {{"scores", {1, 2, 3, 4, 5, 6, 7, 8, 9}}})
                .json()["cached"],
            9);
  EXPECT_EQ(act(copy, R"({"act":"evict"})").json()["layers"][0]["evicted"].size(), 1U);
  EXPECT_THAT(act(copy, R"({"act":"foo"})").text, HasSubstr("register_diversity"));
  ebb_areas_free(copy);
}

// Whatever the sizes and numbers are: an answer or a refusal, and no byte past an array.
TEST(PolicyAbi, random_questions_are_answered_or_refused) {
  std::mt19937_64 random(3);
  const std::vector<std::string> names = {"begin", "end",   "hold",   "n_rows",    "row_block", "total", "n_queries",
                                          "last",  "steps", "scores", "attention", "keys",      "sums",  "victims"};
  const std::vector<double> odd = {0, 1, 2, 3, 4, 5, 64, -1, 0.5, 1e300, 2147483648.0, std::nan(""), 1e-300};
  const auto pick = [&](const auto& from) { return from[random() % from.size()]; };
  int n_answers = 0;
  for (int i = 0; i < 20'000; ++i) {
    Json question = {{"ask", pick(std::vector<std::string>{"choose", "observe", "rescue", "shifts"})}};
    question["policy"] = pick(std::vector<std::string>{"h2o", "tova", "knorm", "recency", "adakv", "foo"});
    if (random() % 2 == 0) question.erase("policy");
    for (const char* field : {"n_layers", "n_kv_heads", "grain", "keep_frames", "block_size", "n_blocks"}) {
      if (random() % 3 == 0) question[field] = pick(std::vector<int>{0, 1, 2, 3, 40, -7});
    }
    if (random() % 4 == 0) question["totals"] = true;
    Columns columns;
    for (std::uint64_t n = random() % 6; n > 0; --n) {
      std::vector<double> values(random() % 9);
      for (std::size_t at = 0; at < values.size(); ++at)
        values[at] = random() % 2 == 0 ? static_cast<double>(at) : pick(odd);
      columns.emplace_back(pick(names), values);
    }
    const Answer answer = ask(question, columns);
    EXPECT_FALSE(answer.text.empty());
    if (answer.code == 0) ++n_answers;
  }
  EXPECT_GT(n_answers, 50);
}

}  // namespace
}  // namespace ebb
