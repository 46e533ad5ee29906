// What the cold store asks of tiers, whatever they are: here a third one, that two stores share.
#include <latch>
#include <map>
#include <mutex>

#include "store/cold_store_test.h"
#include "store/memory_tier.h"

namespace ebb {
namespace {

// Records of everybody, far away.
struct Far {
  std::mutex mutex;
  std::map<Hash128, std::vector<std::byte>> records;
  bool is_up = true;
};

// One store's way to them. It knows of those that it wrote or read.
class FarTier : public Tier {
 public:
  explicit FarTier(Far& far) : far_(far) { stats_.name = "far"; }

  [[nodiscard]] std::int64_t cost_us() const override { return 5000; }
  [[nodiscard]] bool may_wait() const override { return true; }
  [[nodiscard]] bool is_durable() const override { return true; }

  [[nodiscard]] std::optional<Kept> find(const Hash128& name) const override {
    const std::lock_guard lock(far_.mutex);
    const auto known = known_.find(name);
    return known != known_.end() ? std::optional(Kept{.body = known->second}) : std::nullopt;
  }
  Status put(const RecordHandle& record) override {
    const std::lock_guard lock(far_.mutex);
    if (!far_.is_up) return error(Code::kIo, "far is down");
    far_.records[record->key().name].assign(record->bytes().begin(), record->bytes().end());
    known_[record->key().name] = record->header().body;
    ++stats_.n_puts;
    return {};
  }
  Result<RecordHandle> get(const RecordKey& key, FrameList frames) override {
    const std::lock_guard lock(far_.mutex);
    if (!far_.is_up) return error(Code::kIo, "far is down");
    const auto found = far_.records.find(key.name);
    if (found == far_.records.end()) return error(Code::kNotFound, "block {} is not far", key.name.hex());
    RecordBytes bytes(found->second.size());
    std::ranges::copy(found->second, bytes.bytes().begin());
    EBB_ASSIGN_OR_RETURN(RecordHandle record, EncodedRecord::open(std::move(bytes)));
    EBB_RETURN_IF_ERROR(record->match(key, frames));
    EBB_RETURN_IF_ERROR(record->verify());
    known_[key.name] = record->header().body;
    ++stats_.n_hits;
    return record;
  }
  void drop(const Hash128& name) override {
    const std::lock_guard lock(far_.mutex);
    known_.erase(name);
    far_.records.erase(name);
  }
  Status sync() override { return far_.is_up ? Status() : error(Code::kIo, "far is down"); }
  [[nodiscard]] TierStats stats() const override {
    const std::lock_guard lock(far_.mutex);
    return stats_;
  }

 private:
  Far& far_;
  std::map<Hash128, Hash128> known_;  // name, body
  TierStats stats_;
};

std::unique_ptr<ColdStore> open_three(FaultFileSystem& system, Far& far, std::size_t ram_bytes = 1 << 20) {
  std::vector<std::unique_ptr<Tier>> tiers;
  tiers.push_back(std::make_unique<FarTier>(far));
  tiers.push_back(*DiskTier::open({.folder = "store", .max_bytes = 1 << 20}, system));
  tiers.push_back(std::make_unique<MemoryTier>(ram_bytes));
  return std::make_unique<ColdStore>(std::move(tiers), 1 << 20);
}

TEST(ColdStoreTiers, are_asked_in_order_of_cost_whatever_order_they_came_in) {
  FaultFileSystem system;
  Far far;
  const auto store = open_three(system, far);
  ASSERT_TRUE(store->put(make_toy_record({.number = 1})).value());
  ASSERT_TRUE(store->flush().ok());
  const StoreStats stats = store->stats();
  ASSERT_EQ(stats.tiers.size(), 3U);
  for (const auto& [tier, name] : {std::pair(0, "ram"), std::pair(1, "disk"), std::pair(2, "far")}) {
    EXPECT_EQ(stats.tiers[std::size_t(tier)].name, name);
    EXPECT_EQ(stats.tiers[std::size_t(tier)].n_puts, 1);
  }
  EXPECT_TRUE(gets(*store, 1));
  EXPECT_EQ(store->stats().tier("disk").n_hits, 0);
}

TEST(ColdStoreTiers, what_another_saved_comes_from_the_one_that_is_shared_into_those_that_cost_less) {
  FaultFileSystem system_here;
  FaultFileSystem system_there;
  Far far;
  const auto here = open_three(system_here, far);
  const auto there = open_three(system_there, far);
  put_behind(*here, {.number = 1});
  ASSERT_TRUE(here->flush().ok());
  EXPECT_FALSE(there->find(toy_key(1).name));
  EXPECT_TRUE(gets(*there, 1));
  EXPECT_EQ(there->find(toy_key(1).name), toy_body({.number = 1}));
  ASSERT_TRUE(there->flush().ok());
  EXPECT_EQ(there->stats().tier("ram").n_records, 1);
  EXPECT_EQ(there->stats().tier("disk").n_records, 1);
  EXPECT_TRUE(gets(*there, 1));
  EXPECT_EQ(there->stats().tier("far").n_hits, 1);
}

TEST(ColdStoreTiers, one_that_is_down_costs_what_only_it_has) {
  FaultFileSystem system;
  Far far;
  const auto store = open_three(system, far, 2 * kOne);
  for (std::uint64_t n = 1; n <= 5; ++n) ASSERT_TRUE(store->put(make_toy_record({.number = n})).ok());
  ASSERT_TRUE(store->flush().ok());
  far.is_up = false;
  EXPECT_TRUE(store->put(make_toy_record({.number = 6})).ok());
  EXPECT_EQ(store->flush().code(), Code::kIo);
  for (std::uint64_t n = 1; n <= 6; ++n) EXPECT_TRUE(gets(*store, n)) << n;
  EXPECT_EQ(store->get(toy_key(9)).status().code(), Code::kIo);
  far.is_up = true;
  for (const std::string& path : system.paths()) system.erase(path);
  for (std::uint64_t n = 1; n <= 5; ++n) EXPECT_TRUE(gets(*store, n)) << n;
  store->check_invariants();
}

TEST(ColdStoreTiers, a_dropped_record_goes_from_all_of_them) {
  FaultFileSystem system;
  Far far;
  const auto store = open_three(system, far);
  ASSERT_TRUE(store->put(make_toy_record({.number = 1})).ok());
  ASSERT_TRUE(store->flush().ok());
  store->drop(toy_key(1).name);
  EXPECT_FALSE(store->find(toy_key(1).name));
  EXPECT_EQ(store->get(toy_key(1)).status().code(), Code::kNotFound);
}

// What is saved must mean these bytes: a name that is taken by others is not given to them too.
TEST(ColdStoreTiers, keeps_one_body_for_a_name_and_turns_another_away_in_whatever_tier_the_first_is) {
  const ToyRecord other = {.number = 1, .variant = 1};
  for (const std::size_t ram_bytes : {std::size_t{1} << 20, std::size_t{0}}) {
    FaultFileSystem system;
    const auto store = *try_open(system, ram_bytes);
    EXPECT_TRUE(store->put(make_toy_record({.number = 1})).value());
    EXPECT_FALSE(store->put(make_toy_record(other)).value());
    EXPECT_FALSE(store->put_behind(announced(other), toy_tokens(other), [](std::span<std::byte>) { FAIL(); }));
    ASSERT_TRUE(store->flush().ok());
    EXPECT_FALSE(store->put(make_toy_record(other)).value());
    EXPECT_EQ(store->find(toy_key(1).name), toy_body({.number = 1}));
    EXPECT_TRUE(gets(*store, 1));
    store->drop(toy_key(1).name);
    EXPECT_TRUE(store->put(make_toy_record(other)).value());
    EXPECT_EQ(store->find(toy_key(1).name), toy_body(other));
    store->drop(toy_key(1).name);
  }
}

TEST(ColdStoreTiers, a_pending_name_is_taken_by_the_body_that_was_announced) {
  const auto store = open_in_ram();
  const ToyRecord toy = {.number = 1};
  const ToyRecord other = {.number = 1, .variant = 1};
  std::latch may_copy(1);
  EXPECT_TRUE(store->put_behind(announced(toy), toy_tokens(toy), [&](std::span<std::byte> frames) {
    may_copy.wait();
    fill_toy_frames(toy, frames);
  }));
  EXPECT_FALSE(store->put(make_toy_record(other)).value());
  EXPECT_FALSE(store->put_behind(announced(other), toy_tokens(other), [](std::span<std::byte>) { FAIL(); }));
  EXPECT_TRUE(store->put_behind(announced(toy), toy_tokens(toy), [](std::span<std::byte>) { FAIL(); }));
  may_copy.count_down();
  EXPECT_TRUE(gets(*store, 1));
}

TEST(ColdStoreTiers, frames_that_changed_before_they_were_copied_are_counted_and_not_kept) {
  const auto store = open_in_ram();
  const ToyRecord toy = {.number = 1};
  EXPECT_TRUE(store->put_behind(announced(toy), toy_tokens(toy), [](std::span<std::byte> frames) {
    fill_toy_frames({.number = 1, .variant = 1}, frames);
  }));
  store->wait(toy_key(1).name);
  EXPECT_FALSE(store->find(toy_key(1).name));
  EXPECT_EQ(store->stats().n_changed, 1);
}

}  // namespace
}  // namespace ebb
