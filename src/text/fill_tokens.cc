#include "text/fill_tokens.h"

#include "llama.h"

namespace ebb {

FillTokens find_fill_tokens(const Vocabulary& vocabulary) {
  const auto found = [&](llama_token id) {
    return vocabulary.contains(Token(id)) ? std::optional(Token(id)) : std::nullopt;
  };
  const llama_vocab* const vocab = vocabulary.llama();
  return {.prefix = found(llama_vocab_fim_pre(vocab)),
          .suffix = found(llama_vocab_fim_suf(vocab)),
          .middle = found(llama_vocab_fim_mid(vocab)),
          .repository = found(llama_vocab_fim_rep(vocab)),
          .file = found(llama_vocab_fim_sep(vocab))};
}

}  // namespace ebb
