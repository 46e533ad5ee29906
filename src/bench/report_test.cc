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
