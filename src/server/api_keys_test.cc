#include "server/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

HttpRequest with(const std::string& name, const std::string& value) { return {.headers = {{name, value}}}; }

TEST(ApiKeys, without_keys_everybody_is_one_owner) {
  EXPECT_EQ(ApiKeys().find_owner({}), "");
  EXPECT_TRUE(ApiKeys().is_owner(""));
  EXPECT_FALSE(ApiKeys().is_owner("x"));
}

TEST(ApiKeys, each_key_is_an_owner_and_strangers_are_none) {
  const ApiKeys keys({"alpha", "beta"});
  const auto alpha = keys.find_owner(with("Authorization", "Bearer alpha"));
  const auto beta = keys.find_owner(with("x-api-key", "beta"));
  ASSERT_TRUE(alpha && beta);
  EXPECT_NE(*alpha, *beta);
  EXPECT_TRUE(keys.is_owner(*alpha));
  EXPECT_FALSE(keys.is_owner(""));
  EXPECT_EQ(keys.find_owner(with("X-Api-Key", "alpha")), alpha);
  for (const char* wrong : {"", "alph", "alphaa", "Alpha", "alpha beta"}) {
    EXPECT_FALSE(keys.find_owner(with("Authorization", std::string("Bearer ") + wrong))) << wrong;
  }
  EXPECT_FALSE(keys.find_owner({}));
  EXPECT_FALSE(keys.find_owner(with("Authorization", "alpha")));
}

TEST(ApiKeys, an_empty_key_admits_nobody) {
  const ApiKeys keys({""});
  EXPECT_FALSE(keys.find_owner({}));
  EXPECT_FALSE(keys.find_owner(with("Authorization", "Bearer ")));
  EXPECT_FALSE(keys.find_owner(with("x-api-key", "")));
}

TEST(ApiKeys, an_owners_name_tells_no_key) {
  EXPECT_THAT(ApiKeys({"alpha"}).find_owner(with("x-api-key", "alpha")).value(),
              ::testing::Not(::testing::HasSubstr("alpha")));
}

TEST(ApiKeys, a_file_has_one_key_to_a_line_and_comments) {
  EXPECT_THAT(ApiKeys::parse_lines("# ours\nalpha\r\n\n  beta  \n#gamma\ndelta"),
              ::testing::ElementsAre("alpha", "beta", "delta"));
  EXPECT_TRUE(ApiKeys::parse_lines("# none\n \n").empty());
}

}  // namespace
}  // namespace ebb
