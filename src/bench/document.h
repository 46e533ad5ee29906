// The document bench: one request that holds a document and a question about it, longer than the KV budget.
//
// What the question needs has left by the time the question comes; arms differ in what they bring back. Each answer is of a session
// of its own that computes the whole request under its budget, as a client's would.
//
//   never evicting     everything hot: the most that can be had
//   POLICY             what leaves is gone for this request
//   POLICY, recall     blocks that share rare words with what the request begins and ends with come back before its last tokens
//   POLICY, oracle     the blocks that tell the asked fact come back there, and no others
//
// The question stands behind the document, in front of it, or in the next message. Thread rule: one run at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/recall_tasks.h"
#include "cache/frame_layout.h"
#include "session/turn.h"

namespace ebb {

enum class QuestionPlace : std::uint8_t { kLast, kFirst, kNext };
// "last", "first", "next"; and back.
[[nodiscard]] std::string_view name_of(QuestionPlace place);
[[nodiscard]] std::optional<QuestionPlace> find_question_place(std::string_view name);

enum class ArmRecall : std::uint8_t { kNothing, kWords, kOracle };

struct DocumentArm {
  std::string policy;
  ArmRecall recall = ArmRecall::kNothing;

  // "streaming, recall"
  [[nodiscard]] std::string name() const;
};

struct DocumentOptions {
  std::filesystem::path model;
  std::int32_t n_threads = 0;
  RowType kv_type = RowType::kF16;
  std::int32_t block_size = 64;
  // As flags name them; each without recall, with it and with the oracle's.
  std::vector<std::string> policies = {"streaming", std::string(kDefaultPolicy)};
  std::vector<RecallKind> kinds = {RecallKind::kNeedle, RecallKind::kMultiFact};
  std::vector<QuestionPlace> places = {QuestionPlace::kLast, QuestionPlace::kFirst, QuestionPlace::kNext};
  // Parts of the request that the budget holds: 4 is a quarter.
  std::vector<std::int32_t> parts = {4, 6, 12, 16};
  // Of all cases; its kind is set by the bench.
  RecallTaskOptions task{.n_tokens = 4096};
  std::int32_t n_recalled_blocks = kMostRecalled;
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

// One arm on one kind of task, asked in one place, at one budget.
struct DocumentCell {
  RecallKind kind = RecallKind::kNeedle;
  QuestionPlace place = QuestionPlace::kLast;
  std::string arm;
  std::int32_t part = 1;        // 1: never evicting
  std::vector<double> right;    // by question, 0 or 1; the same questions in every arm
  std::int64_t n_recalled = 0;  // blocks, all questions together
  std::vector<double> ms;       // until the first token, by question
};

struct DocumentReport {
  std::string model;
  DocumentOptions options;
  std::int32_t n_request_tokens = 0;  // median
  std::vector<DocumentCell> cells;
};

// kInvalidArgument for options that leave nothing to ask; what make_policy() says of policies that there are not.
Result<DocumentReport> run_document(const DocumentOptions& options);
[[nodiscard]] std::string document_text(const DocumentReport& report);
Status write_document_json(const std::filesystem::path& path, const DocumentReport& report);
Status write_document_html(const std::filesystem::path& path, const DocumentReport& report);

}  // namespace ebb
