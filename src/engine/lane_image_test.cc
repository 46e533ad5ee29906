#include "engine/lane_image.h"

#include <gtest/gtest.h>

#include "base/byte_io.h"

namespace ebb {
namespace {

LaneImage lane_with(std::string policy) {
  return {.block_size = 16,
          .saved_at = 42,
          .owner = "o",
          .id = "client~root",
          .public_id = "client~root",
          .policy = std::move(policy),
          .image = {}};
}

TEST(LaneImage, comes_back_as_it_was) {
  const Result<LaneImage> lane = decode_lane_image(encode_lane_image(lane_with("snapkv:window=16")));
  ASSERT_TRUE(lane.ok()) << lane.status().message();
  EXPECT_EQ(lane->owner, "o");
  EXPECT_EQ(lane->public_id, "client~root");
  EXPECT_EQ(lane->policy, "snapkv:window=16");
  EXPECT_EQ(lane->sparse_prompt, "none");
  EXPECT_EQ(lane->saved_at, 42);
}

// Earlier versions: 1 has no policy, 1 and 2 no sparse prompt; each is a length and the text.
TEST(LaneImage, of_earlier_versions_has_no_policy_of_its_own_and_was_read_densely) {
  const std::size_t texts = 8 + 4 + 4 + 16 + 16 + 8;
  for (const int version : {1, 2}) {
    LaneImage given = lane_with("");
    given.sparse_prompt = "abcdef";
    std::vector<std::byte> bytes = encode_lane_image(given);
    const auto policy = bytes.begin() + static_cast<std::ptrdiff_t>(texts + (4 + 1) + 2 * (4 + 11));
    bytes.erase(policy + (version == 1 ? 0 : 4), policy + 4 + 4 + 6);
    bytes[8] = static_cast<std::byte>(version);
    bytes.resize(bytes.size() - sizeof(Hash128));
    ByteWriter out;
    out.put_bytes(bytes);
    out.put(hash_bytes(out.bytes()));
    const Result<LaneImage> lane = decode_lane_image(out.bytes());
    ASSERT_TRUE(lane.ok()) << lane.status().message();
    EXPECT_EQ(lane->public_id, "client~root");
    EXPECT_EQ(lane->policy, "");
    EXPECT_EQ(lane->sparse_prompt, "none");
    out.bytes()[8] = std::byte{4};
    EXPECT_EQ(decode_lane_image(out.bytes()).status().code(), Code::kUnsupported);
  }
}

}  // namespace
}  // namespace ebb
