// What `ebb demo` promises, read from what it prints: the fact of the first turn leaves, at least ten other blocks
// leave after it, and it comes back for the last turn, inside the budget; a client that truncates has lost it. Every
// run.
#include <algorithm>
#include <regex>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/program.h"

namespace ebb {
namespace {

using testing::AnyOf;
using testing::ContainsRegex;

constexpr int kTurns = 14;

// "turn  5   6 hot of 6   2 evicted  1 recalled  R░░██░███"
struct PrintedTurn {
  int n_hot = 0;
  int n_budget = 0;
  int n_evicted = 0;
  std::string first_block;  // its sign

  friend bool operator==(const PrintedTurn&, const PrintedTurn&) = default;
};

std::vector<PrintedTurn> turns_of(const std::string& out) {
  static const std::regex kLine(R"(turn +\d+ +(\d+) hot of (\d+) +(\d+) evicted +\d+ recalled +(R|█|▒|░|·).*)");
  std::vector<PrintedTurn> turns;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, kLine)) continue;
    turns.push_back({std::stoi(match[1]), std::stoi(match[2]), std::stoi(match[3]), match[4]});
  }
  return turns;
}

// What is read of an arm's row in the table at the end: "ebb   816   192   192 ...".
struct PrintedArm {
  int n_session = 0;
  int n_budget = 0;
  int n_peak = 0;
};

PrintedArm arm_of(const std::string& out, const std::string& name) {
  const std::regex row("\n" + name + R"( +(\d+) +(\d+) +(\d+) .*)");
  std::smatch match;
  if (!std::regex_search(out, match, row)) return {};
  return {std::stoi(match[1]), std::stoi(match[2]), std::stoi(match[3])};
}

TEST(Demo, recalls_the_fact_of_the_first_turn_in_every_run_and_truncation_has_lost_it) {
  std::vector<PrintedTurn> first_run;
  for (int run = 0; run < 3; ++run) {
    const ProgramResult result = run_ebb({"demo", "-t", "2"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, ContainsRegex("[^d] ebb: [^\n]*4711[^\n]*\\[right\\]"));
    EXPECT_THAT(result.out, ContainsRegex("truncated: [^\n]*\\[wrong\\]"));
    EXPECT_THAT(result.out, ContainsRegex("never evicted: [^\n]*\\[right\\]"));

    const PrintedArm ours = arm_of(result.out, "ebb");
    EXPECT_GT(ours.n_peak, 0);
    EXPECT_LE(ours.n_peak, ours.n_budget);
    EXPECT_LE(ours.n_budget, 1024);
    EXPECT_LE(4 * ours.n_budget, ours.n_session) << "a quarter of the session";
    EXPECT_EQ(arm_of(result.out, "truncated").n_budget, ours.n_budget) << "both have the same room";

    const std::vector<PrintedTurn> turns = turns_of(result.out);
    ASSERT_EQ(turns.size(), kTurns) << result.out;
    for (const PrintedTurn& turn : turns) EXPECT_LE(turn.n_hot, turn.n_budget);
    // The fact is in the first block: when it was last whole, and how many left before it came back. In some heads it may be hot between.
    // Behind the reply, some heads may have let go of it again.
    EXPECT_THAT(turns.back().first_block, AnyOf("R", "▒"));
    const auto here = std::ranges::find_if(turns.rbegin() + 1, turns.rend(), [](const PrintedTurn& turn) {
      return turn.first_block == "█" || turn.first_block == "R";
    });
    int n_evicted = 0;
    // `here.base()` left it behind when it settled; what left in that turn may have been the block itself.
    for (auto turn = here.base() + 1; turn < turns.end(); ++turn) n_evicted += turn->n_evicted;
    EXPECT_GE(n_evicted, 10) << result.out;

    if (run == 0) first_run = turns;
    EXPECT_EQ(turns, first_run) << "the same in every run";
  }
}

}  // namespace
}  // namespace ebb
