#include "session/freshness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb::freshness_test {
namespace {

using ::testing::ElementsAre;

constexpr std::int32_t kSlice = 16;

Span span(std::int32_t begin, std::int32_t end) { return {Position(begin), Position(end)}; }
Span slice(std::int32_t index) { return span(index * kSlice, (index + 1) * kSlice); }

// Where it stood, or a little later.
bool stale(const Freshness& freshness, Span before) { return freshness.is_stale(before, before.begin + 4); }

// 160 tokens; the fourth slice, from 48 to 64, was edited to 20 others.
Freshness edited(std::vector<SliceReliance> found) {
  Reliances before(kSlice);
  before.add(span(0, 160), found);
  return {std::move(before), span(48, 160), {{.from = 64, .to = 68, .n_tokens = 96}}};
}

TEST(Freshness, what_relies_on_what_changed_and_what_stands_right_behind_it_is_stale) {
  const Freshness freshness = edited({{.of = 5, .on = 2}, {.of = 6, .on = 3}, {.of = 7, .on = 6}});
  EXPECT_TRUE(stale(freshness, slice(4))) << "right behind the edit";
  EXPECT_FALSE(stale(freshness, slice(5))) << "relies on what stays";
  EXPECT_TRUE(stale(freshness, slice(6)));
  EXPECT_FALSE(stale(freshness, slice(7))) << "the sixth may come out as it was";
  EXPECT_FALSE(stale(freshness, slice(8)));
}

TEST(Freshness, what_relies_on_what_came_out_another_is_stale_too) {
  Freshness freshness = edited({{.of = 6, .on = 3}, {.of = 7, .on = 6}, {.of = 8, .on = 7}});
  freshness.note_changed(slice(6));
  EXPECT_TRUE(stale(freshness, slice(7)));
  EXPECT_FALSE(stale(freshness, slice(8)));
  freshness.note_changed(slice(7));
  EXPECT_TRUE(stale(freshness, slice(8)));
}

TEST(Freshness, all_is_stale_of_which_nobody_knows_on_what_it_relies) {
  Reliances before(kSlice);
  before.add(span(0, 96), std::vector<SliceReliance>{});
  const Freshness freshness(before, span(48, 160), {{.from = 64, .to = 68, .n_tokens = 96}});
  EXPECT_FALSE(stale(freshness, slice(5)));
  EXPECT_TRUE(stale(freshness, slice(6)));
  EXPECT_TRUE(Freshness(Reliances(kSlice), span(48, 160), {{.from = 64, .to = 68, .n_tokens = 96}})
                  .is_stale(slice(9), Position(160)));
}

// Something was said between what stays: no slice changed, and what stood before the next is no longer there.
TEST(Freshness, behind_an_insertion_the_next_tokens_are_stale_and_where_nothing_moved_none_are) {
  Reliances before(kSlice);
  before.add(span(0, 160), std::vector<SliceReliance>{{.of = 6, .on = 3}});
  const Freshness inserted(before, span(56, 160), {{.from = 56, .to = 70, .n_tokens = 104}});
  EXPECT_TRUE(stale(inserted, span(56, 64)));
  EXPECT_TRUE(stale(inserted, span(64, 80))) << "eight of its tokens stand near the edit";
  EXPECT_FALSE(stale(inserted, slice(5)));
  EXPECT_FALSE(stale(inserted, slice(6))) << "the third slice is what it was";
  const Freshness same(before, span(56, 160), {{.from = 56, .to = 56, .n_tokens = 80}});
  EXPECT_FALSE(stale(same, span(56, 64)));
}

// What changes places, or is quoted behind: whoever looked at it has it no more before them.
TEST(Freshness, what_relies_on_what_stands_behind_it_now_is_stale) {
  Reliances before(kSlice);
  before.add(span(0, 160), std::vector<SliceReliance>{{.of = 7, .on = 3}, {.of = 8, .on = 5}});
  const Freshness freshness(before, span(48, 160),
                            {{.from = 80, .to = 60, .n_tokens = 80}, {.from = 48, .to = 150, .n_tokens = 32}});
  EXPECT_TRUE(freshness.is_stale(slice(7), Position(92))) << "the third slice stands from 150 on";
  EXPECT_FALSE(freshness.is_stale(slice(8), Position(108))) << "the fifth went along";
}

TEST(Freshness, tells_where_slices_that_are_relied_on_stand_now) {
  const Freshness freshness = edited({{.of = 7, .on = 1}, {.of = 7, .on = 5}});
  // 80 to 96 stand at 84 to 100 now, in two slices.
  EXPECT_THAT(*freshness.reliances_now(slice(7)), ElementsAre(1, 5, 6));
  EXPECT_THAT(*freshness.reliances_now(slice(8)), ElementsAre());
  EXPECT_EQ(Freshness(Reliances(kSlice), span(48, 160), {}).reliances_now(slice(8)), std::nullopt);
}

TEST(Freshness, cuts_tokens_at_slices) {
  const Freshness freshness = edited({});
  EXPECT_EQ(freshness.first_piece(span(70, 120)), span(70, 80));
  EXPECT_EQ(freshness.first_piece(span(80, 90)), span(80, 90));
}

}  // namespace
}  // namespace ebb::freshness_test
