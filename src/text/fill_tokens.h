// Fill tokens: the marks between which a model of code is asked for the middle of a text, as its vocabulary has them.
//
// Thread rule: a value.
#pragma once

#include <optional>

#include "base/ids.h"
#include "text/vocabulary.h"

namespace ebb {

struct FillTokens {
  // A model can fill where it has these three.
  std::optional<Token> prefix = std::nullopt;
  std::optional<Token> suffix = std::nullopt;
  std::optional<Token> middle = std::nullopt;
  // In front of the name of a repository, and of a file in it.
  std::optional<Token> repository = std::nullopt;
  std::optional<Token> file = std::nullopt;
};

[[nodiscard]] FillTokens find_fill_tokens(const Vocabulary& vocabulary);

}  // namespace ebb
