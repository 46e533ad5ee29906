// BlockTexts: what blocks say, for those who read sentences of what words have found.
//
// Thread rule: values.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/ids.h"
#include "policy/rare_words.h"

namespace ebb {

// A block's text with some of what stands around it, so that no sentence of it is cut; its own is [begin, end). Empty where it cannot be told.
struct Passage {
  std::string text;
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct BlockTexts {
  const WordIndex& words;
  std::function<Passage(BlockIndex)> passage;
};

}  // namespace ebb
