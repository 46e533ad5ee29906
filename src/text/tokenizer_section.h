// The tokenizer section of a GGUF file, checked by our own means before libllama reads it.
//
// libllama trusts this section: a word that occurs twice stops the process, some pre-tokenizers recurse without bound
// or stop the process on a space, and a long word that is not in the byte alphabet is written out with its square. This
// refuses what libllama would not survive. What libllama itself refuses properly (missing merges, short score arrays,
// unknown pre-tokenizers) is left to it.
//
// Thread rule: a function without state.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace ebb {

class GgufFile;

struct TokenizerSection {
  // "llama" (SentencePiece), "gpt2" (byte-level BPE) or "bert" (WordPiece).
  std::string model;
  std::string pre_tokenizer;
  std::int64_t n_tokens = 0;
  // A space is put before a text that is tokenized.
  bool adds_space_prefix = false;
};

// kDamaged (the file carries no vocabulary, or one that contradicts itself) or kUnsupported (other tokenizers).
[[nodiscard]] Result<TokenizerSection> read_tokenizer_section(const GgufFile& file);

}  // namespace ebb
