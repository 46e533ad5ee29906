#include "session/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::ElementsAre;

Span span(std::int32_t begin, std::int32_t end) { return {Position(begin), Position(end)}; }

Parts three_parts() {
  Parts parts;
  parts.add({.span = span(0, 10), .source = Source::kSystem, .name = "system", .priority = 3.0});
  parts.add({.span = span(10, 40), .source = Source::kTool, .name = "file:a.py", .pinned = true});
  parts.add({.span = span(40, 50), .source = Source::kUser, .name = "file:a.py"});
  return parts;
}

TEST(Parts, a_block_takes_the_source_of_its_largest_part_and_the_firmest_hold) {
  const Parts parts = three_parts();
  const Part both = parts.merged(span(0, 16));
  EXPECT_EQ(both.source, Source::kSystem);
  EXPECT_EQ(both.name, "system");
  EXPECT_TRUE(both.pinned);
  EXPECT_EQ(both.priority, 3.0);
  EXPECT_EQ(parts.merged(span(16, 32)).source, Source::kTool);
  EXPECT_FALSE(parts.merged(span(40, 50)).pinned);
}

TEST(Parts, positions_of_no_part_are_ordinary) {
  const Part part = three_parts().merged(span(64, 80));
  EXPECT_EQ(part.priority, 1.0);
  EXPECT_FALSE(part.pinned);
}

TEST(Parts, a_name_may_be_that_of_several_parts_and_pins_reach_all) {
  Parts parts = three_parts();
  EXPECT_THAT(parts.find("file:a.py"), ElementsAre(span(10, 40), span(40, 50)));
  EXPECT_EQ(parts.set_pinned("file:a.py", true), 2);
  EXPECT_TRUE(parts.merged(span(40, 50)).pinned);
  EXPECT_EQ(parts.set_pinned("file:a.py", false), 2);
  EXPECT_FALSE(parts.merged(span(16, 32)).pinned);
  EXPECT_EQ(parts.set_priority("system", 0.5), 1);
  EXPECT_EQ(parts.set_pinned("nobody", true), 0);
}

TEST(Parts, the_last_part_grows_and_a_cut_forgets_what_lies_behind) {
  Parts parts = three_parts();
  parts.extend_last(7);
  EXPECT_EQ(parts.all().back().span, span(40, 57));
  parts.truncate(Position(45));
  EXPECT_EQ(parts.all().back().span, span(40, 45));
  parts.truncate(Position(40));
  EXPECT_EQ(parts.all().size(), 2U);
  parts.truncate(Position(0));
  EXPECT_TRUE(parts.all().empty());
}

TEST(Parts, a_name_that_was_cut_is_found_no_more_and_may_be_given_anew) {
  Parts parts = three_parts();
  parts.truncate(Position(40));
  EXPECT_THAT(parts.find("file:a.py"), ElementsAre(span(10, 40)));
  parts.truncate(Position(10));
  EXPECT_TRUE(parts.find("file:a.py").empty());
  parts.add({.span = span(10, 20), .name = "file:a.py"});
  EXPECT_EQ(parts.set_priority("file:a.py", 2.0), 1);
  EXPECT_EQ(parts.all().back().priority, 2.0);
}

TEST(Parts, what_is_said_again_is_held_as_firmly_as_it_asks_and_asking_for_nothing_lets_nothing_go) {
  Parts parts = three_parts();
  const std::vector<PromptPart> asked = {
      {.name = "system"}, {.name = "file:a.py", .priority = 2.0}, {.name = "file:a.py", .pinned = true}};
  EXPECT_EQ(parts.hold_as_asked(asked), 2);
  EXPECT_EQ(parts.all()[0].priority, 3.0);
  for (const std::size_t i : {1U, 2U}) {
    EXPECT_TRUE(parts.all()[i].pinned);
    EXPECT_EQ(parts.all()[i].priority, 2.0);
  }
}

TEST(Parts, a_history_of_many_parts_that_carry_priorities_visits_each_once_whether_names_differ_or_not) {
  constexpr std::int32_t kParts = 20'000;
  for (const bool names_differ : {true, false}) {
    Parts parts;
    std::vector<PromptPart> asked;
    for (std::int32_t i = 0; i < kParts; ++i) {
      const std::string name = names_differ ? fmt::format("user{}", i) : "facts";
      parts.add({.span = span(i, i + 1), .name = name});
      asked.push_back({.n_tokens = 1, .name = name, .priority = 2.0 + i % 3, .pinned = i % 2 == 0});
    }
    EXPECT_EQ(parts.hold_as_asked(asked), kParts);
    EXPECT_EQ(parts.all()[4].priority, names_differ ? 3.0 : 2.0 + (kParts - 1) % 3);
    EXPECT_TRUE(parts.all()[4].pinned);
  }
}

}  // namespace
}  // namespace ebb
