#include "base/text_table.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(TextTable, aligns_names_left_and_numbers_right) {
  TextTable table({{"model", TextTable::Align::kLeft}, {"tok/s"}});
  table.add_row({"small", "100.5"});
  table.add_row({"a large one", "9"});
  EXPECT_EQ(table.render(),
            "model        tok/s\n"
            "small        100.5\n"
            "a large one      9\n");
}

TEST(TextTable, counts_characters_not_bytes) {
  TextTable table({{"", TextTable::Align::kLeft}, {""}});
  table.add_row({"µs", "1"});
  table.add_row({"ms", "2"});
  EXPECT_EQ(table.render(), "µs  1\nms  2\n");
}

TEST(TextTable, a_gap_is_a_blank_line_and_no_line_ends_in_spaces) {
  TextTable table({{"a", TextTable::Align::kLeft}, {"b", TextTable::Align::kLeft}});
  table.add_row({"x", "long"});
  table.add_gap();
  table.add_row({"y", "s"});
  EXPECT_EQ(table.render(), "a  b\nx  long\n\ny  s\n");
}

TEST(TextTableDeathTest, a_row_has_a_cell_for_each_column) {
  TextTable table({{"a"}, {"b"}});
  EXPECT_DEATH(table.add_row({"only one"}), "1 cells in 2 columns");
}

TEST(TextTable, bytes_show_three_digits_at_most) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1.00 kB");
  EXPECT_EQ(bytes_text(999'600), "1.00 MB");
  EXPECT_EQ(bytes_text(64'000'000), "64.0 MB");
  EXPECT_EQ(bytes_text(1.304e9), "1.30 GB");
  EXPECT_EQ(bytes_text(5e15), "5000 TB");
}

}  // namespace
}  // namespace ebb
