#include "store/fetch.h"

#include <atomic>
#include <latch>
#include <thread>

#include "store/cold_store_test.h"

namespace ebb {
namespace {

// Records 1 to n, on the disk.
void keep(FaultFileSystem& system, std::uint64_t n) {
  const auto store = *try_open(system, 1 << 20);
  for (std::uint64_t i = 1; i <= n; ++i) ASSERT_TRUE(store->put(make_toy_record({.number = i})).ok());
}

// The next read of a disk stands still until it may go on; those behind it do not.
class FirstReadWaits {
 public:
  explicit FirstReadWaits(FaultFileSystem& system) {
    system.before_read([this] {
      if (n_begun_++ > 0) return;
      is_reading_.count_down();
      may_read_.wait();
    });
  }

  void wait_until_reading() { is_reading_.wait(); }
  void go_on() { may_read_.count_down(); }

 private:
  std::latch is_reading_{1};
  std::latch may_read_{1};
  std::atomic<int> n_begun_ = 0;
};

TEST(Fetch, gives_some_frames_without_reading_the_others_and_keeps_no_part_in_ram) {
  const ToyRecord toy = {.number = 1, .n_frames = 8};
  const std::vector<std::int32_t> some = {2, 3};
  FaultFileSystem system;
  { ASSERT_TRUE((*try_open(system, 1 << 20))->put(make_toy_record(toy)).value()); }
  const auto store = *try_open(system, 1 << 20);
  const RecordHandle part = *store->get(toy_key(1), some);
  EXPECT_TRUE(is_toy_record(*part, toy, some));
  EXPECT_LT(part->bytes().size(), make_toy_record(toy)->bytes().size());
  EXPECT_EQ(store->stats().tier("ram").n_records, 0);
  EXPECT_TRUE(is_toy_record(*store->get(toy_key(1)).value(), toy));
  EXPECT_EQ(store->stats().tier("ram").n_records, 1);
  EXPECT_TRUE(store->get(toy_key(1), some).value()->is_whole()) << "RAM has all of it";
}

TEST(Fetch, gives_at_once_what_is_in_memory) {
  const auto store = open_in_ram();
  ASSERT_TRUE(store->put(make_toy_record({.number = 1})).value());
  const auto fetch = store->fetch({{toy_key(1), {}}, {toy_key(1), {1}}}, [] { FAIL() << "it was ready at once"; });
  EXPECT_TRUE(fetch->is_ready());
  const auto records = fetch->take();
  ASSERT_EQ(records.size(), 2U);
  for (const Result<RecordHandle>& record : records) EXPECT_TRUE(is_toy_record(**record, {.number = 1}));
}

TEST(Fetch, by_the_caller_reads_from_disk_at_once_and_tells_nobody) {
  FaultFileSystem system;
  keep(system, 3);
  const auto store = *try_open(system, 1 << 20);
  const auto fetch = store->fetch(
      {{toy_key(3), {}}, {toy_key(77), {}}, {toy_key(1), {}}}, [] { FAIL() << "nobody waits for it"; },
      ReadBy::kCaller);
  EXPECT_TRUE(fetch->is_ready());
  const auto records = fetch->take();
  ASSERT_EQ(records.size(), 3U);
  EXPECT_TRUE(is_toy_record(**records[0], {.number = 3}));
  EXPECT_EQ(records[1].status().code(), Code::kNotFound);
  EXPECT_TRUE(is_toy_record(**records[2], {.number = 1}));
}

TEST(Fetch, reads_from_disk_behind_and_says_when_all_is_there) {
  FaultFileSystem system;
  keep(system, 5);
  std::latch is_told(1);
  const auto store = *try_open(system, 1 << 20);
  FirstReadWaits first(system);
  const auto fetch =
      store->fetch({{toy_key(2), {}}, {toy_key(77), {}}, {toy_key(4), {1}}}, [&] { is_told.count_down(); });
  first.wait_until_reading();
  EXPECT_FALSE(fetch->is_ready());
  EXPECT_FALSE(is_told.try_wait());
  // Who fetches waits for nothing, nor does who asks for what is in memory.
  ASSERT_TRUE(store->put(make_toy_record({.number = 9})).ok());
  EXPECT_TRUE(gets(*store, 9));
  first.go_on();
  is_told.wait();
  EXPECT_TRUE(fetch->is_ready());
  const auto records = fetch->take();
  EXPECT_TRUE(is_toy_record(**records[0], {.number = 2}));
  EXPECT_EQ(records[1].status().code(), Code::kNotFound);
  EXPECT_TRUE(is_toy_record(**records[2], {.number = 4}, std::vector<std::int32_t>{1}));
  EXPECT_EQ(store->stats().tier("ram").n_records, 2) << "the whole one came into RAM, and what was put";
}

// Closed while it reads: who waits is told, and nothing is read any more.
TEST(Fetch, what_was_not_read_when_the_store_closes_is_ready_as_cancelled) {
  FaultFileSystem system;
  keep(system, 2);
  auto store = *try_open(system, 1 << 20);
  FirstReadWaits first(system);
  const auto fetch = store->fetch({{toy_key(1), {}}, {toy_key(2), {}}});
  first.wait_until_reading();
  std::thread closer([&] { store.reset(); });
  first.go_on();
  closer.join();
  ASSERT_TRUE(fetch->is_ready());
  for (const Result<RecordHandle>& record : fetch->take()) {
    EXPECT_TRUE(record.ok() || record.status().code() == Code::kCancelled);
  }
}

// The reader has something to read for two who wait for nothing, and one who takes nothing.
TEST(Fetch, stops_while_too_much_is_read_and_not_taken_and_goes_on_for_who_waits) {
  FaultFileSystem system;
  keep(system, 6);
  const auto store = *try_open(system, 0, 2 * kOne);
  const auto first = store->fetch({{toy_key(1), {}}, {toy_key(2), {}}});
  first->wait();
  const std::int64_t n_reads = system.n_reads();
  const auto second = store->fetch({{toy_key(3), {}}, {toy_key(4), {}}});
  for (std::int32_t i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_EQ(system.n_reads(), n_reads);
  EXPECT_FALSE(second->is_ready());
  second->wait();
  EXPECT_TRUE(second->is_ready());
  // What is taken, or let go, makes room.
  auto third = store->fetch({{toy_key(5), {}}});
  (void)first->take();
  (void)second->take();
  third->wait();
  EXPECT_TRUE(is_toy_record(*third->take().front().value(), {.number = 5}));
}

TEST(Fetch, that_is_let_go_is_read_no_further) {
  FaultFileSystem system;
  keep(system, 6);
  const auto store = *try_open(system, 0);
  const std::int64_t n_reads = system.n_reads();
  FirstReadWaits first(system);
  auto gone = store->fetch({{toy_key(1), {}}, {toy_key(2), {}}, {toy_key(3), {}}});
  first.wait_until_reading();
  gone.reset();
  first.go_on();
  EXPECT_TRUE(is_toy_record(*store->fetch({{toy_key(4), {}}})->take().front().value(), {.number = 4}));
  EXPECT_EQ(system.n_reads(), n_reads + 2) << "the one that was under way, and this one";
}

}  // namespace
}  // namespace ebb
