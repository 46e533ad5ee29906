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
#include <vector>

#include "chat/reply_parser.h"
#include "grammar/grammar_rules.h"

namespace ebb {

struct AnswerThinking {
  ThinkTags tags = {};
  // The prompt ended inside thinking. Otherwise the answer may begin with it.
  bool is_open = false;
};

// Of the marks around what is said (find_dress), those that an answer of one part begins with: gpt-oss says JSON only behind
// <|channel|>final<|message|>. Of a mark that the prompt began (find_begun_mark), what is left. Empty: it needs none.
[[nodiscard]] std::vector<std::string> answer_openers(const std::vector<std::string>& dress,
                                                      std::string_view begun = {});

struct AnswerGrammar {
  std::string grammar;
  std::string root = "root";
};

// Behind thinking and one of the openers, where there are any, the answer is what `grammar` says from "root" on. Its rules must not begin
// with "ebb-".
[[nodiscard]] AnswerGrammar behind_thinking(std::string grammar, const std::optional<AnswerThinking>& thinking,
                                            const std::vector<std::string>& openers = {});

// The expression for one of the openers; with none, it is empty.
[[nodiscard]] std::string one_of_openers(const std::vector<std::string>& openers);

// The expression for thinking and what separates it from the answer. With an opener, that mark ends thinking too, as the
// first of what follows.
[[nodiscard]] std::string add_thinking(GrammarRules& rules, const AnswerThinking& thinking, std::string_view opener);

}  // namespace ebb
