#include "engine/pace.h"

#include <gmock/gmock.h>

namespace ebb {
namespace {

TEST(Pace, has_all_rows_where_nobody_writes_or_nothing_is_known) {
  Pace pace(50);
  EXPECT_EQ(pace.prompt_rows(1, 512), 512);
  pace.note({.n_prompt_rows = 512, .ms = 512});
  EXPECT_EQ(pace.prompt_rows(0, 512), 512);
}

TEST(Pace, has_as_many_rows_as_take_the_time_that_is_given) {
  Pace pace(50);
  pace.note({.n_writing = 1, .ms = 2});
  pace.note({.n_prompt_rows = 500, .ms = 252});  // half a millisecond each
  EXPECT_EQ(pace.prompt_rows(1, 512), 96);
  EXPECT_EQ(pace.prompt_rows(1, 40), 40);
}

TEST(Pace, gives_prompts_three_times_what_writing_takes_where_that_is_long) {
  Pace pace(50);
  pace.note({.n_writing = 1, .ms = 40});
  pace.note({.n_writing = 1, .n_prompt_rows = 16, .ms = 120});  // 5 ms each
  EXPECT_EQ(pace.prompt_rows(1, 512), 16);
  pace.note({.n_writing = 1, .n_prompt_rows = 16, .ms = 40 + 16});
  pace.note({.n_writing = 1, .n_prompt_rows = 16, .ms = 40 + 16});
  pace.note({.n_writing = 1, .n_prompt_rows = 32, .ms = 40 + 32});
  EXPECT_EQ(pace.prompt_rows(1, 512), 80);
}

TEST(Pace, does_not_ask_many_rows_at_once_of_what_a_few_took) {
  Pace pace(50);
  pace.note({.n_writing = 1, .ms = 1});
  pace.note({.n_writing = 1, .n_prompt_rows = 20, .ms = 2});
  EXPECT_EQ(pace.prompt_rows(1, 512), 80);
}

TEST(Pace, believes_slower_rows_at_once_and_faster_ones_by_and_by) {
  Pace pace(51);
  pace.note({.n_writing = 1, .ms = 1});
  pace.note({.n_writing = 1, .n_prompt_rows = 200, .ms = 21});
  EXPECT_EQ(pace.prompt_rows(1, 512), 496);
  pace.note({.n_writing = 1, .n_prompt_rows = 100, .ms = 101});
  EXPECT_EQ(pace.prompt_rows(1, 512), 48);
  pace.note({.n_writing = 1, .n_prompt_rows = 100, .ms = 11});
  EXPECT_EQ(pace.prompt_rows(1, 512), 80);
}

TEST(Pace, is_not_led_astray_by_one_step_of_writing_that_was_held_up) {
  Pace pace(50);
  pace.note({.n_writing = 1, .ms = 2});
  pace.note({.n_writing = 1, .ms = 400});
  pace.note({.n_writing = 1, .n_prompt_rows = 100, .ms = 104});
  EXPECT_EQ(pace.prompt_rows(1, 512), 32);
}

TEST(Pace, is_no_bound_where_none_is_given) {
  Pace pace(0);
  pace.note({.n_writing = 1, .ms = 2});
  pace.note({.n_writing = 1, .n_prompt_rows = 100, .ms = 1000});
  EXPECT_EQ(pace.prompt_rows(1, 512), 512);
}

}  // namespace
}  // namespace ebb
