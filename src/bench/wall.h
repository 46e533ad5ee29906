// The wall bench: a session that outgrows both its KV budget and the model's trained context.
//
// EVOKE's scale protocol: sections of reading matter, each of which states one service's id; when all are read, some of
// the ids are asked for, from the first section to the last. Arms, each a session of its own on one engine:
//
//   ebb           evicts to the cold store under the budget, recalls before each question, rebases past the context
//   no recall     the same, and what is evicted is lost
//   no eviction   a budget of the whole trained context, and the end when it is full: the wall
//   ceiling       each question right behind its own section, with nothing evicted: what the model can answer at all
//
// Thread rule: one run at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/frame_layout.h"
#include "policy/policy.h"

namespace ebb {

struct WallOptions {
  std::filesystem::path model;
  std::int32_t n_threads = 0;
  // 0: a quarter of the trained context, less one block.
  std::int32_t budget_tokens = 0;
  // 0: eight times the trained context.
  std::int32_t session_tokens = 0;
  std::int32_t n_sections = 150;
  std::int32_t n_questions = 16;
  std::int32_t n_recalled_blocks = 3;
  std::int32_t block_size = 64;
  // What leaves, as --kv-eviction has it.
  std::string policy{kDefaultPolicy};
  RowType kv_type = RowType::kF16;
  std::size_t ram_bytes = std::size_t{4} << 30;
  std::uint64_t seed = 1;
  // What is going on, and the share of the whole run that is done, 0..1.
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

// One late question.
struct WallAnswer {
  std::int32_t n_section = 0;  // that stated it, from 0
  std::int32_t n_read = 0;     // tokens that the session read since that section's end
  std::string question;
  std::string wanted;
  std::string said;
  bool is_right = false;
  std::vector<std::int32_t> recalled;  // blocks
};

// How a session stood when a turn had settled: a section, or a question.
struct WallTurn {
  std::int32_t session_tokens = 0;
  std::int32_t hot_tokens = 0;
  std::int32_t n_evicted = 0;   // blocks, in this turn
  std::int32_t n_recalled = 0;  // blocks, in this turn
};

struct WallArm {
  std::string name;
  std::int32_t n_sections = 0;  // read to their end
  std::int32_t n_right = 0;
  std::int32_t n_asked = 0;
  std::int32_t budget_tokens = 0;
  std::int32_t peak_hot_tokens = 0;
  std::int32_t session_tokens = 0;
  std::int64_t n_computed = 0;  // tokens
  std::int64_t n_evicted = 0;   // blocks
  std::int64_t n_recalled = 0;  // blocks
  std::int64_t n_rebases = 0;
  double seconds = 0.0;
  std::vector<WallTurn> turns;  // of the ceiling: none, since each of its questions has a session of its own
  std::vector<WallAnswer> answers;
  std::string ended_by;  // empty when it came to its end
};

struct WallReport {
  std::string model;
  std::int32_t n_ctx_train = 0;
  WallOptions options;
  std::vector<WallArm> arms;
};

// kInvalidArgument for options that leave nothing to measure.
Result<WallReport> run_wall(const WallOptions& options);
[[nodiscard]] std::string wall_text(const WallReport& report);
// Every question with what each arm said.
[[nodiscard]] std::string wall_answers_text(const WallReport& report);
Status write_wall_json(const std::filesystem::path& path, const WallReport& report);
Status write_wall_html(const std::filesystem::path& path, const WallReport& report);

}  // namespace ebb
