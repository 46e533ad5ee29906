// `ebb policy replay` as people and scripts meet it.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/files.h"
#include "tests/program.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kRecording = R"({"block_size": 1, "n_layers": 1,
  "cache_eviction_config": {"start_size": 1, "recent_size": 1, "max_cache_size": 3, "aggregation_mode": "SUM"},
  "steps": [{"prompt": true, "scores": [[1, 1, 1, 1, 1]]}, {"scores": [[1, 1, 1, 1, 1, 1]]}]})";

ProgramResult replay(const std::string& text, const std::vector<std::string>& flags = {}) {
  const TemporaryFile file(".json");
  std::ofstream(file.path()) << text;
  std::vector<std::string> words = {"policy", "replay", file.path().string()};
  words.insert(words.end(), flags.begin(), flags.end());
  return run_ebb(words);
}

TEST(PolicyReplay, prints_a_table_or_json) {
  const ProgramResult table = replay(kRecording);
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("1-3"));
  const ProgramResult json = replay(kRecording, {"--json"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  EXPECT_EQ(nlohmann::json::parse(json.out)["steps"][1]["layers"][0]["evicted"], nlohmann::json({1, 2, 3}));
}

TEST(PolicyReplay, says_why_it_refuses) {
  for (const char* text : {"", "[]", "{", R"({"block_size": 0})"}) {
    const ProgramResult result = replay(text);
    EXPECT_EQ(result.exit_code, 2) << text;
    EXPECT_THAT(result.err, HasSubstr(".json: ")) << text;
    EXPECT_THAT(result.out, IsEmpty());
  }
  EXPECT_EQ(run_ebb({"policy", "replay", "/no/such/file.json"}).exit_code, 1);
  const ProgramResult endless = run_ebb({"policy", "replay", "/dev/zero"});
  EXPECT_EQ(endless.exit_code, 2);
  EXPECT_THAT(endless.err, HasSubstr("more than 67108864 bytes"));
  EXPECT_EQ(run_ebb({"policy"}).exit_code, 2);
}

}  // namespace
}  // namespace ebb
