#include "chat/answer_grammar.h"

#include <algorithm>

#include "grammar/text_rules.h"

namespace ebb {

std::string add_thinking(GrammarRules& rules, const AnswerThinking& thinking, std::string_view opener) {
  std::vector<std::string_view> ends = {thinking.tags.close};
  if (!opener.empty()) ends.push_back(opener);
  const std::string text = add_text_without(rules, ends);
  const std::string gap = add_gap_rule(rules);
  // gpt-oss begins each of its messages anew, and so the one behind its thinking.
  const std::string& reopen = thinking.tags.reopen;
  const std::string begin = reopen.substr(0, reopen.size() - std::min(reopen.size(), thinking.tags.open.size()));
  const std::string again = begin.empty() ? "" : fmt::format(" {}?", grammar_literal(begin));
  const std::string close =
      fmt::format("({} {}{}){}", grammar_literal(thinking.tags.close), gap, again, opener.empty() ? "" : "?");
  if (thinking.is_open) return fmt::format("{} {}", text, close);
  return fmt::format("({} {} {} {})?", gap, grammar_literal(thinking.tags.open), text, close);
}

std::vector<std::string> answer_openers(const std::vector<std::string>& dress, std::string_view begun) {
  std::vector<std::string> openers;
  for (const std::string& mark : dress) {
    if (mark.starts_with("<|channel|>final")) openers.push_back(mark);
    if (!begun.empty() && mark.starts_with(begun)) openers.push_back(mark.substr(begun.size()));
  }
  return openers;
}

std::string one_of_openers(const std::vector<std::string>& openers) {
  if (openers.empty()) return {};
  std::vector<std::string> literals;
  for (const std::string& opener : openers) literals.push_back(grammar_literal(opener));
  return fmt::format("({})", fmt::join(literals, " | "));
}

AnswerGrammar behind_thinking(std::string grammar, const std::optional<AnswerThinking>& thinking,
                              const std::vector<std::string>& openers) {
  if (!thinking && openers.empty()) return {.grammar = std::move(grammar)};
  GrammarRules rules("ebb-");
  AnswerGrammar answer{.grammar = std::move(grammar), .root = "ebb-answer"};
  const std::string thought = thinking ? add_thinking(rules, *thinking, "") : "";
  rules.add(answer.root, fmt::format("{} {} root", thought, one_of_openers(openers)));
  // A few rules, which fit.
  answer.grammar += "\n" + rules.finish().value();
  return answer;
}

}  // namespace ebb
