// Sessions that outlive their process: a scheduler on a cold store with a disk, the next one on the same folder, and
// what that one has to compute.
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/scheduler.h"
#include "model/random_model.h"
#include "store/fault_file_system.h"
#include "tests/files.h"

namespace ebb::kept_sessions_test {
namespace {

using ::testing::HasSubstr;

constexpr std::int32_t kBlockSize = 16;

struct Said {
  std::string text;
  RequestEnd end;
};

class KeptSessions : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_random_model({.n_kv_heads = 2, .n_ctx_train = 1024}, model_.path()).ok());
    open();
  }

  // As a new process would.
  void open(RowType kv_type = RowType::kF16, SchedulerOptions options = {}) {
    close();
    EngineOptions engine{.model = model_.path(),
                         .n_threads = 1,
                         .kv_type = kv_type,
                         .block_size = kBlockSize,
                         .kv_budget_tokens = 640,
                         .chunk = 64,
                         .policy = policy_,
                         .store = {.ram_bytes = 1 << 20, .disk = DiskOptions{.folder = folder_.path()}}};
    Result<std::unique_ptr<Engine>> opened = Engine::open(engine);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    engine_ = *std::move(opened);
    options.n_parallel = 2;
    if (!options.folder) options.folder = LaneFolderOptions{.folder = images()};
    Result<std::unique_ptr<Scheduler>> scheduler = Scheduler::start(*engine_, options);
    ASSERT_TRUE(scheduler.ok()) << scheduler.status().message();
    scheduler_ = *std::move(scheduler);
  }

  void close() {
    scheduler_.reset();
    engine_.reset();
  }

  [[nodiscard]] std::filesystem::path images() const { return folder_.path() / "sessions"; }

  [[nodiscard]] std::vector<std::filesystem::path> image_files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(images())) files.push_back(entry.path());
    return files;
  }

  Said say(const std::string& text, const std::string& lane = "", const std::string& owner = "") {
    const auto tokens = engine_->vocabulary().tokenize(text);
    EXPECT_TRUE(tokens.ok());
    Request request{.owner = owner,
                    .lane_id = lane,
                    .history = Prompt(*tokens),
                    .options = {.sampling = {.temperature = 0.0F}, .max_tokens = 6}};
    std::promise<Said> promise;
    std::string reply;
    request.on_text = [&](std::string_view more) { reply += more; };
    request.on_end = [&](const RequestEnd& end) { promise.set_value({reply, end}); };
    EXPECT_TRUE(scheduler_->submit(std::move(request)).ok());
    return promise.get_future().get();
  }

  LaneFolderStats kept() { return scheduler_->stats().kept; }

  TemporaryFile model_{".gguf"};
  TemporaryFolder folder_;
  std::string policy_{kDefaultPolicy};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Scheduler> scheduler_;
};

std::string history(char letter) { return "a long story of " + std::string(300, letter); }

TEST_F(KeptSessions, the_next_process_goes_on_with_every_session_and_computes_nothing_again) {
  std::map<std::string, Said> before;
  for (const std::string lane : {"one", "two", ""}) before[lane] = say(history(lane.empty() ? 'x' : lane[0]), lane);
  const std::string more = history('o') + before["one"].text + " and then";
  // A twin: the same two requests in one process.
  say(history('o'), "one", "somebody else");
  const Said twin = say(more, "one", "somebody else");
  open();
  EXPECT_EQ(kept().n_resumed, 4);
  EXPECT_EQ(scheduler_->stats().n_lanes, 4U);
  scheduler_->inspect([](const Lanes& lanes) {
    for (const Lane& lane : lanes.all()) {
      EXPECT_EQ(lane.session, nullptr) << lane.public_id;
      EXPECT_EQ(lane.public_id.empty(), false);
    }
  });
  const Said after = say(more, "one");
  ASSERT_TRUE(after.end.status.ok()) << after.end.status.message();
  EXPECT_EQ(after.text, twin.text);
  EXPECT_EQ(after.end.turn.from[Origin::kRecomputed], 0);
  EXPECT_EQ(after.end.turn.from[Origin::kHole], 0);
  const auto said_since = engine_->vocabulary().tokenize(before["one"].text + " and then");
  EXPECT_LE(after.end.turn.from[Origin::kNew], std::ssize(*said_since)) << "the reply may come back in other tokens";
  EXPECT_GE(after.end.turn.from[Origin::kRecalledExact], 300);
  for (const std::string lane : {"two", ""}) {
    const Said again = say(history(lane.empty() ? 'x' : lane[0]), lane);
    EXPECT_EQ(again.text, before[lane].text);
    EXPECT_EQ(again.end.turn.from[Origin::kRecomputed], 0);
    EXPECT_LE(again.end.turn.from[Origin::kNew], 1);
  }
}

TEST_F(KeptSessions, the_next_process_goes_on_counting) {
  say(history('a'), "a");
  scheduler_->act([](Lanes& lanes) { EXPECT_TRUE(lanes.park_one()); });
  const std::int64_t n_recalled = say(history('a') + " more", "a").end.session.n_recalled_blocks;
  ASSERT_GT(n_recalled, 0);
  open();
  scheduler_->inspect(
      [&](const Lanes& lanes) { EXPECT_EQ(lanes.all().front().stats().n_recalled_blocks, n_recalled); });
  EXPECT_GT(say(history('a') + " more", "a").end.session.n_recalled_blocks, n_recalled);
}

TEST_F(KeptSessions, a_sessions_own_policy_goes_on_where_it_may_be_chosen_and_that_of_a_request_does_not) {
  const auto policy_of = [&](std::string_view id) {
    std::string policy;
    scheduler_->act([&](Lanes& lanes) { policy = lanes.policy(*lanes.find("", id)).spec(); });
    return policy;
  };
  for (const char* id : {"own", "parked", "plain"}) say(history(id[0]), id);
  scheduler_->act([](Lanes& lanes) {
    lanes.park(*lanes.find("", "parked"));
    for (const char* id : {"own", "parked"})
      EXPECT_TRUE(lanes.set_policy(*lanes.find("", id), *make_policy("h2o:recent=0.25")).ok());
    // As a request does.
    EXPECT_TRUE(lanes.wake(*lanes.find("", "plain"), 320, *make_policy("tova")).ok());
    lanes.keep(*lanes.find("", "plain"));
  });
  EXPECT_EQ(policy_of("plain"), "tova");
  open();
  EXPECT_EQ(policy_of("own"), "h2o:recent=0.25");
  EXPECT_EQ(policy_of("parked"), "h2o:recent=0.25");
  EXPECT_EQ(policy_of("plain"), kDefaultPolicy);
  EXPECT_EQ(say(history('o') + " more", "own").end.policy, "h2o:recent=0.25");
  open(RowType::kF16, {.lanes = {.policies = OfferedPolicies::parse("tova").value()}});
  EXPECT_EQ(policy_of("own"), kDefaultPolicy);
}

TEST_F(KeptSessions, the_last_image_of_each_session_is_kept_and_no_other) {
  say(history('a'), "a");
  say(history('a') + " more", "a");
  say(history('b'), "b");
  close();
  EXPECT_EQ(image_files().size(), 2U);
  for (const auto& file : image_files()) {
    EXPECT_EQ(std::filesystem::status(file).permissions() & std::filesystem::perms::mask,
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  open();
  EXPECT_EQ(say(history('a') + " more", "a").end.turn.from[Origin::kNew], 1);
}

TEST_F(KeptSessions, a_forgotten_session_is_forgotten_on_disk_too) {
  say(history('a'), "a");
  scheduler_->act([](Lanes& lanes) { lanes.forget(*lanes.find("", "a")); });
  close();
  EXPECT_TRUE(image_files().empty());
}

TEST_F(KeptSessions, more_sessions_than_may_be_are_forgotten_the_longest_unused_first) {
  open(RowType::kF16, {.lanes = {.most = 2}});
  for (const std::string lane : {"a", "b", "c"}) say(history(lane[0]), lane);
  open();
  EXPECT_EQ(kept().n_resumed, 2);
  scheduler_->inspect([](const Lanes& lanes) {
    for (const Lane& lane : lanes.all()) EXPECT_NE(lane.public_id, "a");
  });
}

TEST_F(KeptSessions, images_of_another_layout_or_owner_are_left_alone_and_counted) {
  say(history('a'), "a", "alpha");
  say(history('b'), "b", "beta");
  open(RowType::kBF16);
  EXPECT_EQ(kept().n_foreign, 2);
  EXPECT_EQ(kept().n_resumed, 0);
  open(RowType::kF16, {.lanes = {.is_known_owner = [](std::string_view owner) { return owner == "beta"; }}});
  EXPECT_EQ(kept().n_foreign, 1);
  EXPECT_EQ(kept().n_resumed, 1);
  EXPECT_LE(say(history('b'), "b", "beta").end.turn.from[Origin::kNew], 1);
}

TEST_F(KeptSessions, images_of_another_layout_keep_their_half_of_a_folder_that_is_full) {
  policy_ = "streaming";  // which notes nothing, so that images are small
  open();
  const auto bounded = [&](RowType rows, std::uint64_t max_bytes) {
    open(rows, {.folder = LaneFolderOptions{.folder = images(), .max_bytes = max_bytes}});
  };
  say(history('a'), "a");
  say(history('b'), "b");
  bounded(RowType::kBF16, 16 << 10);
  for (char lane = 'c'; lane < 'm'; ++lane) say(history(lane), std::string(1, lane));
  open(RowType::kF16);
  EXPECT_EQ(kept().n_resumed, 2);
  EXPECT_LE(say(history('a'), "a").end.turn.from[Origin::kNew], 1);

  // Beyond it the oldest of them make room.
  for (char lane = 'c'; lane < 'm'; ++lane) say(history(lane), std::string(1, lane));
  bounded(RowType::kBF16, 32 << 10);
  for (char lane = 'c'; lane < 'm'; ++lane) say(history(lane), std::string(1, lane));
  ASSERT_TRUE(engine_->store()->flush().ok());
  close();
  std::uintmax_t n_bytes = 0;
  for (const auto& file : image_files()) n_bytes += std::filesystem::file_size(file);
  EXPECT_LE(n_bytes, 32U << 10);
  open(RowType::kF16);
  EXPECT_GT(kept().n_resumed, 2);
  EXPECT_LT(kept().n_resumed, 12);
}

TEST_F(KeptSessions, a_damaged_image_is_refused_and_its_session_computed_anew) {
  const Said before = say(history('a'), "a");
  say(history('b'), "b");
  close();
  const std::vector<std::filesystem::path> files = image_files();
  ASSERT_EQ(files.size(), 2U);
  flip_bits(files[0]);
  std::filesystem::resize_file(files[1], std::filesystem::file_size(files[1]) / 2);
  open();
  EXPECT_EQ(kept().n_refused, 2);
  EXPECT_EQ(kept().n_resumed, 0);
  EXPECT_THAT(kept().last_error, HasSubstr("lane-"));
  const Said after = say(history('a'), "a");
  EXPECT_EQ(after.text, before.text);
}

TEST_F(KeptSessions, images_that_do_not_fit_the_folders_bound_make_room_the_oldest_first) {
  // Room for about five images of this size, without notes on attention.
  policy_ = "streaming";
  open(RowType::kF16, {.folder = LaneFolderOptions{.folder = images(), .max_bytes = 16 << 10}});
  for (char lane = 'a'; lane < 'm'; ++lane) say(history(lane), std::string(1, lane));
  ASSERT_TRUE(engine_->store()->flush().ok());
  close();
  std::uintmax_t n_bytes = 0;
  for (const auto& file : image_files()) n_bytes += std::filesystem::file_size(file);
  EXPECT_LE(n_bytes, 16U << 10);
  open();
  EXPECT_GT(kept().n_resumed, 0);
  EXPECT_LT(kept().n_resumed, 12);
  EXPECT_LE(say(history('l'), "l").end.turn.from[Origin::kNew], 1) << "the last one is among them";
}

// --- the folder by itself, on a disk that fails ---

LaneImage image_of(const std::string& id, std::int32_t n_turns) {
  return {.id = id, .public_id = id, .image = {.n_turns = n_turns}};
}

std::unique_ptr<LaneFolder> open_folder(FaultFileSystem& system) {
  Result<std::unique_ptr<LaneFolder>> folder = LaneFolder::open({.folder = "/sessions", .system = &system});
  EXPECT_TRUE(folder.ok()) << folder.status().message();
  return *std::move(folder);
}

TEST(LaneFolders, a_power_failure_leaves_the_last_image_or_one_before_it) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    FaultFileSystem system(seed);
    {
      auto folder = open_folder(system);
      folder->save(image_of("a", 1));
      folder->flush();
      for (std::int32_t turn = 2; turn < 6; ++turn) folder->save(image_of("a", turn));
      system.power_off();
    }
    system.power_on();
    auto folder = open_folder(system);
    const std::vector<LaneImage> images = folder->load([](const LaneImage&) { return true; });
    ASSERT_EQ(images.size(), 1U) << "seed " << seed;
    EXPECT_GE(images[0].image.n_turns, 1);
  }
}

TEST(LaneFolders, a_disk_that_fails_now_and_then_costs_images_and_gives_no_wrong_one) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    FaultFileSystem system(seed);
    std::map<std::string, std::int32_t> last;
    {
      auto folder = open_folder(system);
      system.fail_one_in(5);
      for (std::int32_t turn = 1; turn < 40; ++turn) {
        const std::string id(1, static_cast<char>('a' + turn % 4));
        folder->save(image_of(id, turn));
        last[id] = turn;
        if (turn % 7 == 0) folder->flush();
      }
      folder->flush();
      system.fail_one_in(0);
    }
    auto folder = open_folder(system);
    for (const LaneImage& image : folder->load([](const LaneImage&) { return true; })) {
      EXPECT_LE(image.image.n_turns, last.at(image.id));
      EXPECT_EQ(image.image.n_turns % 4, image.id[0] - 'a');
    }
  }
}

TEST(LaneFolders, one_that_is_forgotten_and_saved_again_is_there) {
  FaultFileSystem system;
  {
    auto folder = open_folder(system);
    folder->save(image_of("a", 1));
    folder->forget("", "a");
    folder->save(image_of("a", 2));
    folder->save(image_of("b", 3));
    folder->forget("", "b");
  }
  const std::vector<LaneImage> images = open_folder(system)->load([](const LaneImage&) { return true; });
  ASSERT_EQ(images.size(), 1U);
  EXPECT_EQ(images[0].image.n_turns, 2);
}

// A disk on which somebody looks at the folder, and saves into it, whenever a file is to be removed.
class WatchedDisk final : public FaultFileSystem {
 public:
  Status remove(const std::filesystem::path& path) override {
    if (LaneFolder* const folder = std::exchange(watched_, nullptr); folder != nullptr) {
      n_images_seen_ = folder->stats().n_images;
      folder->save(image_of("again", 7));
    }
    return FaultFileSystem::remove(path);
  }
  void watch(LaneFolder& folder) { watched_ = &folder; }
  [[nodiscard]] std::optional<std::size_t> n_images_seen() const { return n_images_seen_; }

 private:
  LaneFolder* watched_ = nullptr;
  std::optional<std::size_t> n_images_seen_;
};

TEST(LaneFolders, nobody_waits_while_a_file_is_removed_and_what_is_saved_meanwhile_stays) {
  WatchedDisk system;
  {
    auto folder = open_folder(system);
    folder->save(image_of("again", 1));
    folder->flush();
    system.watch(*folder);
    folder->forget("", "again");
    folder->flush();
    EXPECT_EQ(system.n_images_seen(), 0U);
  }
  const std::vector<LaneImage> images = open_folder(system)->load([](const LaneImage&) { return true; });
  ASSERT_EQ(images.size(), 1U);
  EXPECT_EQ(images[0].image.n_turns, 7);
  EXPECT_EQ(system.paths().size(), 1U);
}

}  // namespace
}  // namespace ebb::kept_sessions_test
