// The agent bench: what it replays, and that a session which fits its budget computes hardly more than a prefix cache
// without limits would.
#include "bench/agent.h"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "json/json_fields.h"
#include "tests/files.h"

namespace ebb {
namespace {

class AgentBench : public testing::Test {
 protected:
  AgentBench() {
    std::filesystem::create_directory(folder_);
    Json body = {{"tools",
                  {{{"type", "function"},
                    {"function",
                     {{"name", "stop"},
                      {"parameters",
                       {{"type", "object"},
                        {"properties", {{"now", {{"type", "boolean"}}}, {"n", {{"type", "boolean"}}}}},
                        {"required", {"now", "n"}}}}}}}}}};
    body["messages"] = {{{"role", "system"}, {"content", "You work on files."}},
                        {{"role", "user"}, {"content", "What does the file say?"}}};
    write("1.json", body.dump());
    // An old result is cleared later on: what stands behind it moves, however little the model says.
    std::string result;
    for (int i = 0; i < 8; ++i) result += "Line by line it says five. ";
    body["messages"].push_back({{"role", "assistant"},
                                {"content", nullptr},
                                {"tool_calls",
                                 {{{"id", "call1"},
                                   {"type", "function"},
                                   {"function", {{"name", "stop"}, {"arguments", R"({"now": true, "n": false})"}}}}}}});
    body["messages"].push_back({{"role", "tool"}, {"tool_call_id", "call1"}, {"content", result}});
    body["messages"].push_back({{"role", "assistant"}, {"content", "It says five."}});
    body["messages"].push_back({{"role", "user"}, {"content", "Look again, and at the other file too."}});
    write("2.json", body.dump());
  }
  ~AgentBench() override { std::filesystem::remove_all(folder_); }

  void write(const char* name, const std::string& text) { std::ofstream(folder_ / name) << text; }

  [[nodiscard]] AgentOptions options() const {
    return {.model = *find_test_file("models/ebb-recall.gguf"), .workload = folder_, .n_threads = 1, .block_size = 16};
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("ebb_agent_test_{}", getpid());
};

TEST_F(AgentBench, what_fits_is_computed_at_most_a_twentieth_more_than_by_a_prefix_cache_without_limits) {
  const auto run = replay_agent(options(), 8192, Reuse::kExact);
  ASSERT_TRUE(run.ok()) << run.status().message();
  ASSERT_EQ(run->steps.size(), 12U);
  EXPECT_EQ(run->steps.front().n_computed, run->steps.front().n_prompt);
  EXPECT_EQ(run->steps.front().n_prefix_cache, run->steps.front().n_prompt);
  EXPECT_GT(run->n_prefix_cache(), run->steps.front().n_prompt);
  EXPECT_LE(run->ratio(), 1.05);
  EXPECT_LE(run->later_ratio(), 1.05);
  for (const AgentStep& step : run->steps) {
    EXPECT_EQ(step.n_approximate, 0) << step.name;
    EXPECT_EQ(step.n_holes, 0) << step.name;
  }
}

TEST_F(AgentBench, approximate_reuse_computes_less_than_the_prefix_cache) {
  const auto run = replay_agent(options(), 8192, Reuse::kApproximate);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_LT(run->n_computed(), run->n_prefix_cache());
}

TEST_F(AgentBench, a_session_that_does_not_fit_stays_within_its_budget_and_shows_its_holes) {
  const auto run = replay_agent(options(), 512, Reuse::kExact);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_TRUE(std::ranges::any_of(run->steps, [](const AgentStep& step) { return step.n_holes > 0; }));
  for (const AgentStep& step : run->steps) EXPECT_LE(step.peak_hot_tokens, 512) << step.name;
  EXPECT_LE(run->ratio(), 1.05);
}

TEST_F(AgentBench, what_was_computed_and_has_left_before_the_reply_counts_as_computed) {
  AgentOptions streaming = options();
  streaming.policy = "streaming";
  const auto run = replay_agent(streaming, 512, Reuse::kExact);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_TRUE(std::ranges::any_of(run->steps, [](const AgentStep& step) { return step.n_computed > step.n_new; }));
  for (const AgentStep& step : run->steps) EXPECT_GE(step.n_computed, step.n_new) << step.name;
}

TEST_F(AgentBench, refuses_a_folder_without_bodies) {
  AgentOptions other = options();
  other.workload = folder_ / "nothing";
  EXPECT_EQ(replay_agent(other, 8192, Reuse::kExact).status().code(), Code::kNotFound);
  write("3.json", "{}");
  EXPECT_EQ(replay_agent(options(), 8192, Reuse::kExact).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ebb
