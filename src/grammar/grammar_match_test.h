// Does a text match a grammar? For tests only: libllama's own grammar, fed byte by byte with a toy vocabulary, after our
// check has passed it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "llama.h"

#include "grammar/gbnf.h"
#include "text/toy_vocabulary.h"

namespace ebb {

class GrammarMatch {
 public:
  // An empty error: the grammar was compiled.
  explicit GrammarMatch(const std::string& grammar, const std::string& root = "root") {
    static const ToyFile file{toy_bpe().bytes()};
    static const std::unique_ptr<Vocabulary> vocabulary = Vocabulary::load(file.path()).value();
    const Status status = read_gbnf(*vocabulary, grammar, root).status();
    if (!status.ok()) {
      error_ = status.message() + "\n" + grammar;
      return;
    }
    sampler_.reset(llama_sampler_init_grammar(vocabulary->llama(), grammar.c_str(), root.c_str()));
    if (sampler_ == nullptr) error_ = "libllama does not compile\n" + grammar;
  }
  [[nodiscard]] const std::string& error() const { return error_; }

  [[nodiscard]] bool matches(std::string_view text) {
    if (sampler_ == nullptr) return false;
    llama_sampler_reset(sampler_.get());
    for (const char c : text) {
      const llama_token token = static_cast<unsigned char>(c);
      if (!allows(token)) return false;
      llama_sampler_accept(sampler_.get(), token);
    }
    return allows(kEnd);
  }

 private:
  static constexpr llama_token kEnd = 259;  // of toy_bpe

  bool allows(llama_token token) {
    llama_token_data data{.id = token, .logit = 0, .p = 0};
    llama_token_data_array array{.data = &data, .size = 1, .selected = -1, .sorted = false};
    llama_sampler_apply(sampler_.get(), &array);
    return data.logit == 0;
  }

  struct Free {
    void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
  };
  std::unique_ptr<llama_sampler, Free> sampler_;
  std::string error_;
};

}  // namespace ebb
