#include "cli/store_flag.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(StoreFlag, names_tiers_and_their_sizes) {
  const Result<ColdStoreOptions> options = parse_store_flag("ram=512M,disk=/tmp/cold,disk-max=2G");
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->ram_bytes, std::size_t{512} << 20);
  ASSERT_TRUE(options->disk.has_value());
  EXPECT_EQ(options->disk->folder, "/tmp/cold");
  EXPECT_EQ(options->disk->max_bytes, std::uint64_t{2} << 30);
}

TEST(StoreFlag, what_is_not_named_is_not_there) {
  EXPECT_EQ(parse_store_flag("disk=/tmp/cold")->ram_bytes, 0U);
  EXPECT_FALSE(parse_store_flag("ram=1000")->disk.has_value());
  EXPECT_EQ(parse_store_flag("ram=1000")->ram_bytes, 1000U);
  EXPECT_EQ(parse_store_flag("")->ram_bytes, 0U);
}

TEST(StoreFlag, a_size_is_in_bytes_or_a_unit) {
  EXPECT_EQ(*parse_size("0"), 0U);
  EXPECT_EQ(*parse_size("256M"), std::uint64_t{256} << 20);
  for (const char* const text : {"", "M", "-1", "1x", "1MM", "99999999999999999999", "99999999999T"}) {
    EXPECT_FALSE(parse_size(text).ok()) << text;
  }
}

TEST(StoreFlag, nonsense_is_refused_with_what_would_be_understood) {
  for (const char* text : {"ram=", "ram=x", "ram=1Q", "ram=1GB", "ram=-1", "ram=99999999999T", "disk=", "tape=1G",
                           "ram", "disk-max=1G", "ram=1G,,disk=/tmp/x"}) {
    EXPECT_EQ(parse_store_flag(text).status().code(), Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace ebb
