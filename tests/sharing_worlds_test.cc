// Random sessions that share, move, cut, fork and die in any order, each in lock step with a twin that computes everything in
// frames of its own. After every operation:
//
//   bytes    what is hot holds the bytes that its exact name had when it was first computed
//   logits   where everything before a token is visible, and is what the twin has, its logits are bitwise the twin's
//   frames   the pool has as many in use as there are different ones in the sessions' tables
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "tests/sharing.h"

namespace ebb {
namespace {

struct Actor {
  std::unique_ptr<Session> session;
  std::unique_ptr<Session> twin;
  std::int32_t variant = 0;
  bool moves = false;
};

class SharingWorlds : public Sharing {
 protected:
  static constexpr int kOperations = 4000;
  static constexpr std::int32_t kLockStepBlocks = kBudgetBlocks - 1;  // a session this long can be hot as a whole

  void SetUp() override {
    Sharing::SetUp();
    // Two budgets for three sessions: the pool is what is short now and then.
    open(2 * kBudgetBlocks);
    twins_ = open_sessions(60);
    for (Actor& actor : actors_) revive(actor);
  }

  void revive(Actor& actor) {
    actor.session.reset();
    actor.twin.reset();
    actor.moves = draw(4) == 0;
    actor.variant = static_cast<std::int32_t>(draw(3));
    actor.session = make_session({.recall_place = actor.moves ? RecallPlace::kCompacted : RecallPlace::kOriginal});
    actor.twin = std::make_unique<Session>(
        twins_->deps(nullptr),
        SessionOptions{.budget_tokens = kBudgetBlocks * kBlockSize, .recent_tokens = kBlockSize, .adopts = false});
  }

  [[nodiscard]] static bool in_lock_step(const Actor& actor) {
    if (actor.moves || actor.session->end() != actor.twin->end()) return false;
    for (std::int32_t b = 0; b < actor.session->n_blocks(); ++b) {
      const BlockIndex block(b);
      if (!actor.session->hot().is_hot(block)) return false;
      if (actor.session->exact_name(block) != actor.twin->exact_name(block)) return false;
    }
    return true;
  }

  void say_more(Actor& actor) {
    const auto n = static_cast<std::int32_t>(1 + draw(3 * kBlockSize));
    const bool with_twin =
        actor.session->end() == actor.twin->end() && actor.twin->end().value() + n <= kLockStepBlocks * kBlockSize;
    if (!with_twin && actor.session->end().value() > 2 * kBudgetBlocks * kBlockSize) return;
    const bool comparable = with_twin && in_lock_step(actor);
    const Position begin = actor.session->end();
    const auto ours = say(*actor.session, n, actor.variant);
    n_shared_blocks_ += last_.acts.shared.size();
    if (!ours) return void(actor.session->cut(begin));
    if (!with_twin) return;
    Turn same(*actor.twin, Prompt(script(actor.twin->end().value(), n, actor.variant)));
    std::optional<std::vector<float>> theirs;
    while (same.n_pending() > 0) {
      theirs = twins_->step(same);
      ASSERT_TRUE(theirs.has_value());
    }
    same.settle();
    if (!comparable || !in_lock_step(actor)) return;
    ASSERT_EQ(std::memcmp(ours->data(), theirs->data(), ours->size() * sizeof(float)), 0) << "logits differ";
    ++n_compared_logits_;
  }

  [[nodiscard]] std::vector<BlockIndex> some_blocks(const Session& session, std::uint64_t one_in) {
    std::vector<BlockIndex> blocks;
    for (std::int32_t b = 0; b < session.n_blocks(); ++b) {
      if (draw(one_in) == 0) blocks.emplace_back(b);
    }
    return blocks;
  }

  void cut_both(Actor& actor) {
    const auto n = std::min(actor.session->end(), actor.twin->end()).index() + 1;
    const Position end(static_cast<std::int32_t>(draw(n)));
    actor.session->cut(end);
    actor.twin->cut(end);
    actor.variant = static_cast<std::int32_t>(draw(3));
  }

  void fork(Actor& actor) {
    (void)actor.session->save();
    const SessionImage image = actor.session->image();
    const SessionOptions options = actor.session->options();
    std::unique_ptr<Session> child = *Session::restore(sessions_->sharing_deps(store_.get()), options, image);
    n_shared_blocks_ += child->refill(1).shared.size();
    child->check_invariants();
    // The parent dies behind its child.
    actor.session = std::move(child);
  }

  void random_operation(Actor& actor) {
    switch (draw(16)) {
      case 0:
      case 1: actor.session->evict(some_blocks(*actor.session, 3)); return;
      case 2:
      case 3:
      case 4: {
        recall(*actor.session, some_blocks(*actor.session, 2));
        n_shared_blocks_ += last_.acts.shared.size();
        return;
      }
      case 5:
      case 6: return cut_both(actor);
      case 7: return fork(actor);
      case 8: {
        if (draw(3) == 0) revive(actor);
        return;
      }
      case 9: {
        if (actor.session->n_blocks() > 0) store_->drop(actor.session->exact_name(BlockIndex(0)));
        return;
      }
      default: return say_more(actor);
    }
  }

  void check_bytes(const Session& session) {
    for (std::int32_t b = 0; b < session.n_blocks(); ++b) {
      const BlockIndex block(b);
      const Span span = session.hot().span(block);
      // What was turned away from the anchor that its name means has other bytes.
      if (!session.hot().is_hot(block) || span.n_tokens() < kBlockSize || session.anchor(block) != span.begin) {
        continue;
      }
      const auto [known, is_new] = bytes_by_name_.try_emplace(session.exact_name(block), bytes_of(session, b));
      if (!is_new) {
        ASSERT_EQ(bytes_of(session, b), known->second) << "block " << b;
      }
    }
  }

  void check_all() {
    std::set<FrameIndex> in_use;
    for (const Actor& actor : actors_) {
      actor.session->check_invariants();
      check_bytes(*actor.session);
      check_bytes(*actor.twin);
      const FrameTables& tables = actor.session->hot().tables();
      for (std::size_t head = 0; head < tables.n_heads(); ++head) {
        for (const TableEntry& entry : tables.entries(head)) in_use.insert(entry.frame);
      }
    }
    pool().check_invariants();
    ASSERT_EQ(static_cast<std::size_t>(pool().n_hot()), in_use.size());
  }

  std::uint64_t draw(std::uint64_t n) { return random_() % n; }

  std::mt19937_64 random_{91};
  std::unique_ptr<SoloSessions> twins_;
  std::array<Actor, 3> actors_;
  std::map<Hash128, std::vector<std::byte>> bytes_by_name_;
  std::int64_t n_compared_logits_ = 0;
  std::size_t n_shared_blocks_ = 0;
};

TEST_P(SharingWorlds, random_sessions_that_share_keep_every_byte_and_every_bit_of_the_logits) {
  for (int i = 0; i < kOperations; ++i) {
    random_operation(actors_[draw(actors_.size())]);
    check_all();
    if (HasFatalFailure()) FAIL() << "operation " << i;
  }
  EXPECT_GT(n_shared_blocks_, 500U);
  EXPECT_GT(n_compared_logits_, 100);
  for (Actor& actor : actors_) actor = Actor();
  EXPECT_EQ(pool().n_hot(), 0);
  EXPECT_EQ(sessions_->hot().size(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Forms, SharingWorlds, all_forms(), form_name);

}  // namespace
}  // namespace ebb
