#include "bench/report.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ebb {
namespace {

TEST(Report, spreads_show_median_and_range) {
  EXPECT_EQ(spread_text({.median = 64.25, .min = 61.0, .max = 65.16, .n = 5}), "64.2 (61.0-65.2)");
  EXPECT_EQ(spread_text({.median = 1.625, .min = 1.5, .max = 1.75, .n = 5}, 2), "1.62 (1.50-1.75)");
}

TEST(Report, the_machine_says_how_far_it_drifted_and_whether_its_peak_was_beaten) {
  const Machine machine{.cpu = "toy"};
  const Peak peak{.read_gb_s = {.median = 20, .min = 16, .max = 40, .n = 9},
                  .copy_gb_s = {.median = 8, .min = 8, .max = 9, .n = 9},
                  .multiply_gop_s = {Spread{.median = 1700, .min = 1600, .max = 1800, .n = 9}},
                  .n_threads = 2,
                  .buffer_bytes = 1,
                  .read_way = "somehow"};
  const std::string text = machine_text(machine, peak);
  for (const char* part :
       {"read 20.0 (16.0-40.0) GB/s", "int8 1700 (1600-1800) GOP/s", "9 probes", "somehow", "2.50-fold"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
  EXPECT_EQ(text.find("f32"), std::string::npos) << "a limit that nobody measured: " << text;
  EXPECT_EQ(text.find("did more"), std::string::npos) << text;
  EXPECT_NE(machine_text(machine, peak, {.n_rounds = 9, .n_beaten = 2, .most = 1.2}).find("In 2 of 9 rounds"),
            std::string::npos);
  const auto json = machine_json(machine, peak, {.n_rounds = 9, .n_beaten = 2, .most = 1.2});
  EXPECT_EQ(json["drift"]["read"], 2.5);
  EXPECT_EQ(json["peak_beaten"]["n_beaten"], 2);
  EXPECT_EQ(json["limits"].size(), 1U);
}

TEST(Report, shares_show_median_and_range_or_that_there_is_no_limit) {
  EXPECT_EQ(share_text(Spread{.median = 0.92, .min = 0.881, .max = 1.034, .n = 3}), "92 (88-103) %");
  EXPECT_EQ(share_text(std::optional<PeakShare>()), "-");
}

class WriteJson : public testing::Test {
 protected:
  WriteJson() { std::filesystem::create_directories(folder_); }
  ~WriteJson() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("ebb_report_test_{}", getpid());
};

TEST_F(WriteJson, writes_what_a_parser_reads_back) {
  const nlohmann::json value = {{"name", "1B q4_k"},
                                {"decode", spread_json({.median = 2, .min = 1, .max = 3, .n = 5})}};
  ASSERT_TRUE(write_json(folder_ / "result.json", value).ok());
  std::ifstream file(folder_ / "result.json");
  EXPECT_EQ(nlohmann::json::parse(file), value);
  EXPECT_EQ(value["decode"]["n"], 5);
}

TEST_F(WriteJson, leaves_nothing_else_behind) {
  ASSERT_TRUE(write_json(folder_ / "result.json", 1).ok());
  const std::filesystem::directory_iterator files(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(WriteJson, replaces_what_is_not_utf8) {
  EXPECT_TRUE(write_json(folder_ / "result.json", {{"name", "\xFF\xFE"}}).ok());
}

TEST_F(WriteJson, a_folder_that_is_not_there_is_an_error_that_names_the_file) {
  const Status status = write_json(folder_ / "missing" / "result.json", 1);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find("result.json"), std::string::npos);
}

}  // namespace
}  // namespace ebb
