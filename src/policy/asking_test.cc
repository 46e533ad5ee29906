#include "policy/asking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Asking, a_line_that_asks_between_pages_is_found_and_pages_that_ask_are_not) {
  EXPECT_THAT(find_asked_lines("The mill stood by the river. Was it old? Nobody knew, and nobody asked.\n"
                               "What is the code of the red box?\n"
                               "The winter was long.\n"),
              ElementsAre("What is the code of the red box?"));
  EXPECT_THAT(
      find_asked_lines("The mill stood.\n\nBy the way: where does Ada live? And who sold the boat?\n\nIt stood."),
      ElementsAre("By the way: where does Ada live? And who sold the boat?"));
  std::string ten;
  for (int i = 0; i < 10; ++i) ten += "What is the code of red box number " + std::to_string(i) + "? ";
  EXPECT_THAT(find_asked_lines("The mill stood.\n" + ten + "\nIt stood.\n"),
              ElementsAre(ten.substr(0, ten.size() - 1)));
  EXPECT_THAT(find_asked_lines("- Where does Ada live?\n- Who sold the boat?\n"),
              ElementsAre("Where does Ada live?", "Who sold the boat?"));
  EXPECT_THAT(find_asked_lines("**Question:** When was Gaha founded? Answer in one word.\n"),
              ElementsAre("Question:** When was Gaha founded? Answer in one word."));
}

TEST(Asking, people_who_are_quoted_ask_nobody) {
  EXPECT_THAT(find_asked_lines("\"Well, Prince, what do you say to that?\"\n"), IsEmpty());
  EXPECT_THAT(find_asked_lines("\"I know all about it.\nWhat do you say to that?\nTell me.\"\n"), IsEmpty());
  EXPECT_THAT(find_asked_lines("> What is the code of the red box?\n"), IsEmpty());
  EXPECT_THAT(find_asked_lines("\u201cWhat do you say to that?\u201d\n\u2014 O\u00f9 est la bo\u00eete ?\n"),
              IsEmpty());
  // A mark that nobody closed goes as far as its paragraph.
  EXPECT_THAT(find_asked_lines("The board is 3\" wide.\n\nWhere is the red box?\n"),
              ElementsAre("Where is the red box?"));
}

TEST(Asking, lines_that_are_cut_within_a_sentence_are_none) {
  EXPECT_THAT(find_asked_lines("he turned. Somebody had to know\nwhat was to become of it?\n"), IsEmpty());
}

TEST(Asking, rows_around_a_line_need_no_marks) {
  EXPECT_THAT(find_asked_lines("2026-11-26 12:00:01 order=71823 carrier=velkor weight=12\n"
                               "What is the weight of order 71823?\n"
                               "2026-11-26 12:00:02 order=71824 carrier=quagga weight=13\n"),
              ElementsAre("What is the weight of order 71823?"));
}

TEST(Asking, what_says_something_first_counts_where_nothing_asks_alone) {
  const std::string wondered = "There is one thing that I wondered about. Where does Ada live?";
  EXPECT_THAT(find_asked_lines("It rained.\n" + wondered + "\nIt rained.\n"), ElementsAre(wondered));
  EXPECT_THAT(find_asked_lines(wondered + "\nWho sold the boat?\n"), ElementsAre("Who sold the boat?"));
}

TEST(Asking, what_demands_stands_alone_and_code_does_not) {
  EXPECT_THAT(find_asked_lines("It rained.\n\nPlease name the owner of the mill.\n\nIt rained.\n"),
              ElementsAre("Please name the owner of the mill."));
  EXPECT_THAT(find_asked_lines("int f() {\n  return the_value(of, it);\n}\n"), IsEmpty());
  EXPECT_THAT(find_asked_lines("const int x = wide ? 3 : 4;\nhttps://example.org/page?id=three\n"), IsEmpty());
}

TEST(Asking, other_scripts_ask_with_marks_of_their_own) {
  EXPECT_THAT(find_asked_lines(
                  "\u7ea2\u8272\u7684\u8239\u5f88\u65e7\u3002\n\u7eff\u8272\u7684\u8239\u5728\u54ea\u91cc\uff1f\n"),
              ElementsAre("\u7eff\u8272\u7684\u8239\u5728\u54ea\u91cc\uff1f"));
}

TEST(Asking, nothing_and_odd_bytes_are_none) {
  EXPECT_THAT(find_asked_lines(""), IsEmpty());
  EXPECT_THAT(find_asked_lines("\n\n?\n??\n"), IsEmpty());
  EXPECT_THAT(find_asked_lines(std::string(1000, '\x80') + "?"), testing::SizeIs(testing::Le(1U)));
}

}  // namespace
}  // namespace ebb
