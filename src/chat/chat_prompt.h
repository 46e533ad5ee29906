// ChatPrompt: the text that a chat template makes of messages, in pieces that know where they came from.
//
// Thread rule: a value.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace ebb {

struct PromptPiece {
  std::string text;
  // Written by whoever sent the request (people, tools, earlier replies), not by the template.
  bool from_user = false;
  // The message it stood in; nothing for the template's own text, tools and template arguments.
  std::optional<std::size_t> message = std::nullopt;

  friend bool operator==(const PromptPiece&, const PromptPiece&) = default;
};

struct ChatPrompt {
  std::vector<PromptPiece> pieces;

  [[nodiscard]] std::string text() const;
  // Without the first n bytes.
  [[nodiscard]] ChatPrompt behind(std::size_t n_bytes) const;
};

}  // namespace ebb
