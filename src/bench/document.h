// The document bench: one request that holds a document and a question about it, longer than the KV budget.
//
// What the question needs has left by the time the question comes; arms differ in what they bring back (bench/document_arms.h). Each
// answer is of a session of its own that computes the whole request under its budget, as a client's would; cases that are asked in
// a row (bench/document_cases.h) are of one session each.
//
// The question stands behind the document, in front of it, in the next message, or in what a tool returns once the user has said to
// go on. Thread rule: one run at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/document_arms.h"
#include "bench/document_cases.h"
#include "cache/frame_layout.h"
#include "session/turn.h"

namespace ebb {

// In one message behind the document, in front of it, in the middle of it, or behind it and in front of what says how to answer; a message of
// its own; what a tool returns.
enum class QuestionPlace : std::uint8_t { kLast, kFirst, kMiddle, kInstructed, kNext, kTool };
// "last", "first", "middle", "instructed", "next", "tool"; and back.
[[nodiscard]] std::string_view name_of(QuestionPlace place);
[[nodiscard]] std::optional<QuestionPlace> find_question_place(std::string_view name);

struct DocumentOptions {
  std::filesystem::path model;
  std::int32_t n_threads = 0;
  // For the selector `embedding`; empty: there is none.
  std::filesystem::path embedding_model;
  RowType kv_type = RowType::kF16;
  // 0: as engines choose it for each budget.
  std::int32_t block_size = 0;
  // As flags name them, each policy in every arm.
  DocumentArmNames arms = {.policies = {"streaming", std::string(kDefaultPolicy)},
                           .arms = {"alone", "recall", "oracle"}};
  // These arms instead of those; empty: none.
  DocumentArmList list = {};
  // Names of kinds and families.
  std::vector<std::string> kinds = {"needle", "multi_fact"};
  std::vector<QuestionPlace> places = {QuestionPlace::kLast, QuestionPlace::kFirst, QuestionPlace::kNext};
  // Parts of the request that the budget holds: 4 is a quarter. Where there are budgets, those tokens instead.
  std::vector<std::int32_t> parts = {4, 6, 12, 16};
  std::vector<std::int32_t> budgets;
  // Tokens of a document.
  std::vector<std::int32_t> lengths = {4096};
  // Of all cases; its task's n_tokens is set by the bench.
  DocumentCaseOptions cases;
  std::optional<std::int32_t> n_recalled_blocks = std::nullopt;
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

// What a model said that was not right.
struct DocumentMiss {
  std::string question;
  std::string wanted;
  std::string said;
  // Names of the blocks that tell the answer, and what was looked for in that turn.
  std::vector<std::string> needed;
  std::vector<RecallLook> looks;
};

// One arm on one kind of task of one length, asked in one place, at one budget.
struct DocumentCell {
  std::string kind;
  // Of a document, as asked for; 0: as long as what it holds.
  std::int32_t n_tokens = 0;
  QuestionPlace place = QuestionPlace::kLast;
  std::string arm;
  HotPart hot;
  // Tokens of its blocks.
  std::int32_t block_size = 0;
  bool paraphrased = false;
  // By question, the same questions in every arm: the score (0..1), what it is counted by, and which share of what tells the answer
  // was hot while it was answered, where that is known.
  std::vector<double> right;
  std::vector<std::string> groups;
  std::vector<double> found;
  std::vector<double> ms;       // until the first token, by question
  std::int64_t n_recalled = 0;  // blocks, computed again or not, all questions together
  // What was said, by question.
  std::vector<std::string> said;
  // The first few.
  std::vector<DocumentMiss> misses;
};

struct DocumentReport {
  std::string model;
  std::int32_t n_ctx_train = 0;
  DocumentOptions options;
  // All that were asked but the one that never evicts, and the name of the one that others are held against, or nothing.
  std::vector<DocumentArm> arms;
  std::string against;
  std::int32_t n_request_tokens = 0;  // median
  std::vector<DocumentCell> cells;
};

// kInvalidArgument for options that leave nothing to ask; what make_policy() says of policies that there are not. Where a request is
// longer than the model was trained for, nothing is asked with everything hot.
Result<DocumentReport> run_document(const DocumentOptions& options);
[[nodiscard]] std::string document_text(const DocumentReport& report);
Status write_document_json(const std::filesystem::path& path, const DocumentReport& report);
Status write_document_html(const std::filesystem::path& path, const DocumentReport& report);

}  // namespace ebb
