// Random operations on the tiers, in lock step with a twin that knows what was put, on a disk that fails.
//
// The law: what comes back under a name is what was put under it, or an error; a name that was never put is never found.
#include <cstring>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "store/cold_store.h"
#include "store/fault_file_system.h"
#include "store/toy_record.h"

namespace ebb::store_model_test {
namespace {

constexpr std::uint64_t kNames = 80;
constexpr std::uint64_t kNeverPut = 1000;

constexpr std::uint64_t kVariants = 3;

// Sizes differ, and are told by the number.
ToyRecord toy_of(std::uint64_t number, std::uint64_t variant = 0) {
  return {.number = number,
          .n_frames = static_cast<std::int32_t>(number % 6),
          .bytes_per_frame = 60 + 100 * (number % 5),
          .variant = variant};
}

// What may come back under each name: any of the variants that were put, or one once it is known which is kept.
class Twin {
 public:
  void note_put(std::uint64_t number, std::uint64_t variant) { put_[number].insert(variant); }
  // Nothing else comes back from now on.
  void note_kept(std::uint64_t number, std::uint64_t variant) { kept_[number] = variant; }
  void note_unsure(std::uint64_t number) { kept_.erase(number); }
  // A later process finds what was dropped, and not what was not yet on the device.
  void note_restart() { kept_.clear(); }

  [[nodiscard]] bool allows(std::uint64_t number, std::uint64_t variant) const {
    if (const auto kept = kept_.find(number); kept != kept_.end()) return kept->second == variant;
    const auto put = put_.find(number);
    return put != put_.end() && put->second.contains(variant);
  }

 private:
  std::map<std::uint64_t, std::set<std::uint64_t>> put_;
  std::map<std::uint64_t, std::uint64_t> kept_;
};

// Some frames of it, or all.
std::vector<std::int32_t> draw_frames(std::uint64_t number, std::mt19937_64& random) {
  std::vector<std::int32_t> frames;
  if (random() % 3 == 0) return frames;
  for (std::int32_t i = 0; i < toy_of(number).n_frames; ++i) {
    if (random() % 2 == 0) frames.push_back(i);
  }
  return frames;
}

DiskOptions model_options(std::uint64_t seed) {
  const SyncPolicy policies[] = {SyncPolicy::kOnClose, SyncPolicy::kEveryRecord, SyncPolicy::kNever};
  return {.folder = "store", .max_bytes = 64 * 1024, .segment_bytes = 8 * 1024, .sync = policies[seed % 3]};
}

// Damages a file as no crash would: flips, cuts, repeats, zeros, missing parts.
void mutate(FaultFileSystem& system, std::mt19937_64& random) {
  const std::vector<std::string> paths = system.paths();
  if (paths.empty()) return;
  const std::string path = paths[random() % paths.size()];
  std::vector<std::byte> bytes = system.bytes(path);
  if (bytes.size() < 512) return;
  const std::size_t at = random() % bytes.size();
  const std::size_t n = 1 + random() % (bytes.size() - at);
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random() % 6) {
    case 0: bytes[at] ^= static_cast<std::byte>(1U << (random() % 8)); break;
    case 1: bytes.resize(at); break;
    case 2: std::fill_n(begin, n, std::byte{0}); break;
    case 3: bytes.insert(bytes.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at)); break;
    case 4: bytes.erase(begin, begin + static_cast<std::ptrdiff_t>(n)); break;
    default: return system.erase(path);
  }
  system.set_bytes(path, std::move(bytes));
}

// Writes headers of our form and under a checksum that holds, with fields of its own, into every segment: what somebody
// who means harm could write.
void forge_headers(FaultFileSystem& system, std::mt19937_64& random) {
  for (const std::string& path : system.paths()) {
    std::vector<std::byte> bytes = system.bytes(path);
    for (std::uint64_t n = random() % 4; n > 0; --n) {
      const std::size_t header = kSegmentHeaderBytes + (random() % 64) * kRecordAlignment;
      if (header + kRecordHeaderBytes > bytes.size()) continue;
      std::memcpy(bytes.data() + header, "ebbblock\3\0\0\0\0\0\0\0", 16);
      for (std::uint64_t m = random() % 4; m > 0; --m) {
        bytes[header + 16 + random() % 32] = random() % 2 == 0 ? std::byte{0xff} : static_cast<std::byte>(random());
      }
      const Hash128 checksum = hash_bytes(std::span(bytes).subspan(header, 112));
      std::memcpy(bytes.data() + header + 112, &checksum, sizeof checksum);
    }
    system.set_bytes(path, std::move(bytes));
  }
}

void sicken(FaultFileSystem& system, std::mt19937_64& random) {
  switch (random() % 4) {
    case 0: system.fail_one_in(0); break;
    case 1: system.fail_one_in(2 + static_cast<std::uint32_t>(random() % 30)); break;
    case 2: system.set_space(random() % 65536); break;
    default: system.set_space(1 << 30); break;
  }
}

// What came back is what may.
void expect_allowed(const EncodedRecord& record, std::uint64_t number, const std::vector<std::int32_t>& frames,
                    const Twin& twin) {
  bool found = false;
  for (std::uint64_t variant = 0; variant < kVariants; ++variant) {
    found = found || (twin.allows(number, variant) && is_toy_record(record, toy_of(number, variant), frames));
  }
  EXPECT_TRUE(found) << "block " << number << " is another, or was never put";
}

// How many records came back, which is one or none.
template <class Store>
std::int32_t expect_law(Store& store, std::uint64_t number, const Twin& twin, std::mt19937_64& random) {
  const std::vector<std::int32_t> frames = draw_frames(number, random);
  const Result<RecordHandle> record = store.get(toy_key(number), frames);
  if (record.ok()) expect_allowed(**record, number, frames, twin);
  return record.ok() ? 1 : 0;
}

TEST(StoreModel, a_disk_tier_gives_what_was_put_or_an_error_whatever_happens_to_its_files) {
  std::int64_t n_hits = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    FaultFileSystem system(seed);
    Twin twin;
    std::unique_ptr<DiskTier> tier = *DiskTier::open(model_options(seed), system);
    for (std::int32_t step = 0; step < 1500; ++step) {
      const std::uint64_t number = random() % kNames;
      const std::uint64_t what = random() % 100;
      if (what < 45) {
        const std::uint64_t variant = random() % kVariants;
        twin.note_put(number, variant);
        if (tier->put(make_toy_record(toy_of(number, variant))).ok()) {
          twin.note_kept(number, variant);
        } else {
          twin.note_unsure(number);  // written whole, and not synced
        }
      } else if (what < 85) {
        expect_law(*tier, number, twin, random);
      } else if (what < 88) {
        tier->drop(toy_key(number).name);
        EXPECT_EQ(tier->get(toy_key(number), {}).status().code(), Code::kNotFound);
      } else if (what < 91) {
        (void)tier->sync();
      } else if (what < 93) {
        mutate(system, random);
      } else if (what < 96) {
        sicken(system, random);
      } else if (what < 98) {
        expect_law(*tier, kNeverPut + number, twin, random);
      } else {
        n_hits += tier->stats().n_hits;
        const bool crash = random() % 2 == 0;
        if (crash) system.power_off();
        tier.reset();
        if (crash) system.power_on();
        system.fail_one_in(0);
        tier = *DiskTier::open(model_options(seed), system);
        twin.note_restart();
      }
      tier->check_invariants();
      EXPECT_LE(tier->stats().bytes, model_options(seed).max_bytes + 16 * 1024);
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << " step " << step;
    }
  }
  EXPECT_GT(n_hits, 5000);
}

TEST(StoreModel, a_cold_store_gives_what_was_put_or_an_error_whatever_happens_below_it) {
  std::int64_t n_found = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    FaultFileSystem system(seed);
    const ColdStoreOptions options = {
        .ram_bytes = 10 * 1024, .disk = model_options(seed), .queue_bytes = 4 * 1024, .system = &system};
    Twin twin;
    std::unique_ptr<ColdStore> store = *ColdStore::open(options);
    for (std::int32_t step = 0; step < 1000; ++step) {
      const std::uint64_t number = random() % kNames;
      const std::uint64_t variant = random() % kVariants;
      const ToyRecord toy = toy_of(number, variant);
      const std::uint64_t what = random() % 100;
      if (what < 30) {
        twin.note_put(number, variant);
        const bool taken = store->put_behind(make_toy_record(toy)->header(), toy_tokens(toy),
                                             [toy](auto frames) { fill_toy_frames(toy, frames); });
        if (taken) twin.note_kept(number, variant);
      } else if (what < 40) {
        twin.note_put(number, variant);
        const Result<bool> taken = store->put(make_toy_record(toy));
        EXPECT_TRUE(taken.ok());
        if (*taken) twin.note_kept(number, variant);
        expect_law(*store, number, twin, random);
      } else if (what < 75) {
        const std::optional<Hash128> body = store->find(toy_key(number).name);
        const Result<RecordHandle> record = store->get(toy_key(number));
        EXPECT_TRUE(!record.ok() || (*record)->header().body == body) << "what is found is what is given";
        n_found += expect_law(*store, number, twin, random);
      } else if (what < 80) {
        const std::vector<std::uint64_t> numbers = {number, random() % kNames};
        std::vector<RecordRequest> requests;
        for (const std::uint64_t n : numbers) requests.push_back({toy_key(n), draw_frames(n, random)});
        const auto fetch = store->fetch(requests);
        const auto records = random() % 4 == 0 ? std::vector<Result<RecordHandle>>() : fetch->take();
        for (std::size_t i = 0; i < records.size(); ++i) {
          if (records[i].ok()) expect_allowed(**records[i], numbers[i], requests[i].frames, twin);
        }
      } else if (what < 83) {
        store->drop(toy_key(number).name);
        twin.note_unsure(number);
        EXPECT_FALSE(store->find(toy_key(number).name));
      } else if (what < 85) {
        store->wait(toy_key(number).name);
      } else if (what < 87) {
        (void)store->flush();
      } else if (what < 90) {
        mutate(system, random);
      } else if (what < 94) {
        sicken(system, random);
      } else if (what < 98) {
        expect_law(*store, kNeverPut + number, twin, random);
      } else {
        const bool crash = random() % 2 == 0;
        if (crash) system.power_off();
        store.reset();
        if (crash) system.power_on();
        system.fail_one_in(0);
        store = *ColdStore::open(options);
        twin.note_restart();
      }
      store->check_invariants();
      EXPECT_LE(store->stats().tier("ram").bytes, options.ram_bytes);
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << " step " << step;
    }
  }
  EXPECT_GT(n_found, 3000);
}

TEST(StoreModel, forged_segments_crash_nothing_and_are_of_their_own_size) {
  std::int64_t n_found = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    std::mt19937_64 random(seed);
    FaultFileSystem system(seed);
    {
      const auto tier = *DiskTier::open(model_options(seed), system);
      for (std::uint64_t n = 0; n < 20; ++n) ASSERT_TRUE(tier->put(make_toy_record(toy_of(n))).ok());
    }
    forge_headers(system, random);
    const auto tier = *DiskTier::open(model_options(seed), system);
    for (std::uint64_t n = 0; n < 20; ++n) {
      const std::vector<std::int32_t> frames = draw_frames(n, random);
      const Result<RecordHandle> part = tier->get(toy_key(n), frames);
      EXPECT_TRUE(!part.ok() || (*part)->verify().ok());
      const Result<RecordHandle> record = tier->get(toy_key(n), {});
      if (!record.ok()) continue;
      ++n_found;
      std::size_t n_bytes = 0;
      EXPECT_TRUE((*record)
                      ->copy_frames([&](std::int32_t, std::span<const std::byte> frame) { n_bytes += frame.size(); })
                      .ok());
      EXPECT_EQ(n_bytes, (*record)->header().frame_bytes);
    }
    for (std::uint64_t n = 20; n < 60; ++n) (void)tier->put(make_toy_record(toy_of(n)));
    tier->check_invariants();
  }
  EXPECT_GT(n_found, 2000);
}

// With a healthy disk and room enough, nothing that was flushed is ever missing.
TEST(StoreModel, what_was_flushed_is_there_after_any_power_failure) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    FaultFileSystem system(seed);
    DiskOptions disk = model_options(0);
    disk.max_bytes = 4 << 20;
    const ColdStoreOptions options = {.ram_bytes = 10 * 1024, .disk = disk, .queue_bytes = 4 * 1024, .system = &system};
    Twin twin;
    std::set<std::uint64_t> put_now;  // since the last failure
    std::set<std::uint64_t> flushed;
    std::unique_ptr<ColdStore> store = *ColdStore::open(options);
    for (std::int32_t step = 0; step < 400; ++step) {
      const std::uint64_t number = random() % kNames;
      const std::uint64_t what = random() % 100;
      if (what < 60) {
        twin.note_put(number, 0);
        put_now.insert(number);
        EXPECT_TRUE(store->put(make_toy_record(toy_of(number))).value());
      } else if (what < 90) {
        expect_law(*store, number, twin, random);
      } else if (what < 94) {
        store->drop(toy_key(number).name);
        flushed.erase(number);
        put_now.erase(number);
      } else if (what < 97) {
        EXPECT_TRUE(store->flush().ok());
        flushed.insert(put_now.begin(), put_now.end());
      } else {
        system.power_off();
        store.reset();
        system.power_on();
        put_now.clear();
        store = *ColdStore::open(options);
        for (const std::uint64_t n : flushed) {
          const Result<RecordHandle> record = store->get(toy_key(n));
          ASSERT_TRUE(record.ok()) << "seed " << seed << " step " << step << ": " << record.status().message();
          EXPECT_TRUE(is_toy_record(**record, toy_of(n)));
        }
      }
      store->check_invariants();
    }
  }
}

}  // namespace
}  // namespace ebb::store_model_test
