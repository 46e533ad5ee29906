// Reversibility: random sessions in lock step with a twin that never evicts.
//
// One world per policy, KV type and kind of cold store. Each plays thousands of operations drawn from a seed: say, evict
// any blocks, recall any subset, pin, cut (an edit), fork, restart, with faults in the disk under it. Every step computes
// one row, so that what is computed again has the bits that it had. Two things must hold after every operation:
//
//   bytes    what is hot holds the bytes that its exact name had when it was first computed, whoever computed it
//   logits   where everything before a token is visible, and by its exact names is what the twin has, its logits are
//            bitwise the twin's
#include <array>
#include <cstring>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "model/random_model.h"
#include "session/image.h"
#include "store/fault_file_system.h"
#include "tests/files.h"
#include "tests/gate.h"
#include "tests/solo_sessions.h"

namespace ebb {
namespace {

constexpr std::int32_t kBlockSize = 8;
constexpr std::int32_t kBudgetBlocks = 10;
constexpr std::int32_t kLockStepBlocks = kBudgetBlocks - 1;  // a session this long can be hot as a whole
constexpr std::int32_t kOperations = 10000;                  // of each world; 75 worlds make 750 000

enum class StoreKind : std::uint8_t { kRam, kSickDisk, kRamAndSickDisk };

struct World {
  std::string policy;
  RowType kv_type = RowType::kF32;
  StoreKind store = StoreKind::kRam;

  friend void PrintTo(const World& w, std::ostream* out) { *out << w.policy; }
};

const RandomModelSpec kModel = {
    .n_layers = 2, .n_embd = 32, .n_heads = 2, .n_kv_heads = 1, .head_dim = 32, .n_ff = 32, .n_vocab = 272};

class Reversibility : public ::testing::TestWithParam<World> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_random_model(kModel, file_.path()).ok());
    random_.seed(std::hash<std::string>()(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    const SoloOptions options = {.n_threads = 1, .kv_type = GetParam().kv_type, .block_size = kBlockSize};
    sessions_ = *SoloSessions::open(file_.path(), options, GetParam().policy);
    disk_.before_append([&] { disk_gate_.pass(); });
    open_store();
    session_ = std::make_unique<Session>(sessions_->parts(store_.get()), session_options());
    twin_ = std::make_unique<Session>(sessions_->parts(nullptr), session_options());
  }

  // The store's thread writes what it was given before it ends.
  void TearDown() override { disk_gate_.open(); }

  void open_store() {
    const StoreKind kind = GetParam().store;
    ColdStoreOptions options{.ram_bytes = kind == StoreKind::kSickDisk ? 0 : std::size_t{1} << 18, .system = &disk_};
    if (kind != StoreKind::kRam) options.disk = DiskOptions{.folder = "cold", .max_bytes = 1 << 22};
    // The folder may be refused by the sick disk too; it is asked until it is not.
    Result<std::unique_ptr<ColdStore>> store = ColdStore::open(options);
    while (!store.ok()) store = ColdStore::open(options);
    store_ = *std::move(store);
  }

  // Two in three worlds evict only what they must, one down to a low mark.
  static SessionOptions session_options() {
    const bool hard = GetParam().store != StoreKind::kRamAndSickDisk;
    return {.budget_tokens = kBudgetBlocks * kBlockSize,
            .watermarks = hard ? Watermarks() : Watermarks{.high = 0.95, .low = 0.6},
            .recent_tokens = kBlockSize};
  }

  // --- what must hold ---

  void check_bytes(const Session& session) {
    for (std::int32_t b = 0; b < session.n_blocks(); ++b) {
      const BlockIndex block(b);
      const bool is_full = session.residency().span(block).n_tokens() == kBlockSize;
      if (!session.residency().is_hot(block) || !is_full) continue;
      const auto [known, is_new] =
          bytes_by_name_.try_emplace(session.exact_name(block), sessions_->bytes_of(session, block));
      if (!is_new) {
        ASSERT_EQ(sessions_->bytes_of(session, block), known->second) << "block " << b;
        ++n_compared_blocks_;
      }
    }
  }

  [[nodiscard]] bool in_lock_step() const {
    if (session_->end() != twin_->end()) return false;
    for (std::int32_t b = 0; b < session_->n_blocks(); ++b) {
      const BlockIndex block(b);
      if (!session_->residency().is_hot(block) || session_->exact_name(block) != twin_->exact_name(block)) return false;
    }
    return true;
  }

  // --- operations ---

  std::optional<std::vector<float>> step(Turn& turn) {
    std::optional<std::vector<float>> logits = sessions_->step(turn);
    if (logits) ++n_operations_;
    return logits;
  }

  // Tokens one by one, in both as long as the twin has room: with holes too, whose K and V must then have other names. A
  // full session stops.
  void say(std::int32_t n_tokens) {
    for (std::int32_t i = 0; i < n_tokens; ++i) {
      const std::vector<Token> token = {Token(static_cast<std::int32_t>(draw(kModel.n_vocab)))};
      const bool with_twin = session_->end() == twin_->end() && twin_->end().value() < kLockStepBlocks * kBlockSize;
      const bool same_logits = with_twin && in_lock_step();
      Turn turn(*session_, token);
      std::optional<std::vector<float>> ours;
      while (turn.n_pending() > 0) {
        ours = step(turn);
        if (!ours) break;
      }
      if (!ours) {
        // Refused for want of room: nothing was computed, and the word is taken back.
        turn.cut(session_->end());
        turn.settle();
        return;
      }
      turn.settle();
      if (!with_twin) continue;
      Turn same(*twin_, token);
      std::optional<std::vector<float>> theirs;
      // More than one where a cut left it a piece of a sealed block to compute again.
      while (same.n_pending() > 0) {
        theirs = step(same);
        ASSERT_TRUE(theirs.has_value());
      }
      same.settle();
      if (!same_logits) continue;
      ASSERT_EQ(std::memcmp(ours->data(), theirs->data(), ours->size() * sizeof(float)), 0) << "logits differ";
      ++n_compared_logits_;
    }
  }

  void evict_some() {
    std::vector<BlockIndex> blocks;
    for (std::int32_t b = 0; b < session_->n_blocks(); ++b) {
      if (draw(3) == 0) blocks.emplace_back(b);
    }
    Turn turn(*session_, std::span<const Token>());
    turn.evict(blocks);
    n_operations_ += std::ssize(turn.settle().evicted) + 1;
  }

  // Recalls each block with the chance of one in `n`; what is lost is computed again.
  void recall_some(std::uint64_t n) {
    std::vector<BlockIndex> blocks;
    for (std::int32_t b = 0; b < session_->n_blocks(); ++b) {
      if (draw(n) == 0) blocks.emplace_back(b);
    }
    recall(blocks);
  }

  void recall(std::span<const BlockIndex> blocks) {
    // A turn takes half of the budget at most.
    for (std::size_t at = 0; at < blocks.size(); at += kBudgetBlocks / 2) {
      const auto some = blocks.subspan(at, std::min<std::size_t>(kBudgetBlocks / 2, blocks.size() - at));
      Turn turn(*session_, std::span<const Token>());
      turn.recall(some);
      while (turn.n_recomputing() > 0 && step(turn)) {}
      n_operations_ += std::ssize(turn.settle().recalled) + 1;
      n_recomputed_blocks_ += std::ssize(turn.stats().recomputed);
    }
  }

  // Back to lock step: what the twin does not have goes, the rest becomes hot, lost blocks by computing them again.
  void return_to_lock_step() {
    std::int32_t n_same = 0;
    while (n_same < std::min(session_->n_blocks(), twin_->n_blocks()) &&
           session_->exact_name(BlockIndex(n_same)) == twin_->exact_name(BlockIndex(n_same))) {
      ++n_same;
    }
    const Position end = std::min(Position(n_same * kBlockSize), std::min(session_->end(), twin_->end()));
    cut(*session_, end);
    cut(*twin_, end);
    // From the front, so that what is computed again sees what it saw.
    for (std::int32_t b = 0; b < session_->n_blocks(); ++b) recall(std::vector{BlockIndex(b)});
  }

  void cut(Session& session, Position end) {
    Turn turn(session, std::span<const Token>());
    turn.cut(end);
    turn.settle();
    ++n_operations_;
  }

  void cut_both() {
    const Position end(static_cast<std::int32_t>(draw(std::min(session_->end(), twin_->end()).index() + 1)));
    cut(*session_, end);
    cut(*twin_, end);
  }

  void save_all() {
    Turn turn(*session_, std::span<const Token>());
    (void)turn.save_hot();  // a sick disk may refuse
    turn.settle();
  }

  // The child goes on in the parent's place; it has nothing hot.
  void fork() {
    save_all();
    session_ = *Session::restore(sessions_->parts(store_.get()), session_options(), session_->image());
    ++n_operations_;
  }

  // Another process: RAM is gone, of the disk what the power left.
  void restart() {
    save_all();
    disk_gate_.open();
    (void)store_->flush();
    const std::vector<std::byte> image = encode_image(session_->image());
    session_.reset();
    store_.reset();
    if (draw(2) == 0) {
      disk_.power_off();
      disk_.power_on();
    }
    if (draw(8) == 0) put_old_copy();
    open_store();
    session_ = *Session::restore(sessions_->parts(store_.get()), session_options(), *decode_image(image));
    ++n_operations_;
  }

  // Writes stand still, and what is saved waits in the queue; or they go on.
  void slow_down() {
    draw(2) == 0 ? disk_gate_.close() : disk_gate_.open();
    ++n_operations_;
  }

  void copy_disk() {
    old_copy_ = disk_.copy();
    ++n_operations_;
  }

  // As it was when it was last copied: a backup that somebody put back.
  void put_old_copy() {
    disk_.put_back(old_copy_);
    ++n_operations_;
  }

  void pin_some() {
    for (std::int32_t b = 0; b < session_->n_blocks(); ++b) session_->set_pinned(BlockIndex(b), draw(8) == 0);
    ++n_operations_;
  }

  void random_operation() {
    switch (draw(17)) {
      case 0:
      case 1:
      case 2: return evict_some();
      case 3:
      case 4:
      case 5: return recall_some(1 + draw(4));
      case 6: return say(static_cast<std::int32_t>(draw(40)));  // past the budget: the policy evicts
      case 7: return cut_both();
      case 8: return draw(4) == 0 ? restart() : fork();
      case 9: return pin_some();
      case 10: disk_.fail_one_in(draw(2) == 0 ? 0 : 5 + static_cast<std::uint32_t>(draw(40))); return;
      case 11: {
        switch (draw(8)) {
          case 0: return put_old_copy();
          case 1: return copy_disk();
          default: return slow_down();
        }
      }
      default: return_to_lock_step(); return say(static_cast<std::int32_t>(draw(6)));
    }
  }

  std::uint64_t draw(std::uint64_t n) { return random_() % n; }

  TemporaryFile file_{".gguf"};
  std::mt19937_64 random_{23};
  FaultFileSystem disk_{7};
  Gate disk_gate_;
  FaultFileSystem::Copy old_copy_;
  std::unique_ptr<SoloSessions> sessions_;
  std::unique_ptr<ColdStore> store_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Session> twin_;
  std::map<Hash128, std::vector<std::byte>> bytes_by_name_;
  std::int64_t n_operations_ = 0;
  std::int64_t n_compared_blocks_ = 0;
  std::int64_t n_compared_logits_ = 0;
  std::int64_t n_recomputed_blocks_ = 0;
};

TEST_P(Reversibility, random_sessions_keep_every_byte_and_every_bit_of_the_logits) {
  while (n_operations_ < kOperations) {
    random_operation();
    if (HasFatalFailure()) break;
    session_->check_invariants();
    twin_->check_invariants();
    sessions_->solo().pool().check_invariants();
    check_bytes(*session_);
    check_bytes(*twin_);
    if (HasFatalFailure()) break;
  }
  store_->check_invariants();
  RecordProperty("operations", std::to_string(n_operations_));
  RecordProperty("blocks_compared", std::to_string(n_compared_blocks_));
  RecordProperty("logits_compared", std::to_string(n_compared_logits_));
  RecordProperty("blocks_recomputed", std::to_string(n_recomputed_blocks_));
  EXPECT_GT(n_compared_blocks_, kOperations / 4);
  EXPECT_GT(n_compared_logits_, kOperations / 40);
  EXPECT_GT(n_recomputed_blocks_, 10) << "RAM is small, and the disk sick";
}

std::vector<World> worlds() {
  std::vector<World> all;
  for (const PolicyEntry& policy : policies()) {
    for (const RowType type : {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0, RowType::kKivi4}) {
      for (const StoreKind store : {StoreKind::kRam, StoreKind::kSickDisk, StoreKind::kRamAndSickDisk}) {
        all.push_back({.policy = std::string(policy.name), .kv_type = type, .store = store});
      }
    }
  }
  return all;
}

std::string name_of(const ::testing::TestParamInfo<World>& world) {
  constexpr std::array<const char*, 3> kStores = {"ram", "sick_disk", "ram_and_sick_disk"};
  return fmt::format("{}_{}_{}", world.param.policy, row_type_name(world.param.kv_type),
                     kStores[static_cast<std::size_t>(world.param.store)]);
}

INSTANTIATE_TEST_SUITE_P(Worlds, Reversibility, ::testing::ValuesIn(worlds()), name_of);

}  // namespace
}  // namespace ebb
