#include "session/question_span.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ebb {

std::int32_t n_asking_tokens(std::span<const Token> tokens, const Vocabulary& vocabulary, std::span<const Cue> cues) {
  std::string text;
  std::vector<std::size_t> ends;  // [token], of its bytes in the text
  for (const Token token : tokens) {
    const Result<std::string> piece = vocabulary.piece(token, SpecialTokens::kShow);
    if (piece.ok()) text += *piece;
    ends.push_back(text.size());
  }
  std::size_t first = std::string::npos;
  for (const Cue& cue : leading_cues(cues)) first = std::min(first, text.find(bare_text(cue)));
  if (first == std::string::npos) return 0;
  return static_cast<std::int32_t>(ends.end() - std::ranges::upper_bound(ends, first));
}

}  // namespace ebb
