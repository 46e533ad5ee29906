#include "bench/fidelity.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "bench/fidelity_session.h"
#include "model/random_model.h"
#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

class FidelityTest : public testing::Test {
 protected:
  FidelityTest() { std::filesystem::create_directories(folder_); }
  ~FidelityTest() override { std::filesystem::remove_all(folder_); }

  // A toy that reads bytes and knows nothing: what it computes, not what it answers.
  FidelityOptions toy_options() {
    const Status status = write_random_model({.head_dim = 32, .n_ctx_train = 4096}, folder_ / "toy.gguf");
    EXPECT_TRUE(status.ok()) << status.message();
    return {.model = folder_ / "toy.gguf",
            .n_threads = 1,
            .spans = {96},
            .distances = {100},
            .kv_types = {RowType::kF16},
            .n_context = 64,
            .n_facts = 2,
            .n_scored = 120,
            .block_size = 16};
  }

  FidelityReport report_of(const FidelityOptions& options) {
    Result<FidelityReport> report = run_fidelity(options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? std::move(report).value() : FidelityReport();
  }

  static const FidelityFigures& of(const FidelityCase& one, FidelityArm arm) {
    return one.arms[static_cast<std::size_t>(arm)];
  }

  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("ebb_fidelity_test_{}", getpid());
};

TEST(CompareLogits, the_same_logits_are_no_distance_apart) {
  const std::vector<float> logits = {1.0F, -2.0F, 0.5F};
  const LogitsDistance distance = compare_logits(logits, logits);
  EXPECT_EQ(distance.kl, 0.0);
  EXPECT_EQ(distance.gap, 0.0);
  EXPECT_TRUE(distance.same_top && distance.is_bitwise);
}

TEST(CompareLogits, the_divergence_is_that_of_the_distributions) {
  // Chances 3/4 and 1/4 against 1/2 and 1/2.
  const std::vector<float> reference = {std::log(3.0F), 0.0F};
  const std::vector<float> other = {0.0F, 0.0F};
  const LogitsDistance distance = compare_logits(reference, other);
  EXPECT_NEAR(distance.kl, 0.75 * std::log(1.5) + 0.25 * std::log(0.5), 1e-7);
  EXPECT_NEAR(distance.gap, 1.0, 1e-7) << "the one logit that differs, by the whole range";
  EXPECT_TRUE(distance.same_top) << "of equals the first";
  EXPECT_FALSE(distance.is_bitwise);
}

TEST(CompareLogits, what_is_added_to_all_logits_changes_bits_and_no_chance) {
  const LogitsDistance distance =
      compare_logits(std::vector<float>{1.0F, 2.0F, 4.0F}, std::vector<float>{2.0F, 3.0F, 5.0F});
  EXPECT_NEAR(distance.kl, 0.0, 1e-12);
  EXPECT_NEAR(distance.gap, 1.0 / 3.0, 1e-12);
  EXPECT_TRUE(distance.same_top);
  EXPECT_FALSE(distance.is_bitwise);
}

TEST(FidelitySession, the_span_holds_the_fact_and_the_distance_lies_behind_it) {
  const ToyFile file(toy_bpe().bytes());
  const std::unique_ptr<Vocabulary> vocabulary = *Vocabulary::load(file.path());
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const FidelityShape shape{.n_context = 100, .n_span = 256, .n_distance = 150, .block_size = 64, .seed = seed};
    const FidelitySession session = *make_fidelity_session(*vocabulary, shape);
    const std::span<const Token> history = session.history;
    const auto n_tokens = static_cast<std::int32_t>(history.size());
    const std::int32_t begin = session.span.front().value() * 64;
    ASSERT_EQ(session.span.size(), 4U);
    EXPECT_GE(begin, 64);
    EXPECT_GE(n_tokens - session.span_end(64), 150);
    EXPECT_LE(n_tokens, shape.most_tokens());
    EXPECT_NE(n_tokens % 64, 0);
    const auto text_of = [&](std::int32_t from, std::int32_t to) {
      return *vocabulary->detokenize(
          history.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)), SpecialTokens::kShow);
    };
    EXPECT_NE(text_of(begin, session.span_end(64)).find(" is " + session.answer + "."), std::string::npos);
    EXPECT_EQ(text_of(session.span_end(64), n_tokens).find(session.answer), std::string::npos);
    EXPECT_EQ(text_of(0, begin).find(session.answer), std::string::npos);
  }
}

TEST(FidelitySession, a_fact_that_no_block_can_hold_takes_more_than_the_span) {
  const ToyFile file(toy_bpe().bytes());
  const std::unique_ptr<Vocabulary> vocabulary = *Vocabulary::load(file.path());
  const FidelitySession session = *make_fidelity_session(
      *vocabulary, {.n_context = 100, .n_span = 8, .n_distance = 50, .block_size = 8, .seed = 1});
  EXPECT_GT(session.span.size(), 2U);
}

TEST_F(FidelityTest, away_for_a_moment_the_original_place_is_bitwise_equal) {
  FidelityOptions options = toy_options();
  options.kv_types = {RowType::kF32, RowType::kF16, RowType::kQ8_0};
  options.absences = {Absence::kMoment};
  const FidelityReport report = report_of(options);
  ASSERT_EQ(report.cases.size(), 3U);
  for (const FidelityCase& one : report.cases) {
    // A forward pass over the same tokens with the same tokens visible makes the same bytes.
    for (const FidelityArm arm : {FidelityArm::kReference, FidelityArm::kSparse, FidelityArm::kRedecoded}) {
      const FidelityFigures& figures = of(one, arm);
      EXPECT_EQ(figures.n_sessions, 2);
      EXPECT_EQ(figures.n_bitwise, 2) << fidelity_arm_text(arm);
      EXPECT_EQ(figures.n_same_bytes, 2) << fidelity_arm_text(arm);
      EXPECT_EQ(figures.kl_most, 0.0);
      EXPECT_EQ(figures.gap_most, 0.0);
      EXPECT_EQ(figures.n_same_top, figures.n_scored);
      EXPECT_EQ(figures.n_same_replies, 2);
      EXPECT_EQ(figures.n_moved_blocks, 0);
    }
    // Turned away and back, each time from its record; only the open block, which has none, is rounded.
    EXPECT_EQ(of(one, FidelityArm::kCompact).n_same_bytes, 2);
    EXPECT_LT(of(one, FidelityArm::kCompact).kl(), of(one, FidelityArm::kTail).kl());
    for (const FidelityArm arm : {FidelityArm::kCompactTail, FidelityArm::kTail, FidelityArm::kDiscarded}) {
      const FidelityFigures& figures = of(one, arm);
      EXPECT_EQ(figures.n_bitwise, 0) << fidelity_arm_text(arm);
      EXPECT_EQ(figures.n_same_bytes, 0) << fidelity_arm_text(arm);
      EXPECT_GT(figures.kl(), 0.0) << fidelity_arm_text(arm);
      EXPECT_GT(figures.gap(), 0.0) << fidelity_arm_text(arm);
      EXPECT_EQ(figures.n_scored, of(one, FidelityArm::kReference).n_scored);
    }
  }
}

TEST_F(FidelityTest, what_was_read_without_the_span_stays_different) {
  FidelityOptions options = toy_options();
  options.absences = {Absence::kReading};
  const FidelityReport report = report_of(options);
  ASSERT_EQ(report.cases.size(), 1U);
  for (const FidelityArm arm : {FidelityArm::kSparse, FidelityArm::kRedecoded}) {
    const FidelityFigures& figures = of(report.cases[0], arm);
    EXPECT_EQ(figures.n_same_bytes, 2) << "the span itself is as it was";
    EXPECT_EQ(figures.n_bitwise, 0);
    EXPECT_GT(figures.kl(), 0.0);
  }
}

TEST_F(FidelityTest, every_token_before_the_question_is_counted_once) {
  const FidelityReport report = report_of(toy_options());
  ASSERT_EQ(report.cases.size(), 2U);
  for (const FidelityCase& one : report.cases) {
    const std::int64_t n_tokens = of(one, FidelityArm::kReference).from[Origin::kHotAlready];
    for (const FidelityFigures& figures : one.arms) EXPECT_EQ(figures.from.total(), n_tokens);
    const std::int64_t n_span = of(one, FidelityArm::kSparse).from[Origin::kRecalledExact];
    EXPECT_GE(n_span, 2 * 96);
    EXPECT_EQ(of(one, FidelityArm::kCompact).from[Origin::kRecalledExact], n_span)
        << "turned back to where it was, from its record";
    EXPECT_EQ(of(one, FidelityArm::kCompactTail).from[Origin::kRecalledApproximate], n_span);
    EXPECT_EQ(of(one, FidelityArm::kTail).from[Origin::kRecalledApproximate], n_span);
    EXPECT_EQ(of(one, FidelityArm::kRedecoded).from[Origin::kRecomputed], n_span);
    EXPECT_EQ(of(one, FidelityArm::kDiscarded).from[Origin::kHole], n_span);
    EXPECT_EQ(of(one, FidelityArm::kSparse).n_evicted_blocks, n_span / 16);
    // At the tail the open block moves behind what came back; in a compact session survivors move at the eviction.
    EXPECT_EQ(of(one, FidelityArm::kTail).n_moved_blocks, n_span / 16 + 2);
    const std::int64_t n_more =
        of(one, FidelityArm::kCompactTail).n_moved_blocks - of(one, FidelityArm::kTail).n_moved_blocks;
    // Only what was read behind the span by then.
    EXPECT_EQ(n_more > 0, one.absence == Absence::kMoment);
  }
}

TEST_F(FidelityTest, the_same_seed_gives_the_same_figures) {
  const FidelityReport once = report_of(toy_options());
  const FidelityReport again = report_of(toy_options());
  ASSERT_EQ(once.cases.size(), again.cases.size());
  for (std::size_t i = 0; i < once.cases.size(); ++i) {
    for (std::size_t arm = 0; arm < kFidelityArms; ++arm) {
      EXPECT_EQ(once.cases[i].arms[arm].kl_sum, again.cases[i].arms[arm].kl_sum);
      EXPECT_EQ(once.cases[i].arms[arm].n_same_reply_tokens, again.cases[i].arms[arm].n_same_reply_tokens);
    }
  }
}

TEST_F(FidelityTest, cases_of_one_type_and_absence_add_up) {
  FidelityOptions options = toy_options();
  options.spans = {96, 32, 96};
  const FidelityReport report = report_of(options);
  ASSERT_EQ(report.cases.size(), 4U) << "two spans, two absences";
  const FidelityArms totals = fidelity_totals(report, RowType::kF16, Absence::kMoment);
  const FidelityFigures& sparse = totals[static_cast<std::size_t>(FidelityArm::kSparse)];
  EXPECT_EQ(sparse.n_sessions, 4);
  EXPECT_EQ(sparse.n_bitwise, 4);
  const FidelityFigures& tail = totals[static_cast<std::size_t>(FidelityArm::kTail)];
  EXPECT_EQ(tail.kl_most,
            std::max(of(report.cases[0], FidelityArm::kTail).kl_most, of(report.cases[2], FidelityArm::kTail).kl_most));
  EXPECT_DOUBLE_EQ(tail.kl_sum,
                   of(report.cases[0], FidelityArm::kTail).kl_sum + of(report.cases[2], FidelityArm::kTail).kl_sum);
}

TEST_F(FidelityTest, writes_tables_json_and_a_page) {
  const FidelityReport report = report_of(toy_options());
  const std::string text = fidelity_text(report);
  for (const char* part : {"toy: 2 facts a case", "96 tokens evicted, 100 before the question", "recalled, sparse",
                           "same bytes", "turned", "hole", "All cases with K and V in f16; away while reading"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  ASSERT_TRUE(write_fidelity_json(folder_ / "fidelity.json", report).ok());
  const auto json = nlohmann::json::parse(read("fidelity.json"));
  EXPECT_EQ(json["cases"][0]["arms"]["recalled_sparse"]["bitwise_equal_sessions"], 2);
  EXPECT_GT(json["totals"]["f16"]["moment"]["discarded"]["kl_nats"]["mean"], 0.0);
  EXPECT_GT(json["totals"]["f16"]["reading"]["discarded"]["tokens_before_question"]["holes"], 0);
  ASSERT_TRUE(write_fidelity_html(folder_ / "fidelity.html", report).ok());
  const std::string page = read("fidelity.html");
  for (const char* part : {"Facts recalled", "sparse, at the tail", "96 tok, 100 behind"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
}

TEST_F(FidelityTest, progress_runs_from_nothing_to_all) {
  FidelityOptions options = toy_options();
  std::vector<double> shares;
  options.progress = [&shares](std::string_view, double share) { shares.push_back(share); };
  ASSERT_TRUE(run_fidelity(options).ok());
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.front(), 0.0);
  EXPECT_DOUBLE_EQ(shares.back(), 1.0);
}

TEST_F(FidelityTest, refuses_what_cannot_be_measured) {
  FidelityOptions options = toy_options();
  options.spans = {};
  EXPECT_EQ(run_fidelity(options).status().code(), Code::kInvalidArgument);
  options = toy_options();
  options.distances = {0};
  EXPECT_EQ(run_fidelity(options).status().code(), Code::kInvalidArgument);
  options = toy_options();
  options.absences = {};
  EXPECT_EQ(run_fidelity(options).status().code(), Code::kInvalidArgument);
  options = toy_options();
  options.n_facts = 0;
  EXPECT_EQ(run_fidelity(options).status().code(), Code::kInvalidArgument);
  options = toy_options();
  options.distances = {4000};
  EXPECT_EQ(run_fidelity(options).status().code(), Code::kOutOfBudget);
}

}  // namespace
}  // namespace ebb
