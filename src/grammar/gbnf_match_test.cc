#include "grammar/gbnf_match.h"

#include <memory>
#include <random>
#include <set>
#include <string>

#include "grammar/grammar_match_test.h"
#include "grammar/json_schema_grammar.h"
#include "gtest/gtest.h"
#include "text/toy_vocabulary.h"

namespace ebb::gbnf_match_test {
namespace {

class GbnfMatchTest : public testing::Test {
 protected:
  [[nodiscard]] GbnfMatch match(const std::string& grammar, const GbnfMatchLimits& limits = {}) const {
    return GbnfMatch::begin(std::make_shared<const Gbnf>(read_gbnf(*vocabulary_, grammar, "root").value()), limits)
        .value();
  }
  // A piece that is no token of the grammar's.
  static GbnfPiece text(std::string_view bytes) { return {.token = Token(0), .bytes = bytes}; }
  static bool allows(GbnfMatch& match, const GbnfPiece& piece) { return match.allows({&piece, 1}).value().front(); }
  static bool matches(GbnfMatch match, std::string_view whole) {
    return match.accept(text(whole)).value() && match.may_end();
  }

  ToyFile file_{toy_bpe().bytes()};
  std::unique_ptr<Vocabulary> vocabulary_ = Vocabulary::load(file_.path()).value();
};

constexpr std::string_view kAmbiguous = "root ::= s\ns ::= \"a\" s \"b\" | \"a\" s \"c\" | \"x\"\n";

TEST_F(GbnfMatchTest, reads_a_rule_that_begins_the_same_in_two_ways_as_fast_as_one_that_does_not) {
  GbnfMatch both =
      match(std::string(kAmbiguous), {.max_places = 64, .max_places_per_token = 1 << 16, .max_links = 8192});
  constexpr int kDepth = 1500;
  for (int i = 0; i < kDepth; ++i) ASSERT_TRUE(both.accept(text("a")).value()) << i;
  ASSERT_TRUE(both.accept(text("x")).value());
  for (int i = 0; i < kDepth; ++i) {
    ASSERT_FALSE(both.may_end());
    ASSERT_TRUE(both.accept(text(i % 3 == 0 ? "b" : "c")).value()) << i;
  }
  EXPECT_TRUE(both.may_end());
  EXPECT_FALSE(both.accept(text("b")).value());
}

TEST_F(GbnfMatchTest, looks_at_long_candidates_of_an_ambiguous_grammar_in_bounded_time) {
  GbnfMatch both = match(std::string(kAmbiguous));
  const std::string many(2000, 'a');
  EXPECT_TRUE(allows(both, text(many)));
  EXPECT_FALSE(allows(both, text(many + "b")));
  EXPECT_TRUE(allows(both, text(many + "xbcbc")));
}

TEST_F(GbnfMatchTest, refuses_a_grammar_that_needs_more_than_its_limits_and_says_how_to_write_it) {
  // Every sum of a word's lengths is a parse of its own.
  GbnfMatch wide = match("root ::= e\ne ::= \"a\" | \"a\" e e | \"a\" e e e", {.max_places = 400});
  Result<bool> accepted = true;
  int n_accepted = 0;
  while (accepted.ok() && n_accepted < 10000) {
    accepted = wide.accept(text("a"));
    ++n_accepted;
  }
  EXPECT_EQ(accepted.status().code(), Code::kOutOfBudget);
  EXPECT_NE(accepted.status().message().find("once, in front of them"), std::string::npos);
  // It is as it was before that token.
  EXPECT_TRUE(wide.may_end());
  EXPECT_FALSE(wide.accept(text("b")).value());

  GbnfMatch deep = match("root ::= \"(\" root \")\" | \"x\"", {.max_links = 5000});
  for (int i = 0; i < 4000; ++i) ASSERT_TRUE(deep.accept(text("(")).value());
  const std::string longer(20000, '(');
  EXPECT_EQ(deep.accept(text(longer)).status().code(), Code::kOutOfBudget);
  EXPECT_TRUE(matches(deep, "x" + std::string(4000, ')')));
}

TEST_F(GbnfMatchTest, looks_a_word_up_in_a_long_list_instead_of_walking_it) {
  std::string words;
  for (int i = 1; i <= 18000; ++i) words += fmt::format("{}\"a{}\"", i > 1 ? " | " : "", i);
  const GbnfMatchLimits few{.max_places = 32, .max_places_per_token = 256};
  const std::string both = "root ::= list (\",\" list)*\nlist ::= " + words + " | [x-z] list | \"\"\n";
  for (const std::string& grammar : {"root ::= " + words, both}) {
    GbnfMatch list = match(grammar, few);
    for (const std::string_view word : {"a1", "a17", "a18000", "a9999"}) EXPECT_TRUE(matches(list, word)) << word;
    for (const std::string_view word : {"a", "a0", "a18001", "b1", "a1a"}) EXPECT_FALSE(matches(list, word)) << word;
    EXPECT_TRUE(allows(list, text("a1800")));
    EXPECT_FALSE(allows(list, text("a18001")));
  }
  EXPECT_TRUE(matches(match(both, few), "a1,xza2,,y"));
  nlohmann::ordered_json schema;
  for (int i = 1; i <= 4900; ++i) schema["enum"].push_back(std::to_string(i));
  const Result<JsonGrammar> of_schema = json_schema_grammar(schema);
  ASSERT_TRUE(of_schema.ok()) << of_schema.status().message();
  EXPECT_TRUE(matches(match(of_schema->grammar, few), "\"4899\""));
  EXPECT_FALSE(matches(match(of_schema->grammar, few), "\"4901\""));
}

TEST_F(GbnfMatchTest, words_that_begin_others_or_stand_twice_or_go_on_otherwise_keep_their_meaning) {
  const GbnfMatch words = match(
      "root ::= (\"a\" | \"ab\" | \"ab\" | \"ab\" [0-9] | \"abc\" root | \"abd\"? | \"\\u00e9x\" | "
      "\"e\" | <[258]> \"k\")");
  for (const std::string_view text : {"a", "ab", "ab7", "abca", "abcabcab1", "abd", "abce", "\xC3\xA9x", "e"}) {
    EXPECT_TRUE(matches(words, text)) << text;
  }
  for (const std::string_view text : {"b", "abx", "abde", "a7", "\xC3\xA9", "ab77"})
    EXPECT_FALSE(matches(words, text)) << text;
  GbnfMatch partial = words;
  EXPECT_TRUE(allows(partial, text("\xC3")));
  EXPECT_FALSE(allows(partial, text("\xC4")));
  EXPECT_TRUE(allows(partial, {.token = Token(258), .bytes = "<|im_start|>"}));
}

TEST_F(GbnfMatchTest, reads_classes_whose_ranges_overlap_or_touch) {
  const GbnfMatch in = match("root ::= [m-pa-cb-fgz-yx]");
  const GbnfMatch out = match("root ::= [^m-pa-cb-fgz-yx]");
  for (const char c : std::string("abcdefghlmpqwxyz")) {
    const bool is_in = std::string_view("abcdefgmpx").find(c) != std::string_view::npos;
    EXPECT_EQ(matches(in, {&c, 1}), is_in) << c;
    EXPECT_EQ(matches(out, {&c, 1}), !is_in) << c;
  }
  GbnfMatch none = match("root ::= [^\\u0080-\\u00a0\\u00a1-\\u07ff]");
  EXPECT_FALSE(allows(none, text("\xC3")));  // no two-byte character is left
  EXPECT_TRUE(allows(none, text("\xE3")));
}

TEST_F(GbnfMatchTest, what_is_asked_before_one_token_is_accepted_counts_together) {
  GbnfMatch asked = match("root ::= [ab]*", {.max_places_per_token = 5000, .max_places_per_character = 0});
  const GbnfPiece many = text("abababab");
  Status status;
  int n_asked = 0;
  while (status.ok() && n_asked < 10000) {
    status = asked.allows({&many, 1}).status();
    ++n_asked;
  }
  EXPECT_EQ(status.code(), Code::kOutOfBudget);
  EXPECT_GT(n_asked, 50);
  for (int i = 0; i < 10000; ++i) ASSERT_TRUE(asked.accept(many).value());
}

TEST_F(GbnfMatchTest, forgets_what_no_parse_can_come_back_to) {
  GbnfMatch line = match("root ::= (letter+ \" \")*\nletter ::= digit | [a-z]\ndigit ::= [0-9]", {.max_links = 8192});
  for (int i = 0; i < 200000; ++i) ASSERT_TRUE(line.accept(text(i % 7 == 6 ? " " : "k")).value()) << i;
}

TEST_F(GbnfMatchTest, takes_characters_of_which_only_the_first_bytes_are_there) {
  GbnfMatch euro = match("root ::= [\xE2\x82\xAC-\xE2\x82\xAF] | \"\xC3\xA9\"");
  EXPECT_TRUE(allows(euro, text("\xE2")));
  EXPECT_TRUE(allows(euro, text("\xE2\x82")));
  EXPECT_FALSE(allows(euro, text("\xE2\x83")));
  EXPECT_FALSE(allows(euro, text("\xE3")));
  EXPECT_FALSE(allows(euro, text("\x82")));
  ASSERT_TRUE(euro.accept(text("\xE2")).value());
  EXPECT_FALSE(euro.may_end());
  EXPECT_FALSE(allows(euro, text("a")));
  EXPECT_FALSE(allows(euro, text("\x82\xB0")));
  EXPECT_TRUE(euro.accept(text("\x82")).value());
  EXPECT_TRUE(euro.accept(text("\xAD")).value());
  EXPECT_TRUE(euro.may_end());
  // Bytes that no text has: overlong, surrogates, past the last, NUL.
  GbnfMatch any = match("root ::= .*");
  for (const std::string_view bytes : {"\xC0", "\xE0\x9F", "\xED\xA0", "\xF4\x90", "\xF5", "\xFF"}) {
    EXPECT_FALSE(allows(any, text(bytes)));
  }
  EXPECT_FALSE(allows(any, text(std::string_view("a\0b", 3))));
  EXPECT_TRUE(allows(any, text("\xF4\x8F\xBF\xBF")));
  EXPECT_FALSE(allows(any, text("")));
}

TEST_F(GbnfMatchTest, matches_a_token_that_the_grammar_names_whole_and_by_its_number) {
  GbnfMatch start = match("root ::= <[258]> \"a\" | \"<|im_start|>b\"");
  EXPECT_FALSE(allows(start, {.token = Token(5), .bytes = "a"}));
  ASSERT_TRUE(start.accept({.token = Token(258), .bytes = "<|im_start|>"}).value());
  EXPECT_TRUE(allows(start, text("a")));
  EXPECT_TRUE(allows(start, text("b")));  // it was also text
  GbnfMatch other = match("root ::= !<[258]> \"a\"");
  EXPECT_FALSE(allows(other, {.token = Token(258), .bytes = "<|im_start|>"}));
  EXPECT_TRUE(other.accept({.token = Token(7), .bytes = "q"}).value());
  EXPECT_TRUE(matches(other, "a"));
}

TEST_F(GbnfMatchTest, reads_repetitions_as_they_are_written) {
  const auto n_of = [&](const std::string& times) {
    std::string lengths;
    for (int n = 0; n < 6; ++n)
      lengths += matches(match("root ::= \"<\" (\"ab\" | [x])" + times + " \">\""),
                         "<" + std::string(static_cast<std::size_t>(n), 'x') + ">")
                     ? '1'
                     : '0';
    return lengths;
  };
  EXPECT_EQ(n_of("*"), "111111");
  EXPECT_EQ(n_of("+"), "011111");
  EXPECT_EQ(n_of("?"), "110000");
  EXPECT_EQ(n_of("{2}"), "001000");
  EXPECT_EQ(n_of("{2,}"), "001111");
  EXPECT_EQ(n_of("{1,3}"), "011100");
  EXPECT_EQ(n_of("{0}"), "100000");
  EXPECT_TRUE(matches(match("root ::= (\"a\"?)* \"b\"{0,2}?"), "aaab"));
  EXPECT_TRUE(matches(match("root ::= \"\\x41\\u00e9\\n\\\\\" [^\\]\\-] [a\\-c] \"\\U0001F600\""),
                      "A\xC3\xA9\n\\k-\xF0\x9F\x98\x80"));
}

// A random grammar over a, b and c whose rules may be empty, ambiguous and recursive.
std::string random_grammar(std::mt19937& random) {
  static const std::vector<std::string> kSymbols = {"\"a\"",      "\"b\"",  "[ab]",        "[^a]", "p",  "q",
                                                    "r",          "\"ab\"", "(p | \"c\")", "p?",   "q*", "r{1,2}",
                                                    "(\"a\" q)+", "."};
  std::string grammar;
  for (const std::string rule : {"root", "p", "q", "r"}) {
    grammar += rule + " ::=";
    for (auto n = 1 + random() % 3; n > 0; --n) {
      for (auto m = random() % 4; m > 0; --m) grammar += " " + kSymbols[random() % kSymbols.size()];
      grammar += n > 1 ? " |" : "\n";
    }
  }
  return grammar;
}

TEST_F(GbnfMatchTest, agrees_with_libllama_about_random_grammars_and_texts) {
  std::mt19937 random(7);
  int n_grammars = 0;
  int n_matched = 0;
  testing::internal::CaptureStderr();
  while (n_grammars < 150) {
    const std::string grammar = random_grammar(random);
    if (!read_gbnf(*vocabulary_, grammar, "root").ok()) continue;
    GrammarMatch theirs(grammar);
    if (!theirs.error().empty()) continue;  // it takes no repetition of what may be empty
    ++n_grammars;
    for (int i = 0; i < 60; ++i) {
      std::string whole;
      for (auto n = random() % 7; n > 0; --n) whole += "abcd"[random() % (i % 2 == 0 ? 2 : 4)];
      GbnfMatch ours = match(grammar);
      bool is_read = true;
      for (const char c : whole) {
        const bool is_allowed = allows(ours, text({&c, 1}));
        ASSERT_EQ(ours.accept(text({&c, 1})).value(), is_allowed);
        is_read = is_read && is_allowed;
        if (!is_read) break;
      }
      ASSERT_EQ(is_read && ours.may_end(), theirs.matches(whole)) << whole << "\n" << grammar;
      GbnfMatch at_once = match(grammar);
      const bool is_read_at_once = whole.empty() || allows(at_once, text(whole));
      ASSERT_EQ(is_read_at_once, is_read) << whole << "\n" << grammar;
      n_matched += is_read && ours.may_end();
    }
  }
  (void)testing::internal::GetCapturedStderr();
  EXPECT_GT(n_matched, 700);
}

// libllama keeps too many stacks of such lists to be asked.
TEST_F(GbnfMatchTest, takes_one_or_two_of_random_words_and_nothing_else) {
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    std::set<std::string> words = {"bb"};
    std::string grammar = "root ::= w w?\nw ::= \"bb\"";
    for (auto n = 4 + random() % 8; n > 0; --n) {
      std::string word;
      for (auto m = 1 + random() % 4; m > 0; --m) word += "ab"[random() % 2];
      const bool goes_on = random() % 3 == 0;
      grammar += fmt::format(" | \"{}\"{}", word, goes_on ? " [ab]" : "");
      if (goes_on) words.insert({word + "a", word + "b"});
      if (!goes_on) words.insert(word);
    }
    std::set<std::string> texts = words;
    for (const std::string& one : words) {
      for (const std::string& other : words) texts.insert(one + other);
    }
    const GbnfMatch begun = match(grammar);
    for (unsigned bits = 2; bits < 256; ++bits) {  // the first bit says where the text begins
      std::string whole;
      for (unsigned rest = bits; rest > 1; rest /= 2) whole += "ab"[rest % 2];
      ASSERT_EQ(matches(begun, whole), texts.contains(whole)) << whole << "\n" << grammar;
      GbnfMatch by_letter = begun;
      bool is_read = true;
      for (const char& c : whole) is_read = is_read && by_letter.accept(text({&c, 1})).value();
      ASSERT_EQ(is_read && by_letter.may_end(), texts.contains(whole)) << whole << "\n" << grammar;
    }
  }
}

}  // namespace
}  // namespace ebb::gbnf_match_test
