// Histories that a client edits: what stood behind the edit is computed again, or grafted where that is allowed.
//
// What layer 0 makes of a token depends on nothing but the token and its place, so there a graft can be compared with
// what is computed: the same up to rounding.
#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/generation.h"
#include "model/random_model.h"
#include "session/image.h"
#include "tests/files.h"

namespace ebb::edit_test {
namespace {

constexpr std::int32_t kBlockSize = 16;
constexpr std::int32_t kHeads = 2;

// Each letter a token ("he" would be one), and no run of them stands twice.
std::string letters(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::string text;
  for (std::size_t i = 0; i < n; ++i) text += static_cast<char>('i' + random() % 18);
  return text;
}

class EditedHistory {
 protected:
  void open(const std::filesystem::path& model, RowType kv_type, bool composed) {
    Result<std::unique_ptr<Engine>> engine = Engine::open({.model = model,
                                                           .n_threads = 2,
                                                           .kv_type = kv_type,
                                                           .block_size = kBlockSize,
                                                           .chunk = 64,
                                                           .policy = "recency",
                                                           .composed_attention = composed});
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *std::move(engine);
    session_ = open_session(1024);
  }

  std::unique_ptr<Session> open_session(std::int32_t budget_tokens, bool adopts = false) {
    Result<std::unique_ptr<Session>> session =
        engine_->new_session({.budget_tokens = budget_tokens, .recent_tokens = kBlockSize, .adopts = adopts});
    EXPECT_TRUE(session.ok()) << session.status().message();
    return *std::move(session);
  }

  std::vector<Token> tokens_of(std::string_view text) { return *engine_->vocabulary().tokenize(text); }

  TurnStats resume(Session& session, std::string_view history, const ResumeOptions& options = {}) {
    const std::vector<Token> tokens = tokens_of(history);
    Result<std::unique_ptr<Generation>> generation = Generation::resume(
        session, engine_->vocabulary(), Prompt(tokens), {.sampling = {.temperature = 0.0F}, .max_tokens = 1}, options);
    EXPECT_TRUE(generation.ok()) << generation.status().message();
    Generation* const running = generation->get();
    while (!running->finished()) {
      const Status status = engine_->step({&running, 1});
      EXPECT_TRUE(status.ok()) << status.message();
      if (!status.ok()) break;
      session.check_invariants();
      EXPECT_LE(session.hot().n_hot_frames(), session.budget().n_frames);
    }
    EXPECT_TRUE(std::ranges::equal(session.tokens().first(std::min(tokens.size(), session.tokens().size())), tokens));
    return running->turn_stats();
  }

  // The bytes of layer 0, all heads, as floats.
  std::vector<float> first_layer(const Session& session, BlockIndex block) {
    const std::vector<std::byte> bytes = engine_->read_block(session, block);
    std::vector<float> floats(engine_->layout().frame_bytes() * kHeads / sizeof(float));
    std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
    return floats;
  }

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;
};

class Edits : public EditedHistory, public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_random_model({.n_kv_heads = kHeads, .n_ctx_train = 2048}, file_.path()).ok());
    open(file_.path(), RowType::kF32, GetParam());
  }

  TemporaryFile file_{".gguf"};
};

const std::string kBefore = letters(100, 1);
const std::string kBehind = letters(300, 2);
const ResumeOptions kGraft = {.reuse = Reuse::kApproximate};
const ResumeOptions kFresh = {.reuse = Reuse::kFresh};

TEST_P(Edits, what_stood_behind_is_computed_again_unless_approximate_reuse_is_allowed) {
  resume(*session_, kBefore + "0123456789" + kBehind);
  const TurnStats exact = resume(*session_, kBefore + "987" + kBehind);
  EXPECT_EQ(exact.from[Origin::kRecalledApproximate], 0);
  EXPECT_EQ(exact.from[Origin::kNew], 303);
  const TurnStats grafted = resume(*session_, kBefore + "0123456789ab" + kBehind, kGraft);
  EXPECT_EQ(grafted.from[Origin::kHotAlready], 100);
  EXPECT_EQ(grafted.from[Origin::kRecalledApproximate], 299);
  EXPECT_EQ(grafted.from[Origin::kNew], 12 + 1);
}

TEST_P(Edits, a_graft_is_what_would_be_computed_but_for_what_it_saw) {
  resume(*session_, kBefore + "0123456789" + kBehind);
  const std::string edited = kBefore + "987" + kBehind;
  resume(*session_, edited, kGraft);
  const auto fresh = open_session(1024);
  resume(*fresh, edited);
  for (std::int32_t b = 0; b < session_->n_blocks() - 1; ++b) {
    const BlockIndex block(b);
    const std::vector<float> ours = first_layer(*session_, block);
    EXPECT_THAT(ours, ::testing::Pointwise(::testing::FloatNear(1e-4F), first_layer(*fresh, block))) << b;
    // The name tells them apart from the block of the edit on.
    EXPECT_EQ(session_->exact_name(block) == fresh->exact_name(block), b < 100 / kBlockSize) << b;
  }
}

TEST_P(Edits, of_the_same_length_move_nothing) {
  resume(*session_, kBefore + "0123456789" + kBehind);
  std::vector<std::vector<std::byte>> before;
  for (std::int32_t b = 0; b < 20; ++b) before.push_back(engine_->read_block(*session_, BlockIndex(b)));
  EXPECT_EQ(resume(*session_, kBefore + "9876543210" + kBehind, kGraft).from[Origin::kRecalledApproximate], 299);
  const std::int32_t first_whole = 110 / kBlockSize + 1;
  for (std::int32_t b = first_whole; b < 20; ++b) {
    EXPECT_EQ(engine_->read_block(*session_, BlockIndex(b)), before[static_cast<std::size_t>(b)]) << b;
  }
}

TEST_P(Edits, parts_that_change_places_are_found_where_they_went) {
  const std::string other = "0" + letters(199, 3);
  resume(*session_, kBefore + kBehind + other);
  const TurnStats stats = resume(*session_, kBefore + other + kBehind, kGraft);
  // A letter at a seam may be read together with its new neighbour.
  EXPECT_GE(stats.from[Origin::kRecalledApproximate], 497);
  EXPECT_LE(stats.from[Origin::kNew], 3);
}

TEST_P(Edits, the_first_tokens_of_each_block_are_computed_where_that_is_asked) {
  resume(*session_, kBefore + "0123456789" + kBehind);
  const TurnStats stats = resume(*session_, kBefore + kBehind, {.reuse = Reuse::kApproximate, .n_recomputed = 4});
  // The run ends in block 24; the first block has 12 of it, the last 15 without the token that is always computed.
  EXPECT_EQ(stats.from[Origin::kRecalledApproximate], 299 - 4 * 19);
  EXPECT_EQ(stats.from[Origin::kNew], 4 * 19 + 1);
}

TEST_P(Edits, of_what_was_read_without_notes_all_is_computed) {
  resume(*session_, kBefore + "0123456789" + kBehind);
  const TurnStats stats = resume(*session_, kBefore + "987" + kBehind, kFresh);
  EXPECT_EQ(stats.from[Origin::kRecalledApproximate], 0);
  EXPECT_EQ(stats.from[Origin::kNew], 303);
}

TEST_P(Edits, of_a_history_longer_than_the_budget_what_has_left_is_grafted_too) {
  const auto session = open_session(160);
  resume(*session, kBefore + "0123456789" + kBehind);
  const TurnStats stats = resume(*session, kBefore + kBehind, kGraft);
  // More than the budget holds: grafts that left again before the first token are holes, and are told so.
  EXPECT_GT(stats.n_grafted, 250);
  EXPECT_GT(stats.from[Origin::kRecalledApproximate], 100);
  EXPECT_LE(stats.from[Origin::kRecalledApproximate], 160);
  EXPECT_GE(stats.acts.evicted.size(), 9U) << "19 blocks came into what the cut left of a budget of 10";
  EXPECT_EQ(stats.from[Origin::kHotAlready] + stats.from[Origin::kRecalledExact] +
                stats.from[Origin::kRecalledApproximate] + stats.from[Origin::kRecomputed] + stats.from[Origin::kHole] +
                stats.from[Origin::kNew],
            400);
}

TEST_P(Edits, what_was_grafted_comes_back_as_it_was) {
  resume(*session_, kBefore + "0123456789" + kBehind);
  resume(*session_, kBefore + "98" + kBehind, kGraft);
  const BlockIndex block(10);
  const std::vector<std::byte> bytes = engine_->read_block(*session_, block);
  session_->evict(std::vector{block});
  ASSERT_FALSE(session_->hot().is_hot(block));
  session_->recall(std::vector{block});
  ASSERT_TRUE(session_->hot().is_hot(block));
  EXPECT_EQ(engine_->read_block(*session_, block), bytes);
}

TEST_P(Edits, what_the_cold_store_has_lost_is_computed) {
  resume(*session_, kBefore + "0123456789" + kBehind);
  ASSERT_TRUE(engine_->store()->flush().ok());
  const std::string edited = kBefore + "98" + kBehind;
  // Between the plan and the graft: a block that is hot would only be saved again.
  const Hash128 lost = session_->exact_name(BlockIndex(12));
  auto generation = *Generation::resume(*session_, engine_->vocabulary(), Prompt(tokens_of(edited)),
                                        {.sampling = {.temperature = 0.0F}, .max_tokens = 1}, kGraft);
  engine_->store()->drop(lost);
  Generation* const running = generation.get();
  while (!running->finished()) ASSERT_TRUE(engine_->step({&running, 1}).ok());
  EXPECT_EQ(running->turn_stats().from[Origin::kRecalledApproximate], 299 - kBlockSize);
  EXPECT_EQ(running->turn_stats().from[Origin::kNew], 2 + kBlockSize + 1);
}

// The model that comes with ebb, and a diary in which one day is told otherwise.
class FreshEdits : public EditedHistory, public ::testing::Test {
 protected:
  void SetUp() override { open(bundled_model(), RowType::kF16, false); }

  static std::string diary(std::string_view day) {
    std::string text = "The code of the red gate is " + std::string(day) + ". ";
    for (const char* const who : {"Anna", "Ben", "Carol", "David", "Emma", "Felix", "Grace", "Henry"}) {
      for (const char* const what : {"boat", "barn", "mill", "lamp"}) {
        text += fmt::format("The {} of {} is old. ", what, who);
      }
    }
    return text;
  }
};

TEST_F(FreshEdits, compute_little_and_know_afterwards_what_relies_on_what) {
  resume(*session_, diary("4711"), kFresh);
  const TurnStats stats = resume(*session_, diary("2068"), kFresh);
  const std::int32_t n_tokens = session_->end().value();
  EXPECT_GT(stats.from[Origin::kNew], kBlockSize) << "what stands right behind it";
  EXPECT_LT(stats.from[Origin::kNew], n_tokens * 2 / 3);
  EXPECT_GT(stats.from[Origin::kRecalledApproximate], n_tokens / 3);
  EXPECT_LT(resume(*session_, diary("935"), kFresh).from[Origin::kNew], n_tokens * 2 / 3) << "of what was taken, too";
}

TEST_F(FreshEdits, of_a_parked_session_are_as_cheap) {
  resume(*session_, diary("4711"), kFresh);
  session_->save_for_image();
  const Result<SessionImage> image = decode_image(encode_image(session_->image()));
  ASSERT_TRUE(image.ok()) << image.status().message();
  Result<std::unique_ptr<Session>> restored = engine_->restore_session(session_->options(), *image);
  ASSERT_TRUE(restored.ok()) << restored.status().message();
  const std::int32_t n_new = resume(*session_, diary("2068"), kFresh).from[Origin::kNew];
  EXPECT_EQ(resume(**restored, diary("2068"), kFresh).from[Origin::kNew], n_new);
}

TEST_F(FreshEdits, of_a_session_that_adopted_what_another_computed_are_as_cheap) {
  resume(*session_, diary("4711"), kFresh);
  const auto other = open_session(1024, true);
  EXPECT_GT(resume(*other, diary("4711"), kFresh).n_adopted, session_->end().value() / 2);
  // The end of what was said, less than a block, is copied without notes.
  const std::int32_t n_new = resume(*session_, diary("2068"), kFresh).from[Origin::kNew];
  EXPECT_LE(resume(*other, diary("2068"), kFresh).from[Origin::kNew], n_new + kBlockSize);
}

INSTANTIATE_TEST_SUITE_P(Attention, Edits, ::testing::Bool(),
                         [](const auto& test) { return std::string(test.param ? "composed" : "own"); });

}  // namespace
}  // namespace ebb::edit_test
