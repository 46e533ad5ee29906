// The edits bench: that all arms are asked the same, and what each computes for it.
#include "bench/edits.h"

#include <gtest/gtest.h>

#include "tests/files.h"

namespace ebb {
namespace {

TEST(EditsBench, all_arms_are_asked_the_same_behind_an_edit_and_compute_less_than_exact_reuse_does) {
  const auto report = run_edits({.model = *find_test_file("models/ebb-recall.gguf"),
                                 .n_threads = 1,
                                 .block_size = 32,
                                 .budget_tokens = 4096,
                                 .kinds = {EditKind::kChanged, EditKind::kClock},
                                 .lengths = {1800},
                                 .n_cases = 2,
                                 .recomputed = {0, 4, 16}});
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->arms.size(), 5U);
  ASSERT_EQ(report->cells.size(), 10U);
  for (std::size_t kind = 0; kind < 2; ++kind) {
    const EditCell* const arms = &report->cells[5 * kind];
    for (std::size_t a = 0; a < 5; ++a) {
      const EditCell& cell = arms[a];
      EXPECT_EQ(cell.arm, a);
      EXPECT_EQ(cell.n_edits, 2);
      EXPECT_EQ(cell.changed().n_asked, 2);
      EXPECT_EQ(cell.by_matter[static_cast<std::size_t>(EditMatter::kConcluded)].n_asked, 1);
      EXPECT_EQ(cell.by_matter[static_cast<std::size_t>(EditMatter::kBehind)].n_asked, 2);
      EXPECT_EQ(cell.n_prompt, arms[0].n_prompt);
      EXPECT_EQ(cell.n_approximate > 0, report->arms[a].reuse != Reuse::kExact);
    }
    EXPECT_EQ(report->arms[1].reuse, Reuse::kFresh);
    EXPECT_LT(arms[2].n_computed, arms[1].n_computed);
    EXPECT_LT(arms[1].n_computed, arms[0].n_computed / 2);
    EXPECT_LT(arms[2].n_computed, arms[3].n_computed);
    EXPECT_LT(arms[3].n_computed, arms[4].n_computed);
    EXPECT_LT(arms[4].n_computed, arms[0].n_computed);
  }
}

}  // namespace
}  // namespace ebb
