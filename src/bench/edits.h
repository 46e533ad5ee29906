// The edits bench: what --kv-reuse costs in answers, and spares in tokens, behind edits of a history (bench/edit_cases.h).
//
// The history is read once; each arm goes on from a fork of it that adopts nothing of the others: the edited history with a question,
// and the other questions in its place. What exact reuse computes is what any prefix cache would, and the arms are held against that.
// Thread rule: one run at a time.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/edit_cases.h"
#include "policy/policy.h"
#include "session/turn.h"

namespace ebb {

struct EditsOptions {
  std::filesystem::path model;
  // 0: one per physical core.
  std::int32_t n_threads = 0;
  std::int32_t block_size = 64;
  std::string policy{kDefaultPolicy};
  std::int32_t budget_tokens = 16384;
  std::vector<EditKind> kinds{kEditKinds.begin(), kEditKinds.end()};
  std::vector<std::int32_t> lengths = {4096, 6144, 8192};
  // Of each kind and length.
  std::int32_t n_cases = 10;
  RecallSplit split = RecallSplit::kTest;
  RecallLanguage language = RecallLanguage::kBundled;
  std::uint64_t seed = 1;
  // First tokens of each block that approximate reuse computes, an arm for each.
  std::vector<std::int32_t> recomputed = {0, 4, 16};
  // What is going on, and the share of the whole run that is done, 0..1.
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

struct EditArm {
  Reuse reuse = Reuse::kExact;
  std::int32_t n_recomputed = 0;

  // "approximate, 4 recomputed"
  [[nodiscard]] std::string name() const;
};

// Answers about one matter.
struct EditCounts {
  std::int32_t n_asked = 0;
  std::int32_t n_right = 0;
  std::int32_t n_stale = 0;
  // Of those, which exact reuse answers right: the others the model fails at whatever is computed.
  std::int32_t n_lost = 0;
};

// One kind and length, one arm.
struct EditCell {
  EditKind kind = EditKind::kChanged;
  std::int32_t n_tokens = 0;
  std::size_t arm = 0;
  std::int32_t n_edits = 0;
  std::array<EditCounts, kEditMatters> by_matter = {};
  std::int64_t n_prompt = 0;    // of the edited histories, each once
  std::int64_t n_computed = 0;  // of those
  std::int64_t n_approximate = 0;

  EditCell& operator+=(const EditCell& other);
  // Of what the edit changed and what was concluded from it.
  [[nodiscard]] EditCounts changed() const;
};

// A reply that was not right.
struct EditMiss {
  EditKind kind = EditKind::kChanged;
  std::int32_t n_tokens = 0;
  std::size_t arm = 0;
  EditProbe probe;
  std::string reply;
};

struct EditsReport {
  std::string model;
  std::int32_t block_size = 0;
  std::string policy;
  std::int32_t budget_tokens = 0;
  RecallSplit split = RecallSplit::kTest;
  std::uint64_t seed = 0;
  std::vector<EditArm> arms;  // exact first
  std::vector<EditCell> cells;
  std::vector<EditMiss> misses;

  // All lengths of a kind; all.
  [[nodiscard]] EditCell sum(EditKind kind, std::size_t arm) const;
  [[nodiscard]] EditCell sum(std::size_t arm) const;
};

Result<EditsReport> run_edits(const EditsOptions& options);

[[nodiscard]] std::string edits_text(const EditsReport& report);
Status write_edits_json(const std::filesystem::path& path, const EditsReport& report);
Status write_edits_html(const std::filesystem::path& path, const EditsReport& report);

}  // namespace ebb
