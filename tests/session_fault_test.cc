// Sessions over a disk that is slow, or is not the one that its index knows, at moments that the test chooses. Random
// moments are reversibility_test.cc's affair.
#include <thread>

#include <gtest/gtest.h>

#include "model/random_model.h"
#include "session/image.h"
#include "store/fault_file_system.h"
#include "tests/files.h"
#include "tests/gate.h"
#include "tests/solo_sessions.h"

namespace ebb::session_fault_test {
namespace {

constexpr std::int32_t kBlockSize = 8;
constexpr std::int32_t kBlocks = 8;  // of the session that the tests evict
const SessionOptions kOptions = {.budget_tokens = 2 * kBlocks * kBlockSize, .recent_tokens = kBlockSize};

class SessionFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    const RandomModelSpec model = {
        .n_layers = 2, .n_embd = 32, .n_heads = 2, .n_kv_heads = 1, .head_dim = 32, .n_ff = 32, .n_vocab = 272};
    ASSERT_TRUE(write_random_model(model, file_.path()).ok());
    sessions_ = *SoloSessions::open(file_.path(), {.n_threads = 1, .kv_type = RowType::kF16, .block_size = kBlockSize},
                                    "recency");
    twin_ = std::make_unique<Session>(sessions_->deps(nullptr), kOptions);
    open_store();
    session_ = std::make_unique<Session>(sessions_->deps(store_.get()), kOptions);
  }

  void TearDown() override { gate_.open(); }

  void open_store(std::size_t ram_bytes = 0, std::size_t queue_bytes = 1 << 20) {
    store_ = *ColdStore::open({.ram_bytes = ram_bytes,
                               .disk = DiskOptions{.folder = "cold", .max_bytes = 1 << 22},
                               .queue_bytes = queue_bytes,
                               .system = &disk_});
  }

  // Another process goes on with the session, over the files that `disk_` has by then.
  template <class Meanwhile>
  void restart(std::size_t ram_bytes, const Meanwhile& meanwhile) {
    const std::vector<std::byte> image = encode_image(session_->image());
    session_.reset();
    store_.reset();
    meanwhile();
    open_store(ram_bytes);
    session_ = *Session::restore(sessions_->deps(store_.get()), kOptions, *decode_image(image));
  }

  static Token token(std::int32_t i) { return Token(i * 7 % 272); }

  std::vector<float> say(Session& session, std::int32_t i) {
    Turn turn(session, Prompt({token(i)}));
    std::optional<std::vector<float>> logits;
    while (turn.n_pending() > 0) logits = sessions_->step(turn);
    turn.settle();
    return logits.value_or(std::vector<float>());
  }

  // In the session and in its twin.
  void say_blocks(std::int32_t n_blocks) {
    for (std::int32_t i = 0; i < n_blocks * kBlockSize; ++i) {
      const std::int32_t t = session_->end().value();
      (void)say(*session_, t);
      (void)say(*twin_, t);
    }
  }

  void evict_all() { ASSERT_EQ(std::ssize(session_->evict(all_blocks()).evicted), kBlocks); }

  // All of them at once; what is lost is computed again.
  Acts recall_all() { return sessions_->recall(*session_, all_blocks()); }

  static std::vector<BlockIndex> all_blocks() {
    std::vector<BlockIndex> blocks;
    for (std::int32_t b = 0; b < kBlocks; ++b) blocks.emplace_back(b);
    return blocks;
  }

  void expect_as_the_twin() {
    for (const BlockIndex block : all_blocks()) {
      ASSERT_TRUE(session_->hot().is_hot(block));
      EXPECT_EQ(session_->exact_name(block), twin_->exact_name(block)) << "block " << block.value();
      EXPECT_EQ(sessions_->bytes_of(*session_, block), sessions_->bytes_of(*twin_, block)) << "block " << block.value();
    }
    EXPECT_EQ(say(*session_, 1), say(*twin_, 1));
  }

  TemporaryFile file_{".gguf"};
  FaultFileSystem disk_;
  Gate gate_;
  std::unique_ptr<SoloSessions> sessions_;
  std::unique_ptr<ColdStore> store_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Session> twin_;
};

TEST_F(SessionFaults, while_the_disk_stands_still_blocks_leave_and_come_back) {
  disk_.before_append([&] { gate_.pass(); });
  gate_.close();
  say_blocks(kBlocks);
  gate_.wait_for_one();
  evict_all();
  EXPECT_EQ(std::ssize(recall_all().recalled), kBlocks);
  expect_as_the_twin();
  EXPECT_EQ(store_->stats().tier("disk").n_puts, 0) << "they came from what waits to be written";

  gate_.open();
  EXPECT_TRUE(store_->flush().ok());
  EXPECT_EQ(store_->stats().tier("disk").n_puts, kBlocks);
}

TEST_F(SessionFaults, a_disk_that_falls_behind_holds_the_session_up_and_changes_nothing) {
  session_.reset();
  store_.reset();
  constexpr std::size_t kQueueBytes = 6 << 10;  // two records
  open_store(0, kQueueBytes);
  session_ = std::make_unique<Session>(sessions_->deps(store_.get()), kOptions);
  std::size_t most_queued_bytes = 0;
  disk_.before_append([&] {
    gate_.pass();
    most_queued_bytes = std::max(most_queued_bytes, store_->stats().queued_bytes);
  });
  gate_.close();
  {
    // It stands at the first write; by then the session may wait already, or not yet.
    const std::jthread opener([&] {
      gate_.wait_for_one();
      gate_.open();
    });
    say_blocks(kBlocks);
    evict_all();
  }
  EXPECT_TRUE(store_->flush().ok());
  EXPECT_GT(most_queued_bytes, 0U);
  EXPECT_LE(most_queued_bytes, 2 * kQueueBytes) << "to be copied, and to be written";
  EXPECT_EQ(std::ssize(recall_all().recalled), kBlocks);
  expect_as_the_twin();
}

TEST_F(SessionFaults, what_is_fetched_slowly_is_what_was_saved) {
  say_blocks(kBlocks);
  evict_all();
  ASSERT_TRUE(store_->flush().ok());
  restart(1 << 20, [] {});
  disk_.before_read([&] { gate_.pass(); });
  gate_.close();
  std::vector<RecordRequest> requests;
  const SessionDeps deps = sessions_->deps(store_.get());
  for (const BlockIndex block : all_blocks()) {
    const RecordKey key = {
        .model = deps.model, .layout = deps.memory.layout().fingerprint(), .name = session_->exact_name(block)};
    requests.push_back({.key = key, .frames = {}});
  }
  const auto fetch = store_->fetch(std::move(requests));
  gate_.wait_for_one();
  // The session goes on without them, and takes that back.
  for (std::int32_t i = 0; i < kBlockSize; ++i) EXPECT_FALSE(say(*session_, i).empty());
  session_->cut(Position(kBlocks * kBlockSize));
  gate_.open();
  for (const Result<RecordHandle>& record : fetch->take()) EXPECT_TRUE(record.ok());
  EXPECT_EQ(std::ssize(recall_all().recalled), kBlocks);
  expect_as_the_twin();
}

// The first eight tell how fast they come.
TEST_F(SessionFaults, what_a_turn_has_no_time_to_wait_for_stays_away_and_is_counted) {
  session_ = std::make_unique<Session>(sessions_->deps(store_.get()),
                                       SessionOptions{.budget_tokens = 4 * kBlocks * kBlockSize});
  constexpr std::int32_t kAsked = kBlocks + 4;
  say_blocks(kAsked);
  std::vector<BlockIndex> wanted;
  for (std::int32_t b = kAsked; b-- > 0;) wanted.emplace_back(b);
  ASSERT_EQ(std::ssize(session_->evict(wanted).evicted), kAsked);
  const auto ask = [&](double most_ms) {
    Turn turn(*session_, Prompt({token(1)}));
    turn.recall(RecallAsk{.most_ms = most_ms, .selectors = {}});
    turn.recall(wanted);
    while (turn.n_pending() > 0) (void)sessions_->step(turn);
    return turn.settle().n_late;
  };
  EXPECT_EQ(ask(1e-9), 4);
  for (const BlockIndex block : wanted) {
    EXPECT_EQ(session_->hot().is_hot(block), block.value() >= 4) << "the most wanted came";
  }
  EXPECT_EQ(ask(0.0), 0);
  for (const BlockIndex block : wanted) EXPECT_TRUE(session_->hot().is_hot(block));
}

TEST_F(SessionFaults, what_came_from_the_disk_comes_from_memory_the_next_time) {
  say_blocks(kBlocks);
  evict_all();
  ASSERT_TRUE(store_->flush().ok());
  restart(1 << 20, [] {});
  EXPECT_EQ(std::ssize(recall_all().recalled), kBlocks);
  EXPECT_EQ(store_->stats().tier("ram").n_records, kBlocks) << "read whole, they are kept nearer";
  const std::int64_t n_read = store_->stats().tier("disk").n_hits;
  EXPECT_GE(n_read, kBlocks);
  evict_all();
  EXPECT_EQ(std::ssize(recall_all().recalled), kBlocks);
  EXPECT_EQ(store_->stats().tier("disk").n_hits, n_read);
  expect_as_the_twin();
}

TEST_F(SessionFaults, an_older_copy_of_the_folder_costs_what_it_lacks) {
  say_blocks(kBlocks / 2);
  ASSERT_TRUE(store_->flush().ok());
  const auto old_copy = disk_.copy();
  say_blocks(kBlocks / 2);
  evict_all();
  ASSERT_TRUE(store_->flush().ok());
  restart(0, [&] { disk_.put_back(old_copy); });
  const Acts acts = recall_all();
  EXPECT_EQ(std::ssize(acts.recalled), kBlocks / 2);
  EXPECT_EQ(std::ssize(acts.recomputed), kBlocks / 2);
  expect_as_the_twin();
}

TEST_F(SessionFaults, a_lost_open_block_is_computed_again_once_and_behind_the_lost_ones_that_it_saw) {
  say_blocks(kBlocks);
  for (std::int32_t i = 0; i < 3; ++i) (void)say(*session_, session_->end().value());
  evict_all();
  restart(0, [&] { disk_.put_back({}); });
  const std::vector<BlockIndex> blocks = {BlockIndex(2), BlockIndex(5), BlockIndex(kBlocks)};
  Turn turn(*session_, Prompt({token(1)}));
  turn.recall(blocks);
  while (turn.n_pending() > 0) ASSERT_TRUE(sessions_->step(turn).has_value());
  EXPECT_EQ(turn.settle().acts.recomputed, (std::vector{BlockIndex(2), BlockIndex(5), BlockIndex(kBlocks)}));
}

// The index of the store that runs has places where another conversation's records lie, whole and sound.
TEST_F(SessionFaults, files_of_another_run_under_a_running_store_are_refused) {
  for (std::int32_t i = 0; i < kBlocks * kBlockSize; ++i) (void)say(*session_, i + 1);
  ASSERT_TRUE(store_->flush().ok());
  session_.reset();
  store_.reset();
  const auto other_run = disk_.copy();
  disk_.put_back({});

  open_store();
  session_ = std::make_unique<Session>(sessions_->deps(store_.get()), kOptions);
  say_blocks(kBlocks);
  evict_all();
  ASSERT_TRUE(store_->flush().ok());
  ASSERT_EQ(disk_.copy().size(), other_run.size());
  disk_.put_back(other_run);
  const Acts acts = recall_all();
  EXPECT_TRUE(acts.recalled.empty());
  EXPECT_EQ(std::ssize(acts.recomputed), kBlocks);
  EXPECT_EQ(store_->stats().tier("disk").n_refused, kBlocks);
  expect_as_the_twin();
}

}  // namespace
}  // namespace ebb::session_fault_test
