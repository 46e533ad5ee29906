#include "session/match.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

std::vector<Token> tokens(std::initializer_list<std::int32_t> ids) {
  std::vector<Token> result;
  for (const std::int32_t id : ids) result.emplace_back(id);
  return result;
}

TEST(Match, counts_computed_tokens_then_waiting_ones) {
  const auto computed = tokens({1, 2, 3});
  const auto waiting = tokens({4});
  EXPECT_EQ(count_common(computed, waiting, tokens({1, 2, 3, 4, 5})), 4);
  EXPECT_EQ(count_common(computed, waiting, tokens({1, 2, 3, 9})), 3);
  EXPECT_EQ(count_common(computed, waiting, tokens({1, 2})), 2);
  EXPECT_EQ(count_common(computed, waiting, tokens({1, 9, 3, 4})), 1);
  EXPECT_EQ(count_common(computed, waiting, {}), 0);
  EXPECT_EQ(count_common({}, waiting, tokens({4, 5})), 1);
  EXPECT_EQ(count_common({}, {}, tokens({4, 5})), 0);
}

// One letter is one token there, and some words are one too.
class Histories : public ::testing::Test {
 protected:
  std::vector<Token> tokens_of(std::string_view text) { return *vocabulary_->tokenize(text, {.parse_special = true}); }
  std::vector<Token> letters_of(std::string_view text) {
    std::vector<Token> tokens;
    for (const char letter : text) {
      for (const Token token : tokens_of({&letter, 1})) tokens.push_back(token);
    }
    return tokens;
  }
  static std::vector<Token> joined(std::initializer_list<std::vector<Token>> parts) {
    std::vector<Token> all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }
  static std::int32_t count(const std::vector<Token>& tokens) { return static_cast<std::int32_t>(tokens.size()); }

  ToyFile file_{toy_bpe().bytes()};
  std::unique_ptr<Vocabulary> vocabulary_ = *Vocabulary::load(file_.path());
};

TEST_F(Histories, other_tokens_with_the_same_bytes_are_held_as_they_were_written) {
  const auto written = joined({tokens_of("so "), letters_of("hello"), tokens_of(" you")});
  const auto said = joined({tokens_of("so "), tokens_of("hello"), tokens_of(" you and on")});
  ASSERT_NE(count(letters_of("hello")), count(tokens_of("hello")));
  const Match match = match_history(*vocabulary_, written, {}, said);
  EXPECT_EQ(match.n_held, count(written));
  EXPECT_EQ(match.n_said, count(joined({tokens_of("so "), tokens_of("hello"), tokens_of(" you")})));
}

TEST_F(Histories, where_texts_part_inside_a_word_it_is_held_up_to_where_both_are_cut) {
  const auto written = joined({tokens_of("so "), letters_of("hello")});
  const auto said = joined({tokens_of("so "), letters_of("help")});
  EXPECT_EQ(match_history(*vocabulary_, written, {}, said),
            (Match{count(tokens_of("so ")) + 3, count(tokens_of("so ")) + 3}));
  const auto whole = joined({tokens_of("so "), tokens_of("hello")});  // "hel", "l", "o"
  EXPECT_EQ(match_history(*vocabulary_, whole, {}, said),
            (Match{count(tokens_of("so ")) + 1, count(tokens_of("so ")) + 3}));
}

TEST_F(Histories, text_that_looks_like_a_control_token_is_none) {
  const auto control = tokens_of("<|im_end|>");
  ASSERT_EQ(count(control), 1);
  const auto text = *vocabulary_->tokenize("<|im_end|>");
  EXPECT_EQ(match_history(*vocabulary_, control, {}, text), Match());
  EXPECT_EQ(match_history(*vocabulary_, text, {}, control), Match());
}

TEST_F(Histories, a_reply_that_means_the_same_is_held_up_to_its_end) {
  const auto head = tokens_of("so ");
  const auto written = joined({head, tokens_of("{\"a\": 1}<|im_end|>"), tokens_of("next")});
  const auto said = joined({head, tokens_of("{\"a\":1}<|im_end|>"), tokens_of("next one")});
  const std::vector<Span> replies = {{Position(count(head)), Position(count(written))}};
  std::vector<std::pair<std::string, std::string>> asked;
  const auto answer = [&](bool same) {
    return SameReply{.whole = [&, same](std::string_view a, std::string_view b) {
      asked.emplace_back(a, b);
      return same;
    }};
  };
  const Match match = match_history(*vocabulary_, written, replies, said, answer(true));
  EXPECT_EQ(match.n_held, count(written));
  EXPECT_EQ(match.n_said, count(joined({head, tokens_of("{\"a\":1}<|im_end|>"), tokens_of("next")})));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0], std::pair(std::string("{\"a\": 1}"), std::string("{\"a\":1}")));
  const Match other = match_history(*vocabulary_, written, replies, said, answer(false));
  EXPECT_LT(other.n_held, count(written));
  EXPECT_EQ(match_history(*vocabulary_, written, {}, said, answer(true)), other);
}

// All places, in bytes, at which texts are the same but for spaces.
std::vector<std::pair<std::size_t, std::size_t>> places_but_for_spaces(std::string_view a, std::string_view b) {
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (std::size_t i = 0, j = 0;;) {
    places.emplace_back(i, j);
    if (i < a.size() && a[i] == ' ') {
      ++i;
    } else if (j < b.size() && b[j] == ' ') {
      ++j;
    } else if (i < a.size() && j < b.size() && a[i] == b[j]) {
      ++i, ++j;
    } else {
      return places;
    }
  }
}

TEST_F(Histories, of_a_reply_that_broke_off_is_held_what_its_mended_form_says_in_whole_tokens) {
  const auto head = tokens_of("so ");
  const SameReply same = {.broken_off = places_but_for_spaces};
  const auto match = [&](const std::vector<Token>& written, const std::vector<Token>& said) {
    const auto held = joined({head, written});
    return match_history(*vocabulary_, held, std::vector<Span>{{Position(count(head)), Position(count(held))}},
                         joined({head, said}), same);
  };
  const auto places = [&](const std::vector<Token>& written, const std::vector<Token>& said) {
    return Match{.n_held = count(joined({head, written})), .n_said = count(joined({head, said}))};
  };
  const auto written = letters_of("{\"a\":1,\"b\":\"hello");
  EXPECT_EQ(match(written, joined({letters_of("{ \"a\": 1, \"b\": \"hello\"}"), tokens_of("<|im_end|>next")})),
            places(written, letters_of("{ \"a\": 1, \"b\": \"hello")));
  // "hel" is one token there, which holds what the other says in three.
  EXPECT_EQ(match(letters_of("{\"b\":\"hell"), joined({letters_of("{\"b\": \""), tokens_of("hello\"}<|im_end|>")})),
            places(letters_of("{\"b\":\"hell"), joined({letters_of("{\"b\": \""), tokens_of("hell")})));
  EXPECT_EQ(match(letters_of("{\"b\":\"he"), joined({letters_of("{\"b\": \""), tokens_of("hello\"}<|im_end|>")})),
            places(letters_of("{\"b\":\""), letters_of("{\"b\": \"")));
  // One that did not break off, or is not mended yet, is no such reply.
  const auto over = joined({letters_of("{\"b\":1"), tokens_of("<|im_end|>")});
  EXPECT_EQ(match(over, joined({letters_of("{\"b\": 1}"), tokens_of("<|im_end|>")})),
            places(letters_of("{\"b\":"), letters_of("{\"b\":")));
  EXPECT_EQ(match(letters_of("{\"b\":1"), letters_of("{\"b\": 1}")),
            places(letters_of("{\"b\":"), letters_of("{\"b\":")));
}

TEST_F(Histories, control_tokens_of_a_reply_that_broke_off_are_the_same_only_by_their_ids) {
  const auto head = tokens_of("so ");
  const SameReply same = {.broken_off = places_but_for_spaces};
  const auto mark = tokens_of("<|im_start|>");
  const auto text = *vocabulary_->tokenize("<|im_start|>");
  const auto held = joined({head, letters_of("a b"), mark, letters_of("c")});
  const std::vector<Span> replies = {{Position(count(head)), Position(count(held))}};
  const auto said = [&](const std::vector<Token>& middle) {
    return joined({head, letters_of("ab"), middle, letters_of("cd"), tokens_of("<|im_end|>")});
  };
  EXPECT_EQ(match_history(*vocabulary_, held, replies, said(mark), same), (Match{count(held), count(head) + 4}));
  EXPECT_EQ(match_history(*vocabulary_, held, replies, said(text), same), (Match{count(head) + 3, count(head) + 2}));
}

std::vector<Token> counted(std::int32_t from, std::int32_t to) {
  std::vector<Token> result;
  for (std::int32_t id = from; id < to; ++id) result.emplace_back(id);
  return result;
}

std::vector<Token> operator+(std::vector<Token> a, const std::vector<Token>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

using Runs = std::vector<TokenRun>;

TEST(Runs, what_lies_behind_an_edit_is_found_wherever_it_went) {
  const auto before = counted(0, 100);
  EXPECT_EQ(find_runs(before, counted(500, 510) + counted(20, 100), 16), (Runs{{20, 10, 80}}));
  EXPECT_EQ(find_runs(before, counted(0, 40) + counted(60, 100), 16), (Runs{{0, 0, 40}, {60, 40, 40}}));
  // One part moved before the other.
  EXPECT_EQ(find_runs(before, counted(50, 100) + counted(0, 50), 16), (Runs{{50, 0, 50}, {0, 50, 50}}));
}

TEST(Runs, shorter_ones_are_not_worth_it) {
  EXPECT_EQ(find_runs(counted(0, 100), counted(30, 45), 16), Runs());
  EXPECT_EQ(find_runs(counted(0, 100), counted(30, 46), 16), (Runs{{30, 0, 16}}));
  EXPECT_EQ(find_runs(counted(0, 8), counted(0, 8), 16), Runs());
  EXPECT_EQ(find_runs({}, {}, 16), Runs());
}

TEST(Runs, of_repeated_text_the_place_where_the_last_run_goes_on_is_taken) {
  const auto line = counted(0, 20);
  const auto before = line + line + line + counted(100, 120);
  EXPECT_EQ(find_runs(before, line + counted(300, 320) + line + line + counted(100, 120), 16),
            (Runs{{0, 0, 20}, {20, 40, 60}}));
}

}  // namespace
}  // namespace ebb
