// Forks of one context, which benches give to every policy: what a fork keeps is what a session of that policy keeps that computed
// the context itself. So the context is noted with all that any policy looks at.
#include "bench/policy_forks.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/session_steps.h"

namespace ebb::policy_forks_test {
namespace {

constexpr std::int32_t kTokens = 384;
constexpr std::int32_t kBudget = 160;
constexpr std::int32_t kBlockSize = 16;

// [block][head]
std::vector<std::vector<bool>> hot_of(const Session& session) {
  std::vector<std::vector<bool>> hot;
  for (std::int32_t b = 0; b < session.n_blocks(); ++b) {
    hot.emplace_back();
    for (std::size_t head = 0; head < session.shape().n_heads(); ++head) {
      hot.back().push_back(session.hot().is_hot(BlockIndex(b), head));
    }
  }
  return hot;
}

class PolicyForks : public ::testing::Test {
 protected:
  void SetUp() override {
    auto engine = Engine::open({.model = std::filesystem::path(EBB_SOURCE_DIR) / "models" / "ebb-recall.gguf",
                                .n_threads = 1,
                                .block_size = kBlockSize,
                                .kv_budget_tokens = 4 * kTokens,
                                .store = {.ram_bytes = 64 << 20}});
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *std::move(engine);
    tokens_ = make_random_tokens(engine_->vocabulary().n_tokens(), kTokens, 7);
  }

  std::unique_ptr<Engine> engine_;
  std::vector<Token> tokens_;
};

TEST_F(PolicyForks, keep_what_a_session_of_their_policy_keeps) {
  const ForkFloors floors;
  const SessionImage image = compute_image(*engine_, nullptr, tokens_).value();
  const std::vector<NamedPolicy> all = policies_of_forks({}).value();
  for (const NamedPolicy& policy : all) {
    const auto own = engine_->new_session({.budget_tokens = engine_->budget_tokens(),
                                           .policy = policy.policy,
                                           .sink_tokens = floors.sink_tokens,
                                           .recent_tokens = kBudget / 4,
                                           .adopts = false});
    ASSERT_TRUE(own.ok()) << own.status().message();
    ASSERT_TRUE(compute_tokens(*engine_, **own, tokens_).ok());
    (void)(*own)->set_budget(FrameBudget::of_tokens(kBudget, engine_->shape()));
    const auto fork = fork_session(*engine_, image, policy, kBudget, floors);
    ASSERT_TRUE(fork.ok()) << fork.status().message();
    EXPECT_EQ(hot_of(**fork), hot_of(**own)) << policy.name;
    EXPECT_LE((*fork)->n_hot_tokens(), kBudget) << policy.name;
    EXPECT_GT((*fork)->n_hot_tokens(), kBudget - kBlockSize) << policy.name;
  }
}

TEST_F(PolicyForks, what_contexts_are_not_noted_with_is_refused) {
  for (const char* spec : {"snapkv:window=16", "areas", "adakv:slice=2", "none"}) {
    EXPECT_EQ(policies_of_forks({spec}).status().code(), Code::kInvalidArgument) << spec;
  }
  EXPECT_TRUE(policies_of_forks({"snapkv:slice=1", "areas:window=0", "areas:window=0,slice=0"}).ok());
}

}  // namespace
}  // namespace ebb::policy_forks_test
