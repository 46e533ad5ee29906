// Grammars that are mutated or made of random words, as a client may send them: each is refused with its line, or can be
// matched against random text in bounded work.
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/toy_rounds.h"
#include "grammar/gbnf_match.h"
#include "text/toy_vocabulary.h"

namespace ebb::gbnf_random_test {
namespace {

std::string random_grammar(std::mt19937& random) {
  static const std::vector<std::string> kWords = {"root ::= ", "a ::= ",     "\nroot ::= ",
                                                  "\na ::= ",  " a ",        " root ",
                                                  "\"x\"",     "\"xy\\n\"",  "\"\\u00e9\"",
                                                  "[a-z]",     "[^\\]]",     ".",
                                                  " | ",       "(",          ")",
                                                  "*",         "+",          "?",
                                                  "{2}",       "{0,3}",      "{1,}",
                                                  "{9999}",    "<|im_end|>", "!<[3]>",
                                                  "<[0]>",     "# note\n",   "\n",
                                                  " ",         "\"",         "[",
                                                  "]",         "{",          "}",
                                                  "\\",        "::=",        "b",
                                                  "\xFF",      "\xC3\xA9",   "[\\x00-\\xff]",
                                                  "\"\""};
  std::string grammar =
      random() % 4 != 0 ? "root ::= \"x\" a | [a-z]+ (\"y\" a)?\na ::= \"b\"* [^c] | <|im_end|>\n" : "root ::= ";
  for (auto n = random() % 6; n > 0; --n) {
    grammar.insert(random() % 2 == 0 ? grammar.size() : random() % (grammar.size() + 1),
                   kWords[random() % kWords.size()]);
  }
  return grammar;
}

void match_some(const std::shared_ptr<const Gbnf>& gbnf, std::mt19937& random, int& n_accepted) {
  Result<GbnfMatch> match = GbnfMatch::begin(gbnf);
  for (int i = 0; match.ok() && i < 8; ++i) {
    const std::string text(1, "xxyabc\xC3\n"[random() % 8]);
    const GbnfPiece piece{.token = Token(static_cast<std::int32_t>(random() % 262)), .bytes = text};
    const Result<std::vector<bool>> allowed = match->allows({&piece, 1});
    const Result<bool> accepted = match->accept(piece);
    if (!allowed.ok() || !accepted.ok()) return;
    ASSERT_EQ(allowed->front(), *accepted);
    n_accepted += *accepted ? 1 : 0;
    (void)match->may_end();
  }
}

TEST(GbnfRandom, grammars_are_refused_with_their_line_or_matched) {
  const ToyFile file(toy_bpe().bytes());
  const std::unique_ptr<Vocabulary> vocabulary = Vocabulary::load(file.path()).value();
  int n_read = 0;
  int n_accepted = 0;
  for (RandomRounds rounds(10000); rounds.next();) {
    SCOPED_TRACE(rounds.seed());
    std::mt19937 random(rounds.seed());
    const std::string grammar = random_grammar(random);
    Result<Gbnf> gbnf = read_gbnf(*vocabulary, grammar, "root");
    if (!gbnf.ok()) {
      ASSERT_EQ(gbnf.status().code(), Code::kInvalidArgument) << grammar;
      ASSERT_THAT(gbnf.status().message(), testing::HasSubstr("grammar")) << grammar;
      continue;
    }
    ++n_read;
    match_some(std::make_shared<const Gbnf>(*std::move(gbnf)), random, n_accepted);
  }
  EXPECT_GT(n_read, 300);
  EXPECT_GT(n_accepted, 300);
}

}  // namespace
}  // namespace ebb::gbnf_random_test
