#include "bench/fidelity_session.h"

#include <algorithm>

#include "chat/turn_text.h"

namespace ebb {
namespace {

// The length of one section: some paragraphs. Longer ones are read in fewer turns.
constexpr std::int32_t kSectionTokens = 200;
// A section is this much longer than asked for at most: a sentence, the fact, the template's marks and the reply.
constexpr std::int32_t kOverhead = 300;
// Sections in which to find one whose fact lies in one block; it does in most.
constexpr int kTries = 16;
constexpr const char* kReply = "I have read it.";

class Reader {
 public:
  Reader(const Vocabulary& vocabulary, const FidelityShape& shape)
      : vocabulary_(vocabulary), shape_(shape), writer_(vocabulary, shape.seed) {}

  Result<FidelitySession> read() {
    const std::int32_t n_span_blocks = (shape_.n_span + shape_.block_size - 1) / shape_.block_size;
    // The fact lies in the middle of the span.
    EBB_RETURN_IF_ERROR(read_to(shape_.n_context + (n_span_blocks - 1) / 2 * shape_.block_size));
    EBB_ASSIGN_OR_RETURN(const Section section, read_fact());
    std::int32_t first = fact_begin_ / shape_.block_size;
    std::int32_t last = (fact_end_ - 1) / shape_.block_size;
    // The first block stays: it holds what begins every prompt.
    for (bool forward = true; last - first + 1 < n_span_blocks; forward = !forward) {
      if (forward || first <= 1) {
        ++last;
      } else {
        --first;
      }
    }
    for (std::int32_t b = first; b <= last; ++b) session_.span.emplace_back(b);
    EBB_RETURN_IF_ERROR(read_to(session_.span_end(shape_.block_size) + shape_.n_distance));
    while (n_tokens() % shape_.block_size == 0) EBB_RETURN_IF_ERROR(read_to(n_tokens() + 1));
    EBB_ASSIGN_OR_RETURN(session_.question, turn_tokens(vocabulary_, section.question, before_));
    session_.answer = section.answer;
    EBB_ASSIGN_OR_RETURN(session_.more, writer_.write(kSectionTokens));
    return std::move(session_);
  }

 private:
  [[nodiscard]] std::int32_t n_tokens() const { return static_cast<std::int32_t>(session_.history.size()); }

  // One section after the other until there are so many tokens.
  Status read_to(std::int32_t n_wanted) {
    while (n_tokens() < n_wanted) {
      EBB_ASSIGN_OR_RETURN(const Section section, writer_.write(std::min(kSectionTokens, n_wanted - n_tokens())));
      EBB_ASSIGN_OR_RETURN(const std::vector<Token> tokens, turn_tokens(vocabulary_, section.text, before_));
      EBB_RETURN_IF_ERROR(add(tokens));
    }
    return {};
  }

  Result<Section> read_fact() {
    for (int i = 1;; ++i) {
      EBB_ASSIGN_OR_RETURN(Section section, writer_.write(kSectionTokens));
      EBB_ASSIGN_OR_RETURN(const std::vector<Token> tokens, turn_tokens(vocabulary_, section.text, before_));
      EBB_RETURN_IF_ERROR(find_fact(tokens, section.fact));
      const bool is_in_one = fact_begin_ / shape_.block_size == (fact_end_ - 1) / shape_.block_size;
      if (!is_in_one && i < kTries) continue;
      EBB_RETURN_IF_ERROR(add(tokens));
      return section;
    }
  }

  // Which of the tokens, that are to come next, hold letters of the fact.
  Status find_fact(std::span<const Token> tokens, std::string_view fact) {
    std::string text;
    std::vector<std::size_t> ends;
    for (const Token token : tokens) {
      EBB_ASSIGN_OR_RETURN(const std::string piece, vocabulary_.piece(token, SpecialTokens::kShow));
      text += piece;
      ends.push_back(text.size());
    }
    const std::size_t at = text.find(fact);
    if (at == std::string::npos) {
      return error(Code::kUnsupported, "the model's chat template changes the text of a message; choose another model");
    }
    const auto begin = std::ranges::upper_bound(ends, at);
    const auto end = std::ranges::lower_bound(ends, at + fact.size());
    fact_begin_ = n_tokens() + static_cast<std::int32_t>(begin - ends.begin());
    fact_end_ = n_tokens() + static_cast<std::int32_t>(end - ends.begin()) + 1;
    return {};
  }

  // A message, and the same short reply to each.
  Status add(std::span<const Token> tokens) {
    std::vector<Token>& history = session_.history;
    history.insert(history.end(), tokens.begin(), tokens.end());
    EBB_ASSIGN_OR_RETURN(const std::vector<Token> reply, vocabulary_.tokenize(kReply, {.add_bos = false}));
    history.insert(history.end(), reply.begin(), reply.end());
    const std::optional<Token> end = vocabulary_.eot() ? vocabulary_.eot() : vocabulary_.eos();
    if (end) history.push_back(*end);
    before_ = end ? Before::kEndedReply : Before::kCutReply;
    return {};
  }

  const Vocabulary& vocabulary_;
  const FidelityShape& shape_;
  SectionWriter writer_;
  FidelitySession session_;
  Before before_ = Before::kNothing;
  std::int32_t fact_begin_ = 0;
  std::int32_t fact_end_ = 0;
};

}  // namespace

std::int32_t FidelityShape::most_tokens() const {
  // Context, fact's section and distance may each be a section and what comes with it longer; so may the last, which
  // ends the history inside a block. The fact takes a block more than the span where it fits into none.
  return n_context + 2 * n_span + n_distance + 4 * (kSectionTokens + kOverhead) + 2 * block_size;
}

Result<FidelitySession> make_fidelity_session(const Vocabulary& vocabulary, const FidelityShape& shape) {
  return Reader(vocabulary, shape).read();
}

}  // namespace ebb
