#include "replay/areas_replay.h"

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ebb {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A recording of blocks of 4 whose steps are given; one layer.
std::string recording(const std::string& steps, const std::string& config = "", const std::string& rest = "") {
  return R"({"block_size": 4, "n_layers": 1, "cache_eviction_config": {"start_size": 4, "recent_size": 4,
             "max_cache_size": 16, "aggregation_mode": "SUM", "snapkv_window_size": 0)" +
         config + "}" + rest + R"(, "steps": [)" + steps + "]}";
}

std::string step(int n_tokens, const std::string& rest = "") {
  std::string scores;
  for (int i = 0; i < n_tokens; ++i) scores += i == 0 ? "1" : ",1";
  return "{\"scores\": [[" + scores + "]]" + rest + "}";
}

Result<AreasReplayReport> run(const std::string& text) {
  EBB_ASSIGN_OR_RETURN(const AreasReplay replay, read_areas_replay(text));
  return run_areas_replay(replay);
}

std::string refusal(const std::string& text) { return run(text).status().message(); }

const std::string kPrompt = step(23, R"(, "prompt": true)");

std::string text_of_docs() {
  std::ifstream file(EBB_SOURCE_DIR "/docs/policy_replay.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t begin = page.find("```json\n") + 8;
  return page.substr(begin, page.find("```\n", begin) - begin);
}

TEST(AreasReplay, says_what_left_each_layer_and_how_full_the_pool_was) {
  const AreasReplayReport report = run(recording(kPrompt + "," + step(24) + "," + step(17))).value();
  ASSERT_EQ(report.rows.size(), 3U);
  EXPECT_THAT(report.rows[1].layers[0].eviction.victims, ElementsAre(1, 2));
  EXPECT_EQ(report.rows[1].n_cached, 24);
  EXPECT_EQ(report.rows[1].n_left, 16);
  EXPECT_EQ(report.rows[2].n_processed, 25);
  EXPECT_EQ(report.n_evicted, 8);
  EXPECT_EQ(report.n_pool_blocks, 6);
  EXPECT_EQ(report.max_usage, 100.0);
  EXPECT_NEAR(report.last_usage, 500.0 / 6, 1e-9);
}

TEST(AreasReplay, reads_the_example_of_the_docs) {
  const Result<AreasReplay> replay = read_areas_replay(text_of_docs());
  ASSERT_TRUE(replay.ok()) << replay.status().message();
  const Result<AreasReplayReport> report = run_areas_replay(*replay);
  ASSERT_TRUE(report.ok()) << report.status().message();
  // Of [1, 5) two stay; one of the three lowest is rescued.
  const AreasReplayLayer& layer = report->rows[1].layers[0];
  EXPECT_EQ(layer.eviction.victims.size(), 2U);
  EXPECT_EQ(layer.eviction.rescued.size(), 1U);
  EXPECT_EQ(layer.shifts.back(), (BlockShift{.from = 5, .to = 3, .n_tokens = 8}));
  EXPECT_THAT(areas_replay_text(*replay, *report),
              AllOf(HasSubstr("rescued"), HasSubstr("turned back"), HasSubstr("by 8")));
}

TEST(AreasReplay, prints_tables_for_people_and_json_for_programs) {
  const std::string text = recording(kPrompt + "," + step(24), R"(, "apply_rotation": true)");
  const AreasReplay replay = read_areas_replay(text).value();
  const AreasReplayReport report = run_areas_replay(replay).value();
  const std::string table = areas_replay_text(replay, report);
  EXPECT_THAT(table, AllOf(HasSubstr("1-2"), HasSubstr("3-5 by 8"), HasSubstr("100.0%"), HasSubstr("a prompt of 23")));
  const nlohmann::json json = nlohmann::json::parse(areas_replay_json(report));
  EXPECT_EQ(json["steps"][1]["layers"][0]["evicted"], nlohmann::json({1, 2}));
  EXPECT_EQ(json["steps"][1]["layers"][0]["rotation"][0], nlohmann::json({{"from", 3}, {"to", 1}, {"tokens", 8}}));
  EXPECT_EQ(json["max_cache_size_after_eviction"], 19);
  EXPECT_THAT(areas_replay_text(replay, run(recording(kPrompt)).value()), HasSubstr("nothing leaves"));
}

TEST(AreasReplay, refuses_a_configuration_with_the_schemes_reason) {
  EXPECT_THAT(refusal(R"({"block_size": 4, "n_layers": 1, "cache_eviction_config": {"start_size": 0}, "steps": []})"),
              HasSubstr("start_size is 0"));
  EXPECT_THAT(refusal(recording(kPrompt, R"(, "max_cache_size": 18)")),
              HasSubstr("step 1: max_cache_size is 18, which is no"));
  EXPECT_THAT(refusal(recording(kPrompt, R"(, "kvcrush_config": {"anchor_point_mode": "MIDDLE"})")),
              HasSubstr("no KVCrush anchor is called 'MIDDLE'"));
  EXPECT_THAT(refusal(recording(kPrompt, R"(, "aggregation_mode": "MAX")")), HasSubstr("there are SUM, NORM_SUM"));
  EXPECT_THAT(refusal(recording(kPrompt, R"(, "recent_sze": 8)")),
              HasSubstr("'cache_eviction_config.recent_sze': is not known"));
  EXPECT_EQ(run(recording(kPrompt, R"(, "recent_size": -4)")).status().code(), Code::kInvalidArgument);
}

TEST(AreasReplay, refuses_absurd_sizes_before_it_makes_room_for_them) {
  const auto with = [](const char* fields) {
    return std::string("{") + fields + R"(, "cache_eviction_config": {}, "steps": []})";
  };
  EXPECT_THAT(refusal(with(R"("block_size": 4097, "n_layers": 1)")), HasSubstr("1 <= value <= 4096"));
  EXPECT_THAT(refusal(with(R"("block_size": 0, "n_layers": 1)")), HasSubstr("'block_size'"));
  EXPECT_THAT(refusal(with(R"("block_size": 1, "n_layers": 1025)")), HasSubstr("'n_layers'"));
  EXPECT_THAT(refusal(with(R"("n_layers": 1)")), HasSubstr("'block_size': must be an integer"));
  EXPECT_THAT(read_areas_replay(std::string(kMostReplayBytes + 1, ' ')).status().message(),
              HasSubstr("at most 67108864"));
  std::string skipped = R"({"prompt": true, "scores": [[1]], "skipped": [0)";
  for (int i = 1; i < 4096; ++i) skipped += "," + std::to_string(i);
  EXPECT_THAT(
      refusal(R"({"block_size": 4096, "n_layers": 1024, "cache_eviction_config": {}, "steps": [)" + skipped + "]}]}"),
      HasSubstr("at most 16777216"));
}

TEST(AreasReplay, names_the_step_that_cannot_be) {
  EXPECT_THAT(refusal(recording(kPrompt + "," + step(23))),
              HasSubstr("step 2: scores of 23 tokens, and 23 were cached"));
  EXPECT_THAT(refusal(recording(kPrompt + "," + step(25, R"(, "scheduled": 1)"))), HasSubstr("step 2: 25 scores"));
  EXPECT_THAT(refusal(recording(kPrompt + "," + step(24, R"(, "processed": 22)"))), HasSubstr("says that 22 tokens"));
  EXPECT_THAT(refusal(recording(step(23))), HasSubstr("'prompt_tokens': is needed"));
  EXPECT_THAT(refusal(recording(step(23) + "," + kPrompt)), HasSubstr("the prompt's steps come first"));
  EXPECT_THAT(refusal(recording(kPrompt, "", R"(, "prompt_tokens": 9)")),
              HasSubstr("is 9, and the steps of the prompt have 23"));
  EXPECT_THAT(refusal(recording(R"({"prompt": true, "scores": [[1, "a"]]})")),
              HasSubstr("layer 0 must be an array of numbers"));
  EXPECT_THAT(refusal(recording(R"({"prompt": true, "scores": [[1e300]]})")), HasSubstr("none above 3.4"));
  EXPECT_THAT(refusal(recording(R"({"scores": []})", "", R"(, "prompt_tokens": 9)")), HasSubstr("scores of 0 tokens"));
  const Status status = run(recording(kPrompt, "", R"(, "num_kv_blocks": 5)")).status();
  EXPECT_EQ(status.code(), Code::kOutOfBudget);
  EXPECT_THAT(status.message(), HasSubstr("23 tokens need 6 blocks, and num_kv_blocks is 5"));
}

TEST(AreasReplay, ends_where_the_original_does_and_only_there) {
  const std::string rotation = R"(, "apply_rotation": true)";
  const std::string batched = R"(, "max_num_batched_tokens": 4)";
  const std::string upstream = batched + R"(, "upstream": true)";
  const std::string steps = kPrompt + "," + step(24);
  EXPECT_TRUE(run(recording(steps, rotation, batched)).ok());
  EXPECT_THAT(refusal(recording(steps, rotation, upstream)), HasSubstr("the rotation table has 2 rows"));
}

TEST(AreasReplay, takes_diversity_as_rows_or_in_one_array) {
  const std::string adaptive = R"(, "aggregation_mode": "ADAPTIVE_RKV")";
  const std::string first = step(19, R"(, "prompt": true)");
  const std::string flat =
      R"(, "diversity": [[0,0,0,0,0,0,0,0,0,0,0,0, 0,0,0,0,0,0,0,0,0,0,0,0, 0,0,0,0,0,0,0,0,0,0,0,0]])";
  const std::string rows =
      R"(, "diversity": [[[0,0,0,0,0,0,0,0,0,0,0,0],[0,0,0,0,0,0,0,0,0,0,0,0],[0,0,0,0,0,0,0,0,0,0,0,0]]])";
  for (const std::string& diversity : {flat, rows}) {
    const Result<AreasReplayReport> report = run(recording(first + "," + step(20, diversity), adaptive));
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_THAT(report->rows[1].layers[0].eviction.victims, ElementsAre(3));
  }
  EXPECT_THAT(refusal(recording(first + "," + step(20), adaptive)),
              HasSubstr("step 2: layer 0 has diversity of 0 values"));
}

}  // namespace
}  // namespace ebb
