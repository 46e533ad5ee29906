// What a prompt that is read again leaves as evidence, on the bundled model: the same as if its tokens had been said twice.
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "bench/session_steps.h"
#include "engine/engine.h"
#include "policy/policy.h"

namespace ebb::reread_test {
namespace {

constexpr std::int32_t kTokens = 208;
constexpr std::int32_t kBlockSize = 16;

// Keeps what it is told.
class Probe final : public Policy {
 public:
  explicit Probe(const Ask& ask) : ask_(ask) {}

  [[nodiscard]] std::string_view name() const override { return "probe"; }
  [[nodiscard]] Ask asks() const override { return ask_; }
  [[nodiscard]] std::vector<double> score(const Evidence&, const ScopeEvidence& scope) const override {
    told_[scope.index] = ask_.reread ? scope.reread : scope.window_max;
    return std::vector<double>(scope.rows.size(), kNeverLeaves);
  }

  // [scope][row]
  [[nodiscard]] const std::map<std::int32_t, std::vector<double>>& told() const { return told_; }

 private:
  Ask ask_;
  mutable std::map<std::int32_t, std::vector<double>> told_;
};

class RereadEvidence : public ::testing::Test {
 protected:
  void SetUp() override {
    auto engine = Engine::open({.model = std::filesystem::path(EBB_SOURCE_DIR) / "models" / "ebb-recall.gguf",
                                .n_threads = 1,
                                .kv_type = RowType::kF32,
                                .block_size = kBlockSize,
                                .kv_budget_tokens = 16 * kTokens});
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *std::move(engine);
    tokens_ = make_random_tokens(engine_->vocabulary().n_tokens(), kTokens, 7);
  }

  std::unique_ptr<Session> say(const std::shared_ptr<Probe>& probe, std::int32_t n_times) {
    auto session = engine_->new_session({.policy = probe, .adopts = false}).value();
    for (std::int32_t i = 0; i < n_times; ++i) EXPECT_TRUE(compute_tokens(*engine_, *session, tokens_).ok());
    return session;
  }

  std::unique_ptr<Engine> engine_;
  std::vector<Token> tokens_;
};

TEST_F(RereadEvidence, is_the_most_that_a_query_gave_each_block_when_all_was_said_again) {
  const auto reads = std::make_shared<Probe>(Ask{.scope = Scope::kHead, .reread = true});
  const auto once = say(reads, 1);
  EXPECT_EQ(once->end(), Position(kTokens));
  (void)once->scores();
  const auto hears = std::make_shared<Probe>(Ask{.scope = Scope::kHead, .window = kTokens});
  const auto twice = say(hears, 2);
  (void)twice->scores();
  ASSERT_EQ(reads->told().size(), static_cast<std::size_t>(once->shape().n_heads()));
  for (const auto& [scope, told] : reads->told()) {
    const std::vector<double>& heard = hears->told().at(scope);
    ASSERT_EQ(told.size(), static_cast<std::size_t>(kTokens / kBlockSize));
    for (std::size_t row = 0; row < told.size(); ++row) {
      EXPECT_NEAR(told[row], heard[row], 2e-6) << "scope " << scope << ", row " << row;
      EXPECT_GT(told[row], 0.0);
    }
  }
}

TEST_F(RereadEvidence, survives_an_image_and_a_restart) {
  const auto reads = std::make_shared<Probe>(Ask{.scope = Scope::kHead, .reread = true});
  const auto session = say(reads, 1);
  (void)session->scores();
  const auto told = reads->told();
  ASSERT_TRUE(session->save().ok());
  const SessionImage image = session->image();
  const auto again = std::make_shared<Probe>(Ask{.scope = Scope::kHead, .reread = true});
  const auto restored = engine_->restore_session({.policy = again, .adopts = false}, image).value();
  restored->refill(0, {}, Holes::kAll);
  (void)restored->scores();
  EXPECT_EQ(again->told(), told);
}

TEST_F(RereadEvidence, changes_no_logit) {
  const auto reads = std::make_shared<Probe>(Ask{.scope = Scope::kHead, .reread = true});
  const auto reading = say(reads, 1);
  const auto plain =
      engine_->new_session({.policy = std::shared_ptr<const Policy>(make_policy("streaming").value()), .adopts = false})
          .value();
  ASSERT_TRUE(compute_tokens(*engine_, *plain, tokens_).ok());
  std::vector<std::vector<float>> logits[2];
  const std::vector<Token> more = make_random_tokens(engine_->vocabulary().n_tokens(), 20, 9);
  for (Session* session : {reading.get(), plain.get()}) {
    auto& kept = logits[session == plain.get() ? 1 : 0];
    const auto keep = [&](std::size_t, std::span<const float> row) { kept.emplace_back(row.begin(), row.end()); };
    ASSERT_TRUE(decode_tokens(*engine_, *session, more, keep).ok());
  }
  EXPECT_EQ(logits[0], logits[1]);
}

}  // namespace
}  // namespace ebb::reread_test
