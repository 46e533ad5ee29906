#include "bench/report.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ebb {
namespace {

TEST(TextTable, AlignsNamesLeftAndNumbersRight) {
  TextTable table({{"model", TextTable::Align::kLeft}, {"tok/s"}});
  table.add_row({"small", "100.5"});
  table.add_row({"a large one", "9"});
  EXPECT_EQ(table.render(),
            "model        tok/s\n"
            "small        100.5\n"
            "a large one      9\n");
}

TEST(TextTable, CountsCharactersNotBytes) {
  TextTable table({{"", TextTable::Align::kLeft}, {""}});
  table.add_row({"µs", "1"});
  table.add_row({"ms", "2"});
  EXPECT_EQ(table.render(), "µs  1\nms  2\n");
}

TEST(TextTable, AGapIsABlankLineAndNoLineEndsInSpaces) {
  TextTable table({{"a", TextTable::Align::kLeft}, {"b", TextTable::Align::kLeft}});
  table.add_row({"x", "long"});
  table.add_gap();
  table.add_row({"y", "s"});
  EXPECT_EQ(table.render(), "a  b\nx  long\n\ny  s\n");
}

TEST(TextTableDeathTest, ARowHasACellForEachColumn) {
  TextTable table({{"a"}, {"b"}});
  EXPECT_DEATH(table.add_row({"only one"}), "1 cells in 2 columns");
}

TEST(Report, SpreadsShowMedianAndRange) {
  EXPECT_EQ(spread_text({.median = 64.25, .min = 61.0, .max = 65.16, .n = 5}), "64.2 (61.0-65.2)");
  EXPECT_EQ(spread_text({.median = 1.625, .min = 1.5, .max = 1.75, .n = 5}, 2), "1.62 (1.50-1.75)");
}

TEST(Report, BytesShowThreeDigitsAtMost) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1.00 kB");
  EXPECT_EQ(bytes_text(999'600), "1.00 MB");
  EXPECT_EQ(bytes_text(64'000'000), "64.0 MB");
  EXPECT_EQ(bytes_text(1.304e9), "1.30 GB");
  EXPECT_EQ(bytes_text(5e15), "5000 TB");
}

class WriteJson : public testing::Test {
 protected:
  WriteJson() { std::filesystem::create_directories(folder_); }
  ~WriteJson() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("ebb_report_test_{}", getpid());
};

TEST_F(WriteJson, WritesWhatAParserReadsBack) {
  const nlohmann::json value = {{"name", "1B q4_k"},
                                {"decode", spread_json({.median = 2, .min = 1, .max = 3, .n = 5})}};
  ASSERT_TRUE(write_json(folder_ / "result.json", value).ok());
  std::ifstream file(folder_ / "result.json");
  EXPECT_EQ(nlohmann::json::parse(file), value);
  EXPECT_EQ(value["decode"]["n"], 5);
}

TEST_F(WriteJson, LeavesNothingElseBehind) {
  ASSERT_TRUE(write_json(folder_ / "result.json", 1).ok());
  const std::filesystem::directory_iterator files(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(WriteJson, ReplacesWhatIsNotUtf8) {
  EXPECT_TRUE(write_json(folder_ / "result.json", {{"name", "\xFF\xFE"}}).ok());
}

TEST_F(WriteJson, AFolderThatIsNotThereIsAnErrorThatNamesTheFile) {
  const Status status = write_json(folder_ / "missing" / "result.json", 1);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find("result.json"), std::string::npos);
}

}  // namespace
}  // namespace ebb
