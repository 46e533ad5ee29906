#include "chat/answer_grammar.h"

#include "grammar/grammar_match_test.h"
#include "grammar/json_schema_grammar.h"
#include "gtest/gtest.h"

namespace ebb {
namespace {

GrammarMatch match(std::string grammar, const std::optional<AnswerThinking>& thinking) {
  const AnswerGrammar answer = behind_thinking(std::move(grammar), thinking);
  GrammarMatch made(answer.grammar, answer.root);
  EXPECT_EQ(made.error(), "");
  return made;
}

TEST(AnswerGrammar, is_the_grammar_itself_without_thinking) {
  const AnswerGrammar answer = behind_thinking("root ::= \"a\"", std::nullopt);
  EXPECT_EQ(answer.grammar, "root ::= \"a\"");
  EXPECT_EQ(answer.root, "root");
}

TEST(AnswerGrammar, lets_an_answer_think_first) {
  GrammarMatch grammar = match("root ::= \"a\"", AnswerThinking{});
  EXPECT_TRUE(grammar.matches("a"));
  EXPECT_TRUE(grammar.matches("<think>\nb </thin </think </think>\n\na"));
  EXPECT_TRUE(grammar.matches("\n<think></think>a"));
  EXPECT_TRUE(grammar.matches("<think>\xE2\x82\xAC\x01</think>a"));
  EXPECT_FALSE(grammar.matches("b"));
  EXPECT_FALSE(grammar.matches("b</think>a"));
  EXPECT_FALSE(grammar.matches("<think>b</think>"));
  EXPECT_FALSE(grammar.matches("<think>a"));
  EXPECT_FALSE(grammar.matches("<think>b</think>\n\n\n\n\na"));
}

TEST(AnswerGrammar, begins_inside_thinking_that_the_prompt_opened) {
  GrammarMatch grammar = match("root ::= \"a\"", AnswerThinking{.tags = {"[THINK]", "[/THINK]"}, .is_open = true});
  EXPECT_TRUE(grammar.matches("[/THINK]a"));
  EXPECT_TRUE(grammar.matches("[THINK] b [[/THINK]a"));
  EXPECT_FALSE(grammar.matches("a"));
  EXPECT_FALSE(grammar.matches("[/THINK]b"));
}

TEST(AnswerGrammar, says_json_in_gpt_oss_final_message) {
  const std::string source = "<|channel|>analysis<|message|> <|end|> <|channel|>final<|message|>";
  const AnswerGrammar answer = behind_thinking("root ::= \"{}\"", AnswerThinking{.tags = *find_think_tags(source)},
                                               answer_openers(find_dress(source)));
  GrammarMatch grammar(answer.grammar, answer.root);
  ASSERT_EQ(grammar.error(), "");
  EXPECT_TRUE(grammar.matches("<|channel|>final<|message|>{}"));
  EXPECT_TRUE(grammar.matches("<|channel|>final <|constrain|>json<|message|>{}"));
  EXPECT_TRUE(grammar.matches(
      "<|channel|>analysis<|message|>A {}.<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>{}"));
  EXPECT_FALSE(grammar.matches("{}"));
  EXPECT_FALSE(grammar.matches("<|channel|>final<|message|>"));
  EXPECT_FALSE(grammar.matches("<|channel|>analysis<|message|>A.<|end|><|start|>assistant{}"));
  EXPECT_TRUE(answer_openers(find_dress("[BEGIN FINAL RESPONSE]")).empty());
  // Where the prompt leaves no room for thinking.
  const AnswerGrammar plain = behind_thinking("root ::= \"{}\"", std::nullopt, answer_openers(find_dress(source)));
  EXPECT_TRUE(GrammarMatch(plain.grammar, plain.root).matches("<|channel|>final<|message|>{}"));
}

TEST(AnswerGrammar, holds_schemas_whose_rules_have_names_of_their_own) {
  GrammarMatch grammar =
      match(json_schema_grammar({{"type", "object"}, {"properties", {{"a", {{"type", "integer"}}}}}})->grammar,
            AnswerThinking{.is_open = true});
  EXPECT_TRUE(grammar.matches("Let me see.</think>\n{\"a\": 5}"));
  EXPECT_FALSE(grammar.matches("Let me see.</think>\n{\"b\": 5}"));
}

}  // namespace
}  // namespace ebb
