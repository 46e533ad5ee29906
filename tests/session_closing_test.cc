// Where survivors of an eviction close up by head: what lies where in which head, whatever comes and goes.
#include <gtest/gtest.h>

#include "model/key_rotation.h"
#include "policy/all.h"
#include "tests/sessions.h"

namespace ebb {
namespace {

class ClosingSessions : public Sessions {
 protected:
  static std::size_t n_heads(const Session& session) { return session.hot().shape().n_heads(); }

  static HeadSet one_head(const Session& session, std::size_t head) {
    HeadSet one(n_heads(session));
    one.add(head);
    return one;
  }

  static Position place(const Session& session, BlockIndex block, std::size_t head) {
    const std::span<const std::int32_t> advances = session.hot().advances(block);
    return session.anchor(block) + (advances.empty() ? 0 : advances[head]);
  }

  // The keys of each head lie one behind the other, the last right before what comes next.
  static void expect_closed_up(const Session& session) {
    for (std::size_t head = 0; head < n_heads(session); ++head) {
      Position next = session.hot().next_anchor();
      const std::vector<TableEntry>& entries = session.hot().tables().entries(head);
      for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
        next = next + -entry->n_tokens;
        EXPECT_EQ(place(session, session.hot().block_at(entry->begin), head), next)
            << "head " << head << ", position " << entry->begin.value();
      }
    }
  }

  // Blocks that are hot in some heads count by frames.
  void say_by_head(Session& session, std::string_view text) {
    const auto generation = start(session, text, {.max_tokens = 24});
    Generation* const running = generation.get();
    while (!generation->finished()) {
      ASSERT_TRUE(engine_->step({&running, 1}).ok());
      session.check_invariants();
      ASSERT_LE(session.hot().n_hot_frames(), session.budget().n_frames);
    }
    ASSERT_TRUE(generation->status().ok()) << generation->status().message();
  }

  std::vector<std::byte> frame(const Session& session, BlockIndex block, std::size_t head) {
    std::vector<std::byte> bytes(engine_->layout().frame_bytes());
    session.read_frames(block, one_head(session, head), bytes);
    return bytes;
  }
};

TEST_F(ClosingSessions, what_leaves_some_heads_leaves_no_gap_in_those_and_changes_nothing_in_others) {
  const auto session = open_session({.budget_tokens = 320, .removal = Removal::kCompact});
  say(*session, "quagga " + kLongText, {.max_tokens = 1});
  ASSERT_TRUE(engine_->store()->flush().ok());
  const BlockMover mover(engine_->model(), engine_->layout());
  std::vector<std::vector<std::vector<std::byte>>> before;
  for (std::int32_t b = 0; b + 1 < session->n_blocks(); ++b) {
    before.emplace_back();
    for (std::size_t head = 0; head < n_heads(*session); ++head) {
      before.back().push_back(frame(*session, BlockIndex(b), head));
    }
  }
  const std::size_t last_head = n_heads(*session) - 1;
  session->evict(std::vector{BlockIndex(2), BlockIndex(5)}, one_head(*session, 0));
  session->evict(std::vector{BlockIndex(4)}, one_head(*session, last_head));
  session->check_invariants();
  expect_closed_up(*session);
  EXPECT_EQ(session->hot().next_anchor(), session->end());

  const auto expect_turned = [&](std::int32_t b, std::size_t head, std::int32_t n_anchors) {
    std::vector<std::byte> wanted = before[static_cast<std::size_t>(b)][head];
    mover.move(wanted, one_head(*session, head), 16, n_anchors);
    EXPECT_EQ(frame(*session, BlockIndex(b), head), wanted) << "block " << b << ", head " << head;
  };
  expect_turned(1, 0, 32);
  expect_turned(3, 0, 16);
  expect_turned(6, 0, 0);
  expect_turned(3, last_head, 16);
  expect_turned(5, last_head, 0);
  expect_turned(1, 1, 0);

  // What comes back into the one head lies between its neighbours as far as they leave room, turned once from what was saved.
  session->recall(std::vector{BlockIndex(2)});
  expect_turned(2, 0, 16);
  session->check_invariants();
  say(*session, "and on", {.max_tokens = 20});
}

TEST_F(ClosingSessions, what_is_computed_beside_uneven_blocks_has_names_of_its_own) {
  std::vector<Hash128> names;
  for (const Removal removal : {Removal::kSparse, Removal::kCompact}) {
    const auto session = open_session({.budget_tokens = 320, .removal = removal, .adopts = false});
    say(*session, kLongText, {.max_tokens = 1});
    session->evict(std::vector{BlockIndex(2)}, one_head(*session, 1));
    EXPECT_EQ(session->hot().is_uneven(BlockIndex(1)), removal == Removal::kCompact);
    const BlockIndex next(session->n_blocks());
    say(*session, kLongText, {.max_tokens = 1});
    names.push_back(session->hot().exact_name(next));
    EXPECT_EQ(session->hot().info(next).is_exact, removal == Removal::kSparse);
  }
  EXPECT_NE(names[0], names[1]);
}

TEST_F(ClosingSessions, a_cut_into_an_uneven_block_lays_it_at_one_anchor_again) {
  const auto session = open_session({.budget_tokens = 320, .removal = Removal::kCompact});
  say(*session, "quagga " + kLongText, {.max_tokens = 1});
  session->evict(std::vector{BlockIndex(5)}, one_head(*session, 0));
  ASSERT_TRUE(session->hot().is_uneven(BlockIndex(3)));
  session->cut(Position(3 * 16 + 7));
  session->check_invariants();
  EXPECT_FALSE(session->hot().is_uneven(BlockIndex(3)));
  say(*session, kLongText, {.max_tokens = 4});
}

TEST_F(ClosingSessions, an_uneven_block_comes_back_from_what_was_saved_and_is_lost_where_nothing_was) {
  for (const Remains remains : {Remains::kBytes, Remains::kNothing}) {
    const auto session = open_session({.budget_tokens = 320, .remains = remains, .removal = Removal::kCompact});
    say(*session, (remains == Remains::kBytes ? "quagga " : "zebra ") + kLongText, {.max_tokens = 1});
    session->evict(std::vector{BlockIndex(5)}, one_head(*session, 0));
    ASSERT_TRUE(session->hot().is_uneven(BlockIndex(3)));
    session->evict(std::vector{BlockIndex(3)});
    EXPECT_FALSE(session->hot().is_uneven(BlockIndex(3)));
    EXPECT_EQ(session->state(BlockIndex(3)), remains == Remains::kBytes ? BlockState::kSaved : BlockState::kMissing);
    expect_closed_up(*session);
    session->recall(std::vector{BlockIndex(3)});
    EXPECT_EQ(session->hot().is_hot(BlockIndex(3)), remains == Remains::kBytes);
    session->check_invariants();
    say(*session, "and on", {.max_tokens = 4});
  }
}

// The scheme turns what stands behind each hole back in each layer; the next token stands at the number of cached ones.
TEST_F(ClosingSessions, under_areas_and_under_policies_by_head_every_table_is_closed_up_after_each_choice) {
  bool was_uneven = false;
  for (const char* const name : {"areas:start=16,recent=32", "layer_defensivekv", "snapkv:window=4"}) {
    Result<std::unique_ptr<Policy>> made = make_policy(name);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const std::shared_ptr<const Policy> policy = *std::move(made);
    for (const Remains remains : {Remains::kBytes, Remains::kNothing}) {
      const auto session =
          open_session({.budget_tokens = 128, .policy = policy, .remains = remains, .removal = Removal::kCompact});
      for (int turn = 0; turn < 3; ++turn) {
        say_by_head(*session, kLongText.substr(0, 90) + "quick brown fox");
        expect_closed_up(*session);
        for (const BlockIndex block : session->hot().hot_blocks()) was_uneven |= session->hot().is_uneven(block);
      }
    }
  }
  EXPECT_TRUE(was_uneven);
}

}  // namespace
}  // namespace ebb
