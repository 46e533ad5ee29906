#include "chat/chat_prompt.h"

#include <algorithm>

namespace ebb {

std::string ChatPrompt::text() const {
  std::string all;
  for (const PromptPiece& piece : pieces) all += piece.text;
  return all;
}

ChatPrompt ChatPrompt::behind(std::size_t n_bytes) const {
  ChatPrompt rest;
  for (const PromptPiece& piece : pieces) {
    const std::size_t n = std::min(n_bytes, piece.text.size());
    n_bytes -= n;
    if (n == piece.text.size()) continue;
    rest.pieces.push_back(piece);
    rest.pieces.back().text.erase(0, n);
  }
  return rest;
}

}  // namespace ebb
