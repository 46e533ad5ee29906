// Law 2 where bits are not the same: sessions that compute the same in steps of any number of rows, alone and beside one
// another, share what they computed, lose it and compute it again under names that are saved. Matrix products round otherwise
// with other rows in a step, so that what has one name must be told apart by its bytes. After every operation:
//
//   bytes    whatever a name is seen to hold, in any session, at any time, it holds always
//   saved    what the cold store keeps under a name is what every session that has the name hot has
#include <array>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "model/random_model.h"
#include "tests/files.h"
#include "tests/solo_sessions.h"

namespace ebb::company_test {
namespace {

constexpr std::int32_t kBlockSize = 8;
constexpr std::int32_t kBudgetBlocks = 10;
constexpr std::int32_t kMostTokens = 3 * kBudgetBlocks * kBlockSize;
constexpr int kOperations = 1200;

struct World {
  std::string name;
  ggml_type weights = GGML_TYPE_F32;
  RowType kv_type = RowType::kF16;
  bool slides = false;
  bool composed = false;

  friend void PrintTo(const World& world, std::ostream* out) { *out << world.name; }
};

class Companies : public ::testing::TestWithParam<World> {
 protected:
  void SetUp() override {
    const World& world = GetParam();
    // Wide enough for the blocks of every weight type.
    RandomModelSpec spec = {.n_layers = 2,
                            .n_embd = 256,
                            .n_heads = 2,
                            .n_kv_heads = 2,
                            .head_dim = 32,
                            .n_ff = 256,
                            .n_vocab = 272,
                            .weight_type = world.weights};
    if (world.slides) {
      spec.architecture = "gemma3";
      spec.tied = true;
      spec.sliding_window = 20;
      spec.sliding_period = 2;
    }
    n_vocab_ = static_cast<std::uint64_t>(spec.n_vocab);
    ASSERT_TRUE(write_random_model(spec, file_.path()).ok());
    const SoloOptions options = {.n_threads = 1,
                                 .kv_type = world.kv_type,
                                 .block_size = kBlockSize,
                                 .n_ctx = 4 * kBudgetBlocks * kBlockSize,
                                 .composed = world.composed};
    sessions_ = *SoloSessions::open(file_.path(), options, "recency");
    // As much as all of it: what is lost is lost because the test says so.
    store_ = *ColdStore::open({.ram_bytes = std::size_t{256} << 20});
    for (std::unique_ptr<Session>& actor : actors_) revive(actor);
  }

  void revive(std::unique_ptr<Session>& actor) {
    // Frames of devices are saved when they leave, and a name may mean other bytes once nobody has the first any more.
    if (actor != nullptr) {
      ASSERT_TRUE(actor->save().ok());
    }
    actor.reset();
    const bool shares = GetParam().composed || draw(4) != 0;
    const SessionDeps deps = shares ? sessions_->sharing_deps(store_.get()) : sessions_->deps(store_.get());
    actor = std::make_unique<Session>(
        deps, SessionOptions{.budget_tokens = kBudgetBlocks * kBlockSize, .recent_tokens = kBlockSize});
  }

  // Few stories, so that names are met again; they part at different places.
  std::vector<Token> more_of(const Session& session, std::int32_t n_tokens) {
    const std::uint64_t story = draw(2);
    std::vector<Token> tokens;
    for (std::int32_t p = session.end().value(); p < session.end().value() + n_tokens; ++p) {
      const auto at = static_cast<std::uint64_t>(p);
      tokens.emplace_back(static_cast<std::int32_t>((at * 37 + (at / 50) * story * 31) % n_vocab_));
    }
    return tokens;
  }

  // One or two of them at once, in the same steps.
  void say() {
    std::vector<Session*> who = {actors_[draw(actors_.size())].get()};
    if (Session* other = actors_[draw(actors_.size())].get(); other != who.front()) who.push_back(other);
    std::vector<std::unique_ptr<Turn>> turns;
    for (Session* session : who) {
      if (session->end().value() > kMostTokens) session->cut(Position(static_cast<std::int32_t>(draw(60))));
      turns.push_back(std::make_unique<Turn>(
          *session, Prompt(more_of(*session, static_cast<std::int32_t>(1 + draw(5 * kBlockSize))))));
      if (draw(3) == 0) turns.back()->recall(some_blocks(*session, 3));
    }
    while (true) {
      std::vector<Turn*> going;
      for (const auto& turn : turns) {
        if (turn->n_pending() > 0) going.push_back(turn.get());
      }
      if (going.empty()) break;
      if (going.size() == 2 && draw(4) == 0) going.erase(going.begin() + static_cast<std::ptrdiff_t>(draw(2)));
      ASSERT_TRUE(sessions_->step(going, n_rows()));
      ++n_steps_;
    }
    for (const auto& turn : turns) n_adopted_blocks_ += std::ssize(turn->settle().acts.adopted);
  }

  // Small steps, middling and all at once.
  std::int32_t n_rows() { return std::array<std::int32_t, 6>{1, 2, 3, 7, 13, 64}[draw(6)]; }

  std::vector<BlockIndex> some_blocks(const Session& session, std::uint64_t one_in) {
    std::vector<BlockIndex> blocks;
    for (std::int32_t b = 0; b < session.n_blocks(); ++b) {
      if (draw(one_in) == 0) blocks.emplace_back(b);
    }
    return blocks;
  }

  void evict(Session& session) {
    HeadSet heads(session.shape().n_heads());
    for (std::size_t head = 0; head < heads.n_heads(); ++head) {
      if (draw(2) == 0) heads.add(head);
    }
    session.evict(some_blocks(session, 3), draw(2) == 0 ? heads : session.shape().all_heads());
  }

  // Under names that stay saved or known, since others have them or have computed behind them.
  void compute_again(Session& session) {
    std::vector<BlockIndex> lost = some_blocks(session, 3);
    if (lost.size() > kBudgetBlocks / 2) lost.resize(kBudgetBlocks / 2);
    session.evict(lost);
    Acts acts;
    Recompute again(session);
    again.add(lost);
    while (const std::optional<SequenceInput> input = again.begin_step(n_rows(), acts)) {
      ASSERT_TRUE(sessions_->solo().runner().run({&*input, 1}).ok());
      again.end_step(acts);
    }
    session.settle_anchors(acts);
    n_recomputed_blocks_ += std::ssize(acts.recomputed);
  }

  void fork(std::unique_ptr<Session>& actor) {
    ASSERT_TRUE(actor->save().ok());
    const SessionImage image = actor->image();
    const SessionOptions options = actor->options();
    actor = *Session::restore(sessions_->sharing_deps(store_.get()), options, image);
    actor->refill(2);
  }

  void operate() {
    std::unique_ptr<Session>& actor = actors_[draw(actors_.size())];
    switch (draw(12)) {
      case 0:
      case 1: return evict(*actor);
      case 2: sessions_->recall(*actor, some_blocks(*actor, 2), n_rows()); return;
      case 3:
      case 4: return compute_again(*actor);
      case 5: actor->cut(Position(static_cast<std::int32_t>(draw(actor->end().index() + 1)))); return;
      case 6: return draw(3) == 0 ? revive(actor) : fork(actor);
      default: return say();
    }
  }

  void check(const Session& session) {
    session.check_invariants();
    for (const BlockIndex block : session.hot().hot_blocks()) {
      if (!session.hot().is_full(block)) continue;
      const Hash128 name = session.exact_name(block);
      const Hash128& body = session.hot().info(block).body;
      const auto [known, is_new] = body_of_.emplace(name, body);
      ASSERT_EQ(known->second, body) << "block " << block.value() << " has a name that means other bytes";
      if (const std::optional<Hash128> kept = store_->find(name)) {
        ASSERT_EQ(*kept, body) << "block " << block.value() << " is saved as other bytes";
      }
      std::vector<std::optional<Hash128>>& frames = frames_of_[name];
      frames.resize(session.shape().n_heads());
      std::vector<std::byte> bytes(session.block_bytes(block) / frames.size());
      session.hot().hot_heads(block).for_each([&](std::size_t head) {
        HeadSet one(frames.size());
        one.add(head);
        session.read_frames(block, one, bytes);
        const Hash128 hash = hash_bytes(bytes);
        ASSERT_EQ(hash, frames[head].value_or(hash)) << "block " << block.value() << " in head " << head;
        n_compared_frames_ += frames[head].has_value() ? 1 : 0;
        frames[head] = hash;
      });
    }
  }

  std::uint64_t draw(std::uint64_t n) { return random_() % n; }

  TemporaryFile file_{".gguf"};
  std::mt19937_64 random_{37};
  std::uint64_t n_vocab_ = 0;
  std::unique_ptr<SoloSessions> sessions_;
  std::unique_ptr<ColdStore> store_;
  std::array<std::unique_ptr<Session>, 3> actors_;
  std::map<Hash128, Hash128> body_of_;
  std::map<Hash128, std::vector<std::optional<Hash128>>> frames_of_;
  std::int64_t n_steps_ = 0;
  std::int64_t n_compared_frames_ = 0;
  std::int64_t n_adopted_blocks_ = 0;
  std::int64_t n_recomputed_blocks_ = 0;
};

TEST_P(Companies, of_any_size_and_number_leave_every_name_its_bytes) {
  for (int i = 0; i < kOperations && !HasFatalFailure(); ++i) {
    operate();
    for (const auto& actor : actors_) {
      if (!HasFatalFailure()) check(*actor);
    }
    if (HasFatalFailure()) FAIL() << "operation " << i;
    sessions_->solo().pool().check_invariants();
  }
  store_->check_invariants();
  EXPECT_EQ(store_->stats().n_changed, 0);
  RecordProperty("steps", std::to_string(n_steps_));
  RecordProperty("frames_compared", std::to_string(n_compared_frames_));
  RecordProperty("blocks_recomputed", std::to_string(n_recomputed_blocks_));
  EXPECT_GT(n_compared_frames_, kOperations);
  EXPECT_GT(n_adopted_blocks_, kOperations / 10);
  EXPECT_GT(n_recomputed_blocks_, kOperations / 10);
}

std::vector<World> worlds() {
  return {
      {.name = "f32_f16", .weights = GGML_TYPE_F32, .kv_type = RowType::kF16},
      {.name = "f16_f16", .weights = GGML_TYPE_F16, .kv_type = RowType::kF16},
      {.name = "f16_f32_slides", .weights = GGML_TYPE_F16, .kv_type = RowType::kF32, .slides = true},
      {.name = "q8_0_f16", .weights = GGML_TYPE_Q8_0, .kv_type = RowType::kF16},
      {.name = "q8_0_q8_0", .weights = GGML_TYPE_Q8_0, .kv_type = RowType::kQ8_0},
      {.name = "q4_k_f16_slides", .weights = GGML_TYPE_Q4_K, .kv_type = RowType::kF16, .slides = true},
      {.name = "q4_k_kivi4", .weights = GGML_TYPE_Q4_K, .kv_type = RowType::kKivi4},
      {.name = "q4_k_f16_by_row", .weights = GGML_TYPE_Q4_K, .kv_type = RowType::kF16, .composed = true},
  };
}

INSTANTIATE_TEST_SUITE_P(Worlds, Companies, ::testing::ValuesIn(worlds()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace ebb::company_test
