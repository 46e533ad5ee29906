#include "engine/lane_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/fault_file_system.h"

namespace ebb {
namespace {

// About 4 kB.
LaneImage image_of(std::string owner, std::string id) {
  LaneImage image{.owner = std::move(owner), .id = id, .public_id = std::move(id)};
  image.image.tokens.assign(1000, Token(7));
  return image;
}

TEST(LaneFolders, where_images_have_all_the_room_there_is_whoever_has_most_of_it_loses_the_oldest) {
  FaultFileSystem system;
  const LaneFolderOptions options{.folder = "/sessions", .max_bytes = 22'000, .system = &system};
  {
    const auto folder = LaneFolder::open(options).value();
    folder->save(image_of("beta", "b"));
    for (const char* id : {"a1", "a2", "a3", "a4"}) folder->save(image_of("alpha", id));
    folder->save(image_of("gamma", "c"));
    folder->flush();
    EXPECT_EQ(folder->stats().n_dropped, 1);
  }
  std::vector<std::string> kept;
  for (const LaneImage& image : LaneFolder::open(options).value()->load([](const LaneImage&) { return true; })) {
    kept.push_back(image.public_id);
  }
  EXPECT_THAT(kept, ::testing::ElementsAre("b", "a2", "a3", "a4", "c")) << "the oldest of all is another's";
}

}  // namespace
}  // namespace ebb
