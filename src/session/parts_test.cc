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

}  // namespace
}  // namespace ebb
