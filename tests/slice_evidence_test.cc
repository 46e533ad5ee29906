// Slices of one token in blocks of sixteen tell a policy what blocks of one token tell it, on the bundled model: in prompts and
// while decoding, behind a cut within a block, behind an image, and where attention is composed.
#include <cmath>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "base/to_size.h"
#include "session/image.h"
#include "store/cold_store.h"
#include "tests/files.h"
#include "tests/solo_sessions.h"

namespace ebb::slice_evidence_test {
namespace {

constexpr std::int32_t kTokens = 90;
constexpr std::int32_t kWindow = 16;
// Steps are cut by what they take of it, in whole blocks: of less, otherwise where blocks are of other lengths.
constexpr std::int32_t kBudget = 1024;
constexpr std::int32_t kBlock = 16;
constexpr std::int32_t kKvHeads = 2;  // of the bundled model
// Of a mass: in the first layer queries and keys are the same bits, and blocks of other lengths round sums otherwise.
constexpr double kRounding = 1e-5;
// Behind it they are not, and products round their inputs to half floats.
constexpr double kRoundingBehind = 3e-3;

using Scopes = std::map<std::int32_t, ScopeEvidence>;

// Asks for all that is told of slices, and keeps it.
class Listener final : public Policy {
 public:
  Listener(std::int32_t slice, std::shared_ptr<Scopes> heard) : slice_(slice), heard_(std::move(heard)) {}
  [[nodiscard]] std::string_view name() const override { return "listener"; }
  [[nodiscard]] Ask asks() const override {
    return {.scope = Scope::kHead, .totals = true, .last = true, .window = kWindow, .slice = slice_};
  }
  [[nodiscard]] std::vector<double> score(const Evidence&, const ScopeEvidence& scope) const override {
    (*heard_)[scope.index] = scope;
    return std::vector<double>(scope.rows.size(), 0.0);
  }

 private:
  std::int32_t slice_;
  std::shared_ptr<Scopes> heard_;
};

// One session, in blocks of one token or by slices of one.
class Told {
 public:
  explicit Told(std::int32_t block_size, bool composed = false) {
    sessions_ =
        SoloSessions::open(bundled_model(),
                           {.n_threads = 1, .block_size = block_size, .n_ctx = 2 * kBudget, .composed = composed},
                           std::make_unique<Listener>(1, heard_))
            .value();
    SessionDeps deps = sessions_->deps(store_.get());
    deps.gives_sums_only = composed;
    session_ = std::make_unique<Session>(deps, options());
  }

  void say(std::span<const Token> tokens, std::int32_t n_rows) {
    Turn turn(*session_, Prompt(std::vector<Token>(tokens.begin(), tokens.end())));
    Turn* const turns[] = {&turn};
    while (turn.n_pending() > 0) ASSERT_TRUE(sessions_->step(turns, n_rows));
    turn.settle();
  }

  void begin_anew_from_an_image() {
    const SessionImage image = decode_image(encode_image(session_->image())).value();
    const auto hot = session_->hot().hot_blocks();
    const std::vector<BlockIndex> blocks(hot.begin(), hot.end());
    session_->save_for_image();
    session_.reset();
    session_ = Session::restore(sessions_->deps(store_.get()), options(), image).value();
    sessions_->recall(*session_, blocks);
    EXPECT_EQ(session_->hot().hot_blocks().size(), blocks.size());
  }

  [[nodiscard]] Session& session() { return *session_; }
  const Scopes& hear() {
    heard_->clear();
    (void)session_->scores();
    return *heard_;
  }

 private:
  static SessionOptions options() { return {.budget_tokens = kBudget, .adopts = false}; }

  std::shared_ptr<Scopes> heard_ = std::make_shared<Scopes>();
  std::unique_ptr<ColdStore> store_ = *ColdStore::open({.ram_bytes = 64 << 20});
  std::unique_ptr<SoloSessions> sessions_;
  std::unique_ptr<Session> session_;
};

// The first slices are the tokens; behind the last token there is nothing.
void expect_same_tokens(const Scopes& by_token, const Scopes& by_slice, double of_first_layer = kRounding) {
  ASSERT_FALSE(by_token.empty());
  ASSERT_EQ(by_token.size(), by_slice.size());
  double total = 0.0;
  double rounding = 0.0;
  const auto expect_near = [&](const std::vector<double>& tokens, const std::vector<double>& slices, const char* what) {
    ASSERT_GE(slices.size(), tokens.size());
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      ASSERT_NEAR(slices[t], tokens[t], rounding * std::max(1.0, tokens[t])) << what << " of token " << t;
      total += tokens[t];
    }
  };
  for (const auto& [index, tokens] : by_token) {
    SCOPED_TRACE(index);
    rounding = index < kKvHeads ? of_first_layer : kRoundingBehind;
    const SliceColumns& slices = by_slice.at(index).slices;
    ASSERT_EQ(slices.n_slices, to_size(kBlock));
    EXPECT_EQ(tokens.slices.n_slices, 0U) << "a block of one token has none";
    expect_near(tokens.total, slices.total, "total");
    expect_near(tokens.window_mean, slices.window_mean, "window mean");
    expect_near(tokens.window_max, slices.window_max, "window maximum");
    expect_near(tokens.last, slices.last, "last");
    EXPECT_TRUE(std::equal(tokens.n_queries.begin(), tokens.n_queries.end(), slices.n_queries.begin()));
  }
  EXPECT_GT(total, 100.0) << "zeros all agree";
}

class SliceEvidence : public ::testing::Test {
 protected:
  void SetUp() override {
    tokens_ = (*Vocabulary::load(bundled_model()))->tokenize(kFactsAndQuestions).value();
    ASSERT_GE(tokens_.size(), to_size(kTokens));
    tokens_.resize(to_size(kTokens));
  }

  // A prompt in chunks, then single tokens.
  void say(Told& told, std::size_t n_begin = 0) const {
    const auto all = std::span(tokens_).subspan(n_begin);
    told.say(all.first(all.size() - 5), 24);
    for (const Token& token : all.last(5)) told.say(std::span(&token, 1), 1);
  }

  std::vector<Token> tokens_;
};

TEST_F(SliceEvidence, of_one_token_is_that_of_blocks_of_one_token) {
  Told by_token(1);
  Told by_slice(kBlock);
  for (Told* told : {&by_token, &by_slice}) say(*told);
  expect_same_tokens(by_token.hear(), by_slice.hear());
}

TEST_F(SliceEvidence, behind_a_cut_within_a_block_is_that_of_blocks_of_one_token) {
  Told by_token(1);
  Told by_slice(kBlock);
  for (Told* told : {&by_token, &by_slice}) {
    say(*told);
    told->session().cut(Position(kTokens - 21));
  }
  expect_same_tokens(by_token.hear(), by_slice.hear());
  for (Told* told : {&by_token, &by_slice}) say(*told, 40);
  expect_same_tokens(by_token.hear(), by_slice.hear());
}

TEST_F(SliceEvidence, comes_back_with_an_image_and_goes_on) {
  Told by_token(1);
  Told by_slice(kBlock);
  Told stayed(kBlock);
  for (Told* told : {&by_token, &by_slice, &stayed}) say(*told);
  for (Told* told : {&by_token, &by_slice}) told->begin_anew_from_an_image();
  expect_same_tokens(by_token.hear(), by_slice.hear());
  const double before = stayed.hear().begin()->second.slices.total[3];
  EXPECT_NEAR(by_slice.hear().begin()->second.slices.total[3], before, 1e-6 * before) << "what went into it came back";
  for (Told* told : {&by_token, &by_slice}) say(*told, 60);
  expect_same_tokens(by_token.hear(), by_slice.hear());
}

// One query for each step, in rows of one, which is all that composed attention can tell apart.
TEST_F(SliceEvidence, of_composed_attention_is_that_of_our_kernels) {
  Told own(1);
  Told composed(kBlock, true);
  for (Told* told : {&own, &composed}) told->say(tokens_, 1);
  expect_same_tokens(own.hear(), composed.hear(), kRoundingBehind);
}

}  // namespace
}  // namespace ebb::slice_evidence_test
