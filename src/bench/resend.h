// Resend: sessions with a client that says its whole history each time, by what the server does about a budget.
//
// The client's side of EVOKE's gap-fill and baseline protocols (bench/gapfill.h, bench/baseline.h): it has a script of
// messages, says one after the other with all that was said before, and reads the reply. It speaks to the engine,
// without HTTP. Arms, each a session of its own:
//
//   ours        evicts to the cold store; recalls by the words of the new message, then fills holes, as the server does
//   aware       fills holes from the tail on where evictions left room, whatever the message asks: EVOKE's budget-aware
//               filling, which hardly ever finds room either (shared/reference/evoke.md, W21)
//   everything  before each turn all holes are filled, over the budget, and what is over leaves behind it
//   truncate    nothing is evicted; the client leaves out its oldest messages until the rest fits the budget
//   none        nothing is evicted, whatever the budget; the end is where the trained context is full
//
// Thread rule: one session at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/machine.h"
#include "bench/peak.h"
#include "bench/statistics.h"
#include "engine/engine.h"
#include "policy/choose.h"
#include "policy/policy.h"

namespace ebb {

enum class ResendArm : std::uint8_t { kOurs, kAware, kEverything, kTruncate, kNone };
[[nodiscard]] std::string_view resend_arm_name(ResendArm arm);

// What all benches of this kind are told.
struct ResendSetup {
  std::filesystem::path model;
  // 0: one per physical core.
  std::int32_t n_threads = 0;
  std::int32_t block_size = 64;
  // What leaves, as --kv-eviction has it.
  std::string policy{kDefaultPolicy};
  // When, of the arms that evict; as --kv-high-watermark and --kv-low-watermark have it.
  Watermarks watermarks;
  RowType kv_type = RowType::kF16;
  std::size_t ram_bytes = std::size_t{4} << 30;
  std::uint64_t seed = 1;
  // What is going on, and the share of the whole run that is done, 0..1.
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

struct ResendMessage {
  std::string text;
  // What the reply must hold; empty where nothing is asked.
  std::string wanted;
};

struct ResendOptions {
  ResendArm arm = ResendArm::kOurs;
  std::int32_t budget_tokens = 0;
  Watermarks watermarks;
  // The most tokens of one reply.
  std::int32_t n_reply = 24;
  // Sessions of one engine that share nothing have different ones.
  std::string tenant;
};

struct ResendTurn {
  bool asks = false;
  std::int32_t history_tokens = 0;  // that the client said
  std::int32_t hot_tokens = 0;      // when the turn had settled
  std::int32_t n_computed = 0;      // tokens: new, computed again, generated
  std::int32_t n_evicted = 0;       // blocks
  std::int32_t n_recalled = 0;      // blocks
  // Matching the history, recalling, filling; and the whole turn, that included.
  double overhead_ms = 0.0;
  double ms = 0.0;
};

struct ResendAnswer {
  std::string wanted;
  std::string said;
  bool is_right = false;
  // When the question came, what is wanted stood in no hot block; and when it was answered, it stood in one.
  bool was_cold = false;
  bool was_found = false;
};

struct ResendSession {
  std::int32_t peak_hot_tokens = 0;  // at any moment
  double seconds = 0.0;
  std::vector<ResendTurn> turns;
  std::vector<ResendAnswer> answers;
  std::string ended_by;  // empty when it came to its end
};

// A session that is full ends and is no error.
Result<ResendSession> play_resend(Engine& engine, std::span<const ResendMessage> script, const ResendOptions& options);

// All sessions of one arm of one case.
struct ResendSide {
  ResendArm arm = ResendArm::kOurs;
  std::int32_t n_questions = 0;  // of all scripts, whether a session came to them or not
  std::vector<ResendSession> sessions;
};

struct ResendCase {
  std::string name;
  std::int32_t budget_tokens = 0;
  std::vector<ResendSide> sides;
};

struct ResendReport {
  std::string bench;
  std::string protocol;  // a line for people
  Machine machine;
  Peak peak;  // the caller's to measure: no figure here is held against it
  ResendSetup setup;
  std::int32_t n_ctx_train = 0;
  std::vector<ResendCase> cases;
};

// Opens the engine, and says in the report what it runs on.
Result<std::unique_ptr<Engine>> open_resend_engine(const ResendSetup& setup, ResendReport& report);

// The overhead of the turns that read, or that ask, among the last quarter of each session's: where the history is
// longest.
struct ResendOverhead {
  Spread ms;
  Spread share;  // of the turn
};
// n of its spreads is 0 where there are no such turns.
[[nodiscard]] ResendOverhead resend_overhead(const ResendSide& side, bool asks);

// One script per session; its arms in turn.
Status play_resend_case(Engine& engine, std::span<const std::vector<ResendMessage>> scripts,
                        std::span<const ResendArm> arms, const ResendOptions& options, ResendCase& played);

[[nodiscard]] std::string resend_text(const ResendReport& report);
Status write_resend_json(const std::filesystem::path& path, const ResendReport& report);
Status write_resend_html(const std::filesystem::path& path, const ResendReport& report);

}  // namespace ebb
