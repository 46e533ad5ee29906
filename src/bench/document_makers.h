// Document makers: the kinds of document cases (bench/document_cases.h) that are not recall tasks, and what they are made with.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/document_cases.h"
#include "bench/recall_haystack.h"

namespace ebb {

Result<std::vector<DocumentCase>> make_passkeys(const Vocabulary& vocabulary, const DocumentCaseOptions& options);
// Six digits some tokens behind the beginning, which no policy gives up.
Result<std::vector<DocumentCase>> make_far_passkeys(const Vocabulary& vocabulary, const DocumentCaseOptions& options);
// EVOKE's agent, document_agent.cc.
Result<std::vector<DocumentCase>> make_agents(const Vocabulary& vocabulary, const DocumentCaseOptions& options);
Result<std::vector<DocumentCase>> make_agents_with_mentions(const Vocabulary& vocabulary,
                                                            const DocumentCaseOptions& options);
Result<std::vector<DocumentCase>> make_kvret(const Vocabulary& vocabulary, const DocumentCaseOptions& options);

// RULER's families, by its names.
[[nodiscard]] std::span<const DocumentKind> ruler_kinds();

// A line that is told among others, and where, as a share of them.
struct ToldLine {
  std::string text;
  double place = 0.0;
};

// What one case is made with: names, reading matter and chance, all of one seed.
class DocumentMaker {
 public:
  // The vocabulary and the options must outlive it. `own`: the haystack where the options name none; reading matter is of a text
  // where they have one.
  static Result<DocumentMaker> create(const Vocabulary& vocabulary, const DocumentCaseOptions& options,
                                      std::string_view kind, std::int32_t index, Haystack own);

  DocumentMaker(DocumentMaker&&) = default;
  DocumentMaker& operator=(DocumentMaker&&) = default;

  // A name that was not drawn before. kInvalidArgument when there is none left.
  Result<std::string> draw(NameKind kind);
  // The lines in reading matter that says none of the words, of about as many tokens as the options want.
  Result<std::string> lay_out(std::vector<ToldLine> told, std::span<const std::string> words);
  // Of the reading matter, one that says none of the words.
  std::string line(std::span<const std::string> words);
  Result<std::int32_t> count(std::string_view text) const;
  [[nodiscard]] std::int32_t n_tokens() const { return options_->task.n_tokens; }
  std::uint64_t next() { return random_(); }
  double share() { return static_cast<double>(random_() >> 11U) * 0x1p-53; }
  // Where the asked fact of this case lies: those of all cases lie evenly.
  [[nodiscard]] double place() const { return place_; }

 private:
  DocumentMaker(const Vocabulary& vocabulary, const DocumentCaseOptions& options, Haystack haystack,
                std::vector<std::string> sentences, std::uint64_t seed);

  const Vocabulary* vocabulary_;
  const DocumentCaseOptions* options_;
  // Of a text; the writer looks at them, so that this moves and is not copied.
  std::vector<std::string> sentences_;
  HaystackWriter haystack_;
  NameSource names_;
  std::mt19937_64 random_;
  double place_ = 0.0;
};

}  // namespace ebb
