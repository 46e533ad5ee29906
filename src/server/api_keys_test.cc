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

TEST(ApiKeys, that_are_listed_twice_are_one) {
  ApiKeys keys({"alpha", "alpha"});
  EXPECT_EQ(keys.size(), 1U);
  ASSERT_TRUE(keys.add_lines("beta\nalpha\n" + keys.hashed_lines()[0] + "\nbeta\n").ok());
  EXPECT_EQ(keys.size(), 2U);
}

TEST(ApiKeys, an_owners_name_tells_no_key) {
  EXPECT_THAT(ApiKeys({"alpha"}).find_owner(with("x-api-key", "alpha")).value(),
              ::testing::Not(::testing::HasSubstr("alpha")));
}

TEST(ApiKeys, a_file_has_one_key_to_a_line_and_comments) {
  ApiKeys keys;
  ASSERT_TRUE(keys.add_lines("# ours\nalpha\r\n\n  beta  \n#gamma\ndelta").ok());
  EXPECT_EQ(keys.hashed_lines(), ApiKeys({"alpha", "beta", "delta"}).hashed_lines());
  ApiKeys none;
  ASSERT_TRUE(none.add_lines("# none\n \n").ok());
  EXPECT_TRUE(none.empty());
}

// FIPS 180's example.
constexpr const char* kHashOfAbc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(ApiKeys, a_hashed_line_lets_in_the_same_owner_as_the_key_itself) {
  ApiKeys hashed;
  ASSERT_TRUE(hashed.add_lines("alpha\n" + std::string(kHashOfAbc) + "\n").ok());
  const ApiKeys plain({"alpha", "abc"});
  EXPECT_EQ(hashed.hashed_lines(), plain.hashed_lines());
  for (const char* key : {"alpha", "abc"}) {
    const auto owner = hashed.find_owner(with("x-api-key", key));
    ASSERT_TRUE(owner) << key;
    EXPECT_EQ(owner, plain.find_owner(with("x-api-key", key)));
    EXPECT_TRUE(hashed.is_owner(*owner));
  }
  EXPECT_FALSE(hashed.find_owner(with("x-api-key", "beta")));
}

TEST(ApiKeys, a_hash_is_no_key) {
  ApiKeys keys;
  ASSERT_TRUE(keys.add_lines(kHashOfAbc).ok());
  EXPECT_FALSE(keys.find_owner(with("x-api-key", kHashOfAbc)));
  EXPECT_FALSE(keys.find_owner(with("x-api-key", std::string(kHashOfAbc).substr(7))));
}

TEST(ApiKeys, a_malformed_hash_is_refused_by_the_number_of_its_line) {
  const std::string hash = kHashOfAbc;
  for (const std::string& line :
       {std::string("sha256:"), hash.substr(0, hash.size() - 1), hash + "0", hash.substr(0, hash.size() - 1) + "g",
        "sha256: " + hash.substr(8), "sha256:-1" + hash.substr(9)}) {
    ApiKeys keys;
    const Status status = keys.add_lines("alpha\n# ours\n" + line + "\n");
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << line;
    EXPECT_THAT(status.message(), ::testing::StartsWith("line 3: "));
    EXPECT_THAT(status.message(), ::testing::Not(::testing::HasSubstr("7816bf8f")));
  }
}

TEST(ApiKeys, made_keys_are_long_and_not_made_twice) {
  const std::string key = ApiKeys::make_key().value();
  EXPECT_EQ(key.size(), 68U);
  EXPECT_NE(key, ApiKeys::make_key().value());
  EXPECT_TRUE(ApiKeys({key}).find_owner(with("Authorization", "Bearer " + key)));
}

}  // namespace
}  // namespace ebb
