// The grammar of a whole answer: thinking, then what is asked for.
//
// Thinking is free text up to its closing mark, so that nothing has to be armed on the way, and a token that holds the end
// of thinking and the beginning of what follows is judged whole. It does not know what follows, nor how grammars are run.
//
// Thread rule: values and functions without state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat/reply_parser.h"
#include "grammar/grammar_rules.h"

namespace ebb {

struct AnswerThinking {
  ThinkTags tags = {};
  // The prompt ended inside thinking. Otherwise the answer may begin with it.
  bool is_open = false;
};

struct AnswerGrammar {
  std::string grammar;
  std::string root = "root";
};

// Behind thinking, the answer is what `grammar` says from "root" on. Its rules must not begin with "ebb-".
[[nodiscard]] AnswerGrammar behind_thinking(std::string grammar, const std::optional<AnswerThinking>& thinking);

// The expression for thinking and what separates it from the answer. With an opener, that mark ends thinking too, as the
// first of what follows.
[[nodiscard]] std::string add_thinking(GrammarRules& rules, const AnswerThinking& thinking, std::string_view opener);

}  // namespace ebb
