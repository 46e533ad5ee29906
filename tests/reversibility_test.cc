// Reversibility: random sessions in lock step with a twin that never evicts.
//
// One world per policy, KV type, kind of cold store and kind of model. Each plays thousands of operations drawn from a seed:
// say, evict any heads of any blocks, recall any of them, pin, cut (an edit), fork, restart, give a smaller budget,
// choose by another policy, lose a record, with faults in the disk under it. Every step computes one row, so that what is computed again has the bits that it
// had. Of models with windows the twin keeps what windows hide. Two things must hold after every operation:
//
//   bytes    what is hot, in whatever heads, holds the bytes that its exact name had when it was first computed, whoever
//            computed it
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

namespace ebb::reversibility_test {
namespace {

constexpr std::int32_t kBlockSize = 8;
constexpr std::int32_t kBudgetBlocks = 10;
constexpr std::int32_t kLockStepBlocks = kBudgetBlocks - 1;  // a session this long can be hot as a whole
constexpr std::int32_t kOperations = 6000;                   // of each world; 90 worlds make 540 000

enum class ModelKind : std::uint8_t { kOneHead, kTwoHeads, kOneLayerSlides, kAllLayersSlide };

RandomModelSpec spec_of(ModelKind kind) {
  RandomModelSpec spec = {
      .n_layers = 2, .n_embd = 32, .n_heads = 2, .n_kv_heads = 1, .head_dim = 32, .n_ff = 32, .n_vocab = 272};
  if (kind == ModelKind::kOneHead) return spec;
  spec.n_kv_heads = 2;
  if (kind == ModelKind::kTwoHeads) return spec;
  // Two blocks and a half.
  spec.architecture = "gemma3";
  spec.tied = true;
  spec.sliding_window = 20;
  spec.sliding_period = kind == ModelKind::kOneLayerSlides ? 2 : 0;
  return spec;
}

// Lets single heads go, in no order that means anything.
class HeadsAtRandom final : public Policy {
 public:
  static constexpr std::string_view kName = "heads_at_random";
  [[nodiscard]] std::string_view name() const override { return kName; }
  [[nodiscard]] Ask asks() const override { return {.scope = Scope::kHead}; }
  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    std::vector<double> scores;
    for (const ScopeRow& row : scope.rows) {
      const auto block = static_cast<std::uint64_t>(evidence.block(row).block.value());
      const std::uint64_t at = block * 64 + static_cast<std::uint64_t>(scope.index);
      scores.push_back(static_cast<double>(Hasher().add(at).add(evidence.end.index()).finish().low >> 11));
    }
    return scores;
  }
};

enum class StoreKind : std::uint8_t { kRam, kSickDisk, kRamAndSickDisk };

struct World {
  std::string policy;
  RowType kv_type = RowType::kF32;
  StoreKind store = StoreKind::kRam;
  ModelKind model = ModelKind::kOneHead;

  friend void PrintTo(const World& w, std::ostream* out) { *out << w.policy; }
};

class Reversibility : public ::testing::TestWithParam<World> {
 protected:
  void SetUp() override {
    const RandomModelSpec spec = spec_of(GetParam().model);
    ASSERT_TRUE(write_random_model(spec, file_.path()).ok());
    n_vocab_ = static_cast<std::uint64_t>(spec.n_vocab);
    random_.seed(std::hash<std::string>()(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    const SoloOptions options = {.n_threads = 1, .kv_type = GetParam().kv_type, .block_size = kBlockSize};
    const bool by_head = GetParam().policy == HeadsAtRandom::kName;
    sessions_ = by_head ? *SoloSessions::open(file_.path(), options, std::make_unique<HeadsAtRandom>())
                        : *SoloSessions::open(file_.path(), options, GetParam().policy);
    disk_.before_append([&] { disk_gate_.pass(); });
    open_store();
    session_ = std::make_unique<Session>(sessions_->deps(store_.get()), session_options());
    SessionDeps twin_deps = sessions_->deps(nullptr);
    twin_deps.shape.windows.clear();
    twin_ = std::make_unique<Session>(twin_deps, session_options());
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
    for (const BlockIndex block : session.hot().hot_blocks()) {
      if (!session.hot().is_full(block)) continue;
      std::vector<std::optional<Hash128>>& known = bytes_by_name_[session.exact_name(block)];
      known.resize(session.shape().n_heads());
      std::vector<std::byte> bytes(session.block_bytes(block) / known.size());
      session.hot().hot_heads(block).for_each([&](std::size_t head) {
        HeadSet one(known.size());
        one.add(head);
        session.read_frames(block, one, bytes);
        const Hash128 hash = hash_bytes(bytes);
        ASSERT_EQ(hash, known[head].value_or(hash)) << "block " << block.value() << " in head " << head;
        n_compared_frames_ += known[head].has_value() ? 1 : 0;
        known[head] = hash;
      });
    }
  }

  [[nodiscard]] bool in_lock_step() const {
    if (session_->end() != twin_->end()) return false;
    for (std::int32_t b = 0; b < session_->n_blocks(); ++b) {
      const BlockIndex block(b);
      if (!session_->hot().is_hot(block) || session_->exact_name(block) != twin_->exact_name(block)) return false;
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
      const std::vector<Token> token = {Token(static_cast<std::int32_t>(draw(n_vocab_)))};
      const bool with_twin = session_->end() == twin_->end() && twin_->end().value() < kLockStepBlocks * kBlockSize;
      const bool same_logits = with_twin && in_lock_step();
      Turn turn(*session_, Prompt(token));
      std::optional<std::vector<float>> ours;
      while (turn.n_pending() > 0) {
        ours = step(turn);
        if (!ours) break;
      }
      if (!ours) {
        // Refused for want of room: nothing was computed, and the word is taken back.
        turn.settle();
        session_->cut(session_->end());
        return;
      }
      turn.settle();
      if (!with_twin) continue;
      Turn same(*twin_, Prompt(token));
      std::optional<std::vector<float>> theirs;
      // More than one where a cut left it a piece of a sealed block to compute again.
      while (same.n_pending() > 0) {
        theirs = step(same);
        ASSERT_TRUE(theirs.has_value());
      }
      same.settle();
      // What a smaller budget let go was not seen by this token.
      if (!same_logits || !turn.stats().acts.evicted.empty()) continue;
      ASSERT_EQ(std::memcmp(ours->data(), theirs->data(), ours->size() * sizeof(float)), 0) << "logits differ";
      ++n_compared_logits_;
    }
  }

  // Each block with the chance of one in `n`.
  std::vector<BlockIndex> some_blocks(std::uint64_t n) {
    std::vector<BlockIndex> blocks;
    for (std::int32_t b = 0; b < session_->n_blocks(); ++b) {
      if (draw(n) == 0) blocks.emplace_back(b);
    }
    return blocks;
  }

  HeadSet some_heads() {
    HeadSet heads(session_->shape().n_heads());
    for (std::size_t head = 0; head < heads.n_heads(); ++head) {
      if (draw(2) == 0) heads.add(head);
    }
    return heads;
  }

  void evict_some() {
    const std::vector<BlockIndex> blocks = some_blocks(3);
    const Acts acts = draw(3) == 0 ? session_->evict(blocks) : session_->evict(blocks, some_heads());
    n_operations_ += std::ssize(acts.evicted) + 1;
  }

  // What is lost is computed again: at once, or by a turn that says nothing else.
  void recall(std::span<const BlockIndex> blocks) {
    // Half of the budget is recalled at most.
    for (std::size_t at = 0; at < blocks.size(); at += kBudgetBlocks / 2) {
      const auto some = blocks.subspan(at, std::min<std::size_t>(kBudgetBlocks / 2, blocks.size() - at));
      if (draw(2) == 0) {
        note_recall(sessions_->recall(*session_, some));
        continue;
      }
      Turn turn(*session_, Prompt());
      turn.recall(some);
      turn.prepare_all(1);
      while (turn.n_recomputing() > 0 && step(turn)) {}
      note_recall(turn.settle().acts);
    }
  }

  void note_recall(const Acts& acts) {
    n_operations_ += std::ssize(acts.recalled) + kBlockSize * std::ssize(acts.recomputed) + 1;
    n_recomputed_blocks_ += std::ssize(acts.recomputed);
  }

  // Back to lock step: what the twin does not have goes, the rest becomes hot, lost blocks by computing them again.
  void return_to_lock_step() {
    (void)session_->set_budget(FrameBudget::of_tokens(kBudgetBlocks * kBlockSize, session_->shape()));
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
    session.cut(end);
    ++n_operations_;
  }

  void cut_both() {
    const Position end(static_cast<std::int32_t>(draw(std::min(session_->end(), twin_->end()).index() + 1)));
    cut(*session_, end);
    cut(*twin_, end);
  }

  void save_all() { (void)session_->save(); }  // a sick disk may refuse

  void shrink_budget() {
    const auto n_blocks = static_cast<std::int32_t>(2 + draw(kBudgetBlocks - 1));
    const FrameBudget asked = FrameBudget::of_tokens(n_blocks * kBlockSize, session_->shape());
    EXPECT_GE(session_->set_budget(asked), asked);
    ++n_operations_;
  }

  // Another of the registry, or its own again.
  void change_policy() {
    const bool is_own = session_->policy().name() == GetParam().policy;
    const PolicyEntry& other = policies()[draw(policies().size())];
    session_->set_policy(is_own ? *make_policy(other.name) : nullptr, sessions_->deps(nullptr).output_lengths);
    ++n_operations_;
  }

  void lose_record() {
    if (session_->n_blocks() == 0) return;
    const auto b = static_cast<std::int32_t>(draw(static_cast<std::uint64_t>(session_->n_blocks())));
    disk_gate_.open();
    store_->drop(session_->exact_name(BlockIndex(b)));
    ++n_operations_;
  }

  void refill() { note_recall(session_->refill(static_cast<std::int32_t>(draw(3)))); }

  // The child goes on in the parent's place; it has nothing hot.
  void fork() {
    save_all();
    session_ = *Session::restore(sessions_->deps(store_.get()), session_options(), session_->image());
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
    session_ = *Session::restore(sessions_->deps(store_.get()), session_options(), *decode_image(image));
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
    switch (draw(20)) {
      case 0:
      case 1:
      case 2: return evict_some();
      case 3:
      case 4:
      case 5: return recall(some_blocks(1 + draw(4)));
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
      case 12: return draw(4) == 0 ? change_policy() : shrink_budget();
      case 13: return lose_record();
      case 14: return refill();
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
  std::uint64_t n_vocab_ = 0;
  std::map<Hash128, std::vector<std::optional<Hash128>>> bytes_by_name_;  // of each head, once it was seen
  std::int64_t n_operations_ = 0;
  std::int64_t n_compared_frames_ = 0;
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
  RecordProperty("frames_compared", std::to_string(n_compared_frames_));
  RecordProperty("logits_compared", std::to_string(n_compared_logits_));
  RecordProperty("blocks_recomputed", std::to_string(n_recomputed_blocks_));
  EXPECT_GT(n_compared_frames_, kOperations / 4);
  EXPECT_GT(n_compared_logits_, kOperations / 40);
  // The least of hundreds of worlds, which draw as they do, is 8.
  EXPECT_GT(n_recomputed_blocks_, 5) << "RAM is small, and the disk sick";
}

// Every policy with every type and store; every kind of model with every type and store.
std::vector<World> worlds() {
  std::vector<std::string> names = {std::string(HeadsAtRandom::kName)};
  for (const PolicyEntry& policy : policies()) names.emplace_back(policy.name);
  names.emplace_back("areas:norm=2");  // looks at other evidence than areas does
  std::vector<World> all;
  for (const RowType type : {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0, RowType::kKivi4}) {
    for (const StoreKind store : {StoreKind::kRam, StoreKind::kSickDisk, StoreKind::kRamAndSickDisk}) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        const auto model = static_cast<ModelKind>((i + static_cast<std::size_t>(store)) % 4);
        all.push_back({.policy = names[i], .kv_type = type, .store = store, .model = model});
      }
    }
  }
  return all;
}

std::string name_of(const ::testing::TestParamInfo<World>& world) {
  constexpr std::array<const char*, 3> kStores = {"ram", "sick_disk", "ram_and_sick_disk"};
  constexpr std::array<const char*, 4> kModels = {"one_head", "two_heads", "one_layer_slides", "all_layers_slide"};
  std::string policy = world.param.policy;
  std::ranges::replace_if(
      policy, [](char c) { return c == ':' || c == '='; }, '_');
  return fmt::format("{}_{}_{}_{}", policy, row_type_name(world.param.kv_type),
                     kStores[static_cast<std::size_t>(world.param.store)],
                     kModels[static_cast<std::size_t>(world.param.model)]);
}

INSTANTIATE_TEST_SUITE_P(Worlds, Reversibility, ::testing::ValuesIn(worlds()), name_of);

}  // namespace
}  // namespace ebb::reversibility_test
