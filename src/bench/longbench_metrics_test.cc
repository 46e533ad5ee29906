#include "bench/longbench_metrics.h"

#include <vector>

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(LongBenchMetrics, f1_counts_words_without_articles_punctuation_and_capitals) {
  EXPECT_DOUBLE_EQ(qa_f1("The North Gate!", "a north gate"), 1.0);
  // Two of three words said are right, and two of four right words are said.
  EXPECT_DOUBLE_EQ(qa_f1("old north gate", "north gate, near town"), 2.0 * (2.0 / 3) * (2.0 / 4) / (2.0 / 3 + 2.0 / 4));
  EXPECT_EQ(qa_f1("south", "north"), 0.0);
  EXPECT_EQ(qa_f1("the a an", "north"), 0.0);
}

TEST(LongBenchMetrics, f1_counts_a_word_as_often_as_it_stands_on_both_sides) {
  EXPECT_DOUBLE_EQ(qa_f1("red red red", "red red"), 2.0 * (2.0 / 3) / (2.0 / 3 + 1.0));
  EXPECT_DOUBLE_EQ(qa_f1("it is 4711 4711", "4711"), 2.0 * (1.0 / 4) / (1.0 / 4 + 1.0));
}

// What the Python package `rouge` 1.0.1 says.
TEST(LongBenchMetrics, rouge_l_is_that_of_the_package_which_longbench_takes) {
  struct Case {
    const char* reply;
    const char* answer;
    double wanted;
  };
  for (const Case& of : {
           Case{"the cat sat on the mat", "the cat is on the mat", 0.799999995},
           Case{"The shepherd left at dawn. Rain came later.", "At dawn the shepherd left. Later the rain came.",
                0.374999995},
           Case{"a b c. d e f", "f e d. c b a", 0.333333328},
           Case{"One. Two.\n", "One. Two. Three.", 0.666666662},
           Case{"w1 w2 w6 w7 w8. w1 w3 w8 w9 w5", "w1 w2 w3 w4 w5", 0.615384611},
           Case{"a a b b a", "a b a b", 0.999999995},
           Case{"", "something", 0.0},
           Case{"...", "something", 0.0},
           Case{"x y", "z", 0.0},
       }) {
    EXPECT_NEAR(rouge_l(of.reply, of.answer), of.wanted, 1e-9) << of.reply << " | " << of.answer;
  }
}

TEST(LongBenchMetrics, a_class_is_right_as_far_as_no_other_is_named_too) {
  const std::vector<std::string> classes = {"Date", "Birth date", "City", "Other location"};
  EXPECT_EQ(classification("City", "City", classes), 1.0);
  EXPECT_EQ(classification("City or Other location", "City", classes), 0.5);
  EXPECT_EQ(classification("Other location", "City", classes), 0.0);
  EXPECT_EQ(classification("City", "Village", classes), 0.0);
}

TEST(LongBenchMetrics, a_class_whose_name_is_part_of_the_right_one_is_no_other) {
  const std::vector<std::string> classes = {"date", "Birth date", "Birth"};
  EXPECT_EQ(classification("Birth date", "Birth date", classes), 1.0);
  EXPECT_EQ(classification("Birth date", "date", classes), 1.0 / 3);
}

}  // namespace
}  // namespace ebb
