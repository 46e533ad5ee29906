#include "policy/areas_release.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/areas_usage.h"

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Sets = std::vector<std::vector<std::int32_t>>;

std::string refusal(const Sets& victims) { return group_victims(victims, 2, 8).status().message(); }

TEST(AreasRelease, groups_the_kth_victims_of_all_layers) {
  EXPECT_THAT(group_victims(Sets{{1, 4}, {3, 5}}, 2, 8).value(), ElementsAre(ElementsAre(1, 3), ElementsAre(4, 5)));
  EXPECT_TRUE(group_victims(Sets{{}, {}}, 2, 8).value().empty());
}

TEST(AreasRelease, refuses_what_layers_cannot_free_together) {
  EXPECT_THAT(refusal({{1}}), HasSubstr("victims of 1 layers, and the model has 2"));
  EXPECT_THAT(group_victims(Sets{}, 0, 8).status().message(), HasSubstr("0 layers"));
  EXPECT_THAT(refusal({{1}, {1, 2}}), HasSubstr("layer 1 gives back 2 blocks and layer 0 1"));
  EXPECT_THAT(refusal({{8}, {1}}), HasSubstr("block 8 of a table of 8"));
  EXPECT_THAT(refusal({{1}, {-1}}), HasSubstr("layer 1 gives back block -1"));
  EXPECT_THAT(refusal({{2, 2}, {1, 2}}), HasSubstr("name each once"));
}

TEST(AreasRelease, refuses_a_group_of_which_only_some_blocks_came_free) {
  EXPECT_TRUE(check_group_released(std::vector<std::int32_t>{0, 0}).ok());
  EXPECT_TRUE(check_group_released(std::vector<std::int32_t>{1, 2}).ok());
  EXPECT_THAT(check_group_released(std::vector<std::int32_t>{0, 1, 0}).message(), HasSubstr("2 of the 3 blocks"));
}

TEST(AreasRelease, refuses_sequences_of_one_group_that_evict_unequally) {
  EXPECT_TRUE(check_equal_victims(std::vector<std::int32_t>{3, 3}).ok());
  EXPECT_TRUE(check_equal_victims({}).ok());
  EXPECT_THAT(check_equal_victims(std::vector<std::int32_t>{3, 3, 2}).message(), HasSubstr("sequence 2 of the group"));
}

TEST(UsageMeter, gives_the_last_the_most_and_the_mean_of_the_last_thousand) {
  UsageMeter usage;
  EXPECT_EQ(usage.average(), 0.0);
  usage.sample(8, 8);
  usage.sample(2, 8);
  EXPECT_EQ(usage.last(), 25.0);
  EXPECT_EQ(usage.max(), 100.0);
  EXPECT_EQ(usage.average(), 62.5);
  for (int i = 0; i < 999; ++i) usage.sample(4, 8);
  EXPECT_DOUBLE_EQ(usage.average(), (25.0 + 999 * 50.0) / 1000) << "the first is no longer among them";
  EXPECT_EQ(usage.max(), 100.0) << "it was the most all the same";
  usage.restart();
  EXPECT_EQ(usage.max(), 0.0);
}

}  // namespace
}  // namespace ebb
