// The fidelity bench: what answers lose by each way of having a block back.
//
// Sessions that read sections (bench/sections.h). The blocks around one fact are evicted, come back in one way or
// another, and then the same tokens are decoded as in a session that never evicted: the question, the reply that
// session gave, and more reading. Their logits are compared one by one; then the fact is asked for, and the session
// says what it says.
//
//   | context | span, with the fact | distance | question | reply | more ... |
//   0         ^ whole blocks        ^          ^ scored: all that follows     |
//
// A span is away for a moment (everything was read with it visible, so nothing but its own way back can differ) or
// while the distance is read (what was computed meanwhile saw a hole, and keeps that).
// Nothing is timed: figures do not depend on the machine's speed. Thread rule: one run at a time.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/frame_layout.h"
#include "session/token_origins.h"

namespace ebb {

// In the order of the report.
enum class FidelityArm : std::uint8_t {
  kReference,    // nothing is evicted
  kSparse,       // recalled at its original position
  kCompact,      // survivors close up at the eviction; it is recalled in its order among them
  kCompactTail,  // survivors close up at the eviction; it is recalled behind them
  kTail,         // survivors stay; it is recalled right before what comes next
  kRedecoded,    // computed again from its tokens
  kDiscarded,    // it stays a hole
};
inline constexpr std::size_t kFidelityArms = 7;
// "recalled_sparse", and as a person reads it.
[[nodiscard]] std::string_view fidelity_arm_key(FidelityArm arm);
[[nodiscard]] std::string_view fidelity_arm_text(FidelityArm arm);

enum class Absence : std::uint8_t { kMoment, kReading };
// "moment", "reading"
[[nodiscard]] std::string_view absence_name(Absence absence);

struct FidelityOptions {
  std::filesystem::path model;
  // 0: one per physical core.
  std::int32_t n_threads = 0;
  // Tokens that are evicted, rounded up to whole blocks; more where the fact does not fit into them.
  std::vector<std::int32_t> spans = {64, 512};
  // Tokens read between the span and the question, or a section more.
  std::vector<std::int32_t> distances = {256, 2048};
  std::vector<RowType> kv_types = {RowType::kF16, RowType::kQ8_0};
  std::vector<Absence> absences = {Absence::kMoment, Absence::kReading};
  // Tokens read before the span, or a section more.
  std::int32_t n_context = 256;
  // Sessions of each case, each with a fact of its own.
  std::int32_t n_facts = 8;
  // Tokens of each session whose logits are compared, reply included.
  std::int32_t n_scored = 128;
  std::int32_t block_size = 64;
  std::size_t ram_bytes = std::size_t{4} << 30;
  std::uint64_t seed = 1;
  // What is going on, and the share of the whole run that is done, 0..1.
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

// Sums over the sessions of one arm, so that cases add up: those of one type of K and V, which have no fact in common.
struct FidelityFigures {
  std::int64_t n_sessions = 0;
  // Sessions whose logits are all those of the reference, bit for bit; and whose span has its K and V, bit for bit.
  std::int64_t n_bitwise = 0;
  std::int64_t n_same_bytes = 0;
  // Tokens compared, and those of them that predict or continue the reply.
  std::int64_t n_scored = 0;
  std::int64_t n_reply_scored = 0;
  // Divergences of the next token's distributions, reference against arm, in nats.
  double kl_sum = 0.0;
  double kl_most = 0.0;
  double kl_reply_sum = 0.0;
  // Largest difference of a logit, over the range of the reference's logits of that token.
  double gap_sum = 0.0;
  double gap_most = 0.0;
  // Tokens whose likeliest successor is the reference's.
  std::int64_t n_same_top = 0;
  // The session's own greedy reply: those that are the reference's to their end, leading tokens that are, all tokens of
  // the reference's replies, and replies that hold the fact.
  std::int64_t n_same_replies = 0;
  std::int64_t n_same_reply_tokens = 0;
  std::int64_t n_reply_tokens = 0;
  std::int64_t n_right = 0;
  // Blocks, of the sessions' own counters; a block may move several times.
  std::int64_t n_evicted_blocks = 0;
  std::int64_t n_recalled_blocks = 0;
  std::int64_t n_recomputed_blocks = 0;
  std::int64_t n_moved_blocks = 0;
  // Tokens behind which the question was asked (law 7).
  TokenOriginSums from;

  [[nodiscard]] double kl() const { return kl_sum / static_cast<double>(n_scored); }
  [[nodiscard]] double kl_reply() const { return kl_reply_sum / static_cast<double>(n_reply_scored); }
  [[nodiscard]] double gap() const { return gap_sum / static_cast<double>(n_scored); }
  [[nodiscard]] double same_top() const { return static_cast<double>(n_same_top) / static_cast<double>(n_scored); }
  void add(const FidelityFigures& other);
};

using FidelityArms = std::array<FidelityFigures, kFidelityArms>;  // by FidelityArm

struct FidelityCase {
  RowType kv_type = RowType::kF16;
  Absence absence = Absence::kMoment;
  std::int32_t n_span = 0;      // tokens, as asked for
  std::int32_t n_distance = 0;  // tokens, as asked for
  FidelityArms arms;
};

struct FidelityReport {
  std::string model;
  FidelityOptions options;
  std::vector<FidelityCase> cases;
};

// kInvalidArgument for options that leave nothing to measure; kOutOfBudget when the model was trained for fewer tokens
// than a session has.
Result<FidelityReport> run_fidelity(const FidelityOptions& options);

// All cases of one type of K and V and one absence together.
[[nodiscard]] FidelityArms fidelity_totals(const FidelityReport& report, RowType kv_type, Absence absence);

// How one token's logits differ; both are of the same vocabulary, and all are numbers.
struct LogitsDistance {
  double kl = 0.0;
  double gap = 0.0;
  bool same_top = false;
  bool is_bitwise = false;
};
[[nodiscard]] LogitsDistance compare_logits(std::span<const float> reference, std::span<const float> other);

[[nodiscard]] std::string fidelity_text(const FidelityReport& report);
Status write_fidelity_json(const std::filesystem::path& path, const FidelityReport& report);
Status write_fidelity_html(const std::filesystem::path& path, const FidelityReport& report);

}  // namespace ebb
