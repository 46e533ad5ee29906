#include "engine/lanes.h"

#include <random>

#include <gtest/gtest.h>

#include "model/random_model.h"
#include "tests/files.h"

namespace ebb {
namespace {

class LaneSearch : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_random_model({}, file_.path()).ok());
    Result<std::unique_ptr<Engine>> engine = Engine::open({.model = file_.path(), .n_threads = 1, .block_size = 16});
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *std::move(engine);
    lanes_ = std::make_unique<Lanes>(*engine_, SessionOptions(), LaneLimits());
  }

  // A lane that was parked with what it holds.
  Lane* park(const std::string& id, std::vector<Token> tokens) {
    Lane* const lane = lanes_->find_or_open({.id = id});
    lane->image = SessionImage{.tokens = std::move(tokens)};
    lanes_->release(*lane);
    return lane;
  }

  static std::vector<Token> text(std::int32_t n_tokens, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<Token> tokens;
    for (std::int32_t i = 0; i < n_tokens; ++i) tokens.emplace_back(static_cast<std::int32_t>('a' + random() % 26));
    return tokens;
  }

  static std::vector<Token> joined(std::initializer_list<std::vector<Token>> texts) {
    std::vector<Token> all;
    for (const std::vector<Token>& one : texts) all.insert(all.end(), one.begin(), one.end());
    return all;
  }

  TemporaryFile file_{".gguf"};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Lanes> lanes_;
};

TEST_F(LaneSearch, of_many_conversations_that_begin_alike_a_changed_root_finds_its_own) {
  const std::vector<Token> instructions = text(1500, 1);
  std::vector<Lane*> lanes;
  for (std::uint32_t i = 0; i < 60; ++i) {
    lanes.push_back(park(fmt::format("client~root{}", i), joined({instructions, text(2500, 100 + i)})));
  }
  const std::vector<Token> stamp = text(40, 2);
  const auto history = joined({stamp, instructions, text(2500, 100 + 41), text(50, 3)});
  EXPECT_EQ(lanes_->find_or_open({.id = "client~new", .history = history}), lanes[41]);
  EXPECT_EQ(lanes[41]->id, "client~new");
  EXPECT_LE(lanes_->n_compared(), 3) << "the others are told by their sketches";
}

TEST_F(LaneSearch, a_conversation_that_only_begins_like_others_gets_a_lane_of_its_own) {
  const std::vector<Token> instructions = text(1500, 1);
  for (std::uint32_t i = 0; i < 10; ++i) {
    park(fmt::format("client~root{}", i), joined({instructions, text(2500, 100 + i)}));
  }
  const auto history = joined({instructions, text(2500, 7)});
  EXPECT_EQ(lanes_->find_or_open({.id = "client~new", .history = history})->public_id, "client~new");
  EXPECT_EQ(lanes_->all().size(), 11U);
}

TEST_F(LaneSearch, without_an_id_the_lane_that_has_most_of_the_history_goes_on_with_it) {
  const std::vector<Token> instructions = text(1500, 1);
  std::vector<Lane*> lanes;
  for (std::uint32_t i = 0; i < 20; ++i) lanes.push_back(park("", joined({instructions, text(200, 100 + i)})));
  lanes[7]->image->unfinished = text(3, 8);
  const auto history = joined({instructions, text(200, 107), text(3, 8), text(30, 9)});
  EXPECT_EQ(lanes_->find_or_open({.history = history}), lanes[7]);
}

TEST_F(LaneSearch, without_an_id_a_reply_that_was_cut_into_other_tokens_is_still_the_lanes_own) {
  const Vocabulary& vocabulary = engine_->vocabulary();
  const std::vector<Token> asked = *vocabulary.tokenize("where does the quagga sleep ");
  std::vector<Token> letter_by_letter;
  for (const char c : std::string_view("in the barn")) {
    const std::vector<Token> one = *vocabulary.tokenize(std::string_view(&c, 1));
    letter_by_letter.insert(letter_by_letter.end(), one.begin(), one.end());
  }
  Lane* const lane = park("", joined({asked, letter_by_letter}));
  const auto history = joined({asked, *vocabulary.tokenize("in the barn"), *vocabulary.tokenize(" and why")});
  EXPECT_EQ(lanes_->find_or_open({.history = history}), lane);
}

// What the turn holds as the model wrote it is the lane's, too, however much of it stands behind the first call that is told otherwise.
TEST_F(LaneSearch, without_an_id_replies_that_come_back_in_other_words_are_still_the_lanes_own) {
  const Vocabulary& vocabulary = engine_->vocabulary();
  Token end(0);
  while (!vocabulary.is_end_of_generation(end)) end = Token(end.value() + 1);
  const std::vector<Token> asked = text(60, 1);
  const auto reply = [&](std::uint32_t seed, bool is_written) {
    return joined({text(4, is_written ? 50 : 51), text(30, seed), {end}});
  };
  const auto told = [&](bool is_written) {
    return joined({asked, reply(2, is_written), text(20, 3), reply(4, is_written), text(20, 5), reply(6, is_written)});
  };
  Lane* const lane = park("", told(true));
  for (const std::int32_t begin : {60, 115, 170}) {
    lane->image->parts.push_back({.span = {Position(begin), Position(begin + 35)}, .source = Source::kAssistant});
  }
  // The last token that a model wrote is computed with the next prompt.
  lane->image->unfinished = {lane->image->tokens.back()};
  lane->image->tokens.pop_back();
  const auto history = joined({told(false), text(20, 7)});
  const SameReply same_reply{
      .whole = [](std::string_view written, std::string_view said) { return written.substr(4) == said.substr(4); }};
  EXPECT_EQ(lanes_->find_or_open({.history = history, .same_reply = &same_reply}), lane);
  EXPECT_NE(lanes_->find_or_open({.history = history}), lane) << "of which less than half has the same bytes";
}

TEST_F(LaneSearch, conversations_of_one_hint_that_open_alike_keep_lanes_of_their_own) {
  const std::vector<Token> instructions = text(1500, 1);
  const auto ask = [&](const std::vector<Token>& history) {
    return lanes_->find_or_open({.hint = "all", .history = history, .n_instructions = 1500, .n_opening = 1550});
  };
  const auto first = joined({instructions, text(50, 2)});
  const auto second = joined({instructions, text(50, 3)});
  Lane* const one = ask(first);
  one->busy = true;
  Lane* const two = ask(second);
  EXPECT_NE(one, two) << "the first is at work, and nobody waits for it";
  one->image = SessionImage{.tokens = joined({first, text(20, 4)})};
  two->image = SessionImage{.tokens = joined({second, text(20, 5)})};
  lanes_->release(*one);
  lanes_->release(*two);
  EXPECT_NE(ask(joined({instructions, text(50, 6)})), one) << "it would cut what the first was told";
  EXPECT_EQ(lanes_->all().size(), 3U);
  EXPECT_EQ(ask(joined({second, text(20, 5), text(40, 7)})), two);
  EXPECT_EQ(ask(joined({first, text(20, 4), text(40, 8)})), one);
}

TEST_F(LaneSearch, by_a_hint_a_conversation_whose_instructions_changed_goes_on) {
  const std::vector<Token> instructions = text(1500, 1);
  std::vector<Lane*> lanes;
  for (std::uint32_t i = 0; i < 5; ++i) {
    const auto history = joined({instructions, text(400, 100 + i)});
    Lane* const lane =
        lanes_->find_or_open({.hint = "all", .history = history, .n_instructions = 1500, .n_opening = 1550});
    lane->image = SessionImage{.tokens = history};
    lanes_->release(*lane);
    lanes.push_back(lane);
  }
  const auto history = joined({text(40, 2), instructions, text(400, 103), text(30, 3)});
  const LaneAsk ask{.hint = "all", .history = history, .n_instructions = 1540, .n_opening = 1590};
  EXPECT_EQ(lanes_->find_or_open(ask), lanes[3]);
  lanes[3]->busy = true;
  EXPECT_EQ(lanes_->find_or_open(ask)->hint, "all");
  EXPECT_EQ(lanes_->all().size(), 6U) << "a new one, since its own is at work";
}

}  // namespace
}  // namespace ebb
