#include "policy/selector.h"

#include <gmock/gmock.h>

#include "policy/cues.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

std::vector<Considered> select(std::string_view spec, const RecallEvidence& evidence) {
  const Result<SelectorList> list = SelectorList::parse(spec);
  EXPECT_TRUE(list.ok()) << list.status().message();
  EXPECT_EQ(list->all().size(), 1U);
  return list->all().front()->select(evidence);
}

std::vector<std::int32_t> blocks_of(const std::vector<Considered>& considered, Verdict verdict) {
  std::vector<std::int32_t> blocks;
  for (const Considered& one : considered) {
    if (one.verdict == verdict) blocks.push_back(one.block.value());
  }
  return blocks;
}

TEST(Selectors, are_named_and_joined) {
  EXPECT_EQ(SelectorList::parse("none")->all().size(), 0U);
  EXPECT_EQ(SelectorList::parse("fused")->text(), "fused");
  EXPECT_TRUE(SelectorList::fused().asks_queries());
  const Result<SelectorList> both = SelectorList::parse("lexical+digest:least=0.1,worth=0.9");
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_EQ(both->all().size(), 2U);
  EXPECT_EQ(both->text(), "lexical+digest:least=0.1,worth=0.9");
  EXPECT_FALSE(SelectorList::parse("identity+lexical")->asks_queries());
  for (const SelectorKind& kind : selector_kinds()) {
    const Result<SelectorList> one = SelectorList::parse(kind.name);
    ASSERT_TRUE(one.ok()) << kind.name;
    EXPECT_EQ(one->all().front()->name(), kind.name);
  }
}

TEST(Selectors, that_there_are_not_are_refused_in_words) {
  EXPECT_THAT(SelectorList::parse("lexicon").status().message(),
              HasSubstr("fused, none, identity, lexical, embedding, digest"));
  EXPECT_THAT(SelectorList::parse("lexical+lexical").status().message(), HasSubstr("twice"));
  EXPECT_THAT(SelectorList::parse("digest:least=2").status().message(), HasSubstr("least"));
  EXPECT_THAT(SelectorList::parse("lexical:k=2").status().message(), HasSubstr("selector lexical"));
  for (const char* const text : {"", "+", "lexical+", "+lexical", "fused+lexical"}) {
    EXPECT_FALSE(SelectorList::parse(text).ok()) << text;
  }
}

TEST(Selectors, by_name_choose_what_is_named_whatever_the_most) {
  const std::vector<double> missing = {0.0, 1.0, 0.5};
  const std::vector<BlockIndex> named = {BlockIndex(2), BlockIndex(0), BlockIndex(7)};
  const auto found = select("identity", {.missing = missing, .named = named, .max_blocks = 0});
  EXPECT_EQ(blocks_of(found, Verdict::kRecall), std::vector{2});
  EXPECT_EQ(blocks_of(found, Verdict::kKeep), std::vector{0});
}

TEST(Selectors, by_digest_choose_what_queries_look_at_and_nothing_weak) {
  const std::vector<double> missing = {0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0};
  std::vector<BlockShare> shares;
  for (const double share : {0.9, 0.2, 0.8, 0.45, 0.1, 0.39, 0.8}) {
    shares.push_back({.block = BlockIndex(static_cast<std::int32_t>(shares.size())), .share = share});
  }
  const RecallEvidence evidence{.missing = missing, .shares = shares, .max_blocks = 8};
  const auto found = select("digest", evidence);
  // 0.45 is enough by itself, and not beside 0.8; of equals the later comes first.
  EXPECT_EQ(blocks_of(found, Verdict::kRecall), (std::vector{6, 2}));
  EXPECT_EQ(blocks_of(found, Verdict::kKeep), std::vector{0});
  EXPECT_EQ(blocks_of(found, Verdict::kWeak), (std::vector{3, 5, 1}));
  EXPECT_EQ(blocks_of(select("digest:worth=0.1,least=0.1", evidence), Verdict::kRecall), (std::vector{6, 2, 3, 5, 1}));
  EXPECT_TRUE(blocks_of(select("digest:least=0.95", evidence), Verdict::kRecall).empty());
}

TEST(Selectors, by_digest_take_no_more_than_fits_and_say_what_stayed_behind) {
  const std::vector<double> missing = {1.0, 0.5, 1.0, 1.0};
  std::vector<BlockShare> shares;
  for (std::int32_t b = 0; b < 4; ++b) shares.push_back({.block = BlockIndex(b), .share = 0.9 - 0.01 * b});
  const auto found = select("digest", {.missing = missing, .shares = shares, .max_blocks = 2});
  // One that is half there takes half of a block's room.
  EXPECT_EQ(blocks_of(found, Verdict::kRecall), (std::vector{0, 1, 2}));
  EXPECT_EQ(blocks_of(found, Verdict::kBeyond), std::vector{3});
}

TEST(Selectors, by_digest_say_in_which_heads_a_block_is_looked_at_and_count_those_alone) {
  const std::vector<double> missing(4, 1.0);
  std::vector<BlockShare> shares = {{.block = BlockIndex(0), .share = 0.8F, .by_head = {0.8F, 0.3F, 0.1F, 0.0F}},
                                    {.block = BlockIndex(1), .share = 0.75F, .by_head = {0.0F, 0.0F, 0.75F, 0.0F}},
                                    {.block = BlockIndex(2), .share = 0.7F, .by_head = {0.7F, 0.6F, 0.7F, 0.2F}},
                                    {.block = BlockIndex(3), .share = 0.7F}};
  const auto found = select("digest", {.missing = missing, .shares = shares, .max_blocks = 2});
  // Half of a block, a quarter, all of one, and one of which nothing more is known: what fits is begun.
  EXPECT_EQ(blocks_of(found, Verdict::kRecall), (std::vector{0, 1, 3, 2}));
  EXPECT_EQ(found[0].heads, (std::vector{0, 1}));
  EXPECT_EQ(found[1].heads, std::vector{2});
  EXPECT_TRUE(found[2].heads.empty());
  EXPECT_TRUE(found[3].heads.empty());
  for (const Considered& one : select("digest:heads=0", {.missing = missing, .shares = shares, .max_blocks = 4})) {
    EXPECT_TRUE(one.heads.empty());
  }
}

TEST(Selectors, by_embedding_choose_for_each_cue_and_are_not_kept_from_it_by_what_is_hot) {
  const std::vector<double> missing = {0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0};
  // An earlier question lies hot in block 0, nearer to this one than what answers it.
  const std::vector<CueLikeness> meanings = {
      {.weight = 1.0,
       .blocks = {{BlockIndex(0), 0.95}, {BlockIndex(1), 0.6}, {BlockIndex(2), 0.5}, {BlockIndex(3), 0.2}}},
      {.weight = 1.0, .blocks = {{BlockIndex(4), 0.4}, {BlockIndex(1), 0.35}, {BlockIndex(5), 0.2}}},
      {.weight = 0.2, .blocks = {{BlockIndex(6), 0.5}}}};
  const RecallEvidence evidence{.missing = missing, .meanings = meanings, .max_blocks = 8};
  const auto found = select("embedding:least=0.3,worth=0.8", evidence);
  // The third cue says little beside the others.
  EXPECT_EQ(blocks_of(found, Verdict::kRecall), (std::vector{1, 4, 2}));
  EXPECT_EQ(blocks_of(found, Verdict::kKeep), std::vector{0});
  EXPECT_EQ(blocks_of(found, Verdict::kWeak), (std::vector{3, 6}));
  EXPECT_EQ(blocks_of(select("embedding:least=0.55", evidence), Verdict::kRecall), std::vector{1});
  const RecallEvidence small{.missing = missing, .meanings = meanings, .max_blocks = 2};
  EXPECT_EQ(blocks_of(select("embedding:worth=0.8", small), Verdict::kRecall), (std::vector{1, 4}));
  EXPECT_EQ(blocks_of(select("embedding:worth=0.8", small), Verdict::kBeyond), std::vector{2});
}

TEST(Selectors, by_embedding_say_that_they_want_meanings_and_how_long_they_wait) {
  const SelectorList list = SelectorList::parse("lexical+embedding:wait=250").value();
  EXPECT_TRUE(list.asks_meanings());
  EXPECT_EQ(list.most_wait_ms(), 250.0);
  EXPECT_FALSE(SelectorList::fused().asks_meanings());
  EXPECT_TRUE(select("embedding", {.max_blocks = 8}).empty());
}

TEST(Selectors, by_words_tell_what_they_did_not_choose) {
  WordIndex words;
  const std::vector<std::string> texts = {"the code of the quagga is 17", "rain on the hills", "a quagga in the rain",
                                          "the lamp is blue"};
  for (std::size_t b = 0; b < texts.size(); ++b) words.add(BlockIndex(static_cast<std::int32_t>(b)), texts[b]);
  std::vector<CueRanking> rankings;
  for (const Cue& cue : find_cues("What is the code of the quagga?")) {
    rankings.push_back({.weight = cue.weight, .ranked = words.rank(cue.text)});
  }
  const std::vector<double> missing(4, 1.0);
  const auto found = select("lexical", {.missing = missing, .words = rankings, .max_blocks = 1});
  EXPECT_EQ(blocks_of(found, Verdict::kRecall), std::vector{0});
  ASSERT_GE(found.size(), 2U);
  EXPECT_GT(found[0].score, found[1].score);
  EXPECT_NE(found[1].verdict, Verdict::kRecall);
}

// The first block and the last are of no account, and what is hot itself is not touched.
TEST(Selectors, behind_the_gate_bring_back_what_scores_more_than_all_that_is_hot) {
  const std::vector<double> missing = {0.0, 1.0, 0.0, 1.0, 0.0};
  std::vector<BlockShare> shares;
  for (const double share : {0.9, 0.5, 0.4, 0.3, 0.9}) {
    shares.push_back({.block = BlockIndex(static_cast<std::int32_t>(shares.size())), .share = share});
  }
  const RecallEvidence evidence{.missing = missing, .shares = shares, .max_blocks = 8};
  EXPECT_EQ(blocks_of(select("digest:least=0.2,worth=0.1", evidence), Verdict::kRecall), (std::vector{1, 3}));
  const auto gated = select("digest:least=0.2,worth=0.1,gate=1", evidence);
  EXPECT_EQ(blocks_of(gated, Verdict::kRecall), std::vector{1});
  EXPECT_EQ(blocks_of(gated, Verdict::kKeep),
            blocks_of(select("digest:least=0.2,worth=0.1", evidence), Verdict::kKeep));
  EXPECT_EQ(gated.back().verdict, Verdict::kWeak);
}

std::vector<CueRanking> rankings_of(const std::vector<std::string>& texts, std::string_view said) {
  WordIndex words;
  for (std::size_t b = 0; b < texts.size(); ++b) words.add(BlockIndex(static_cast<std::int32_t>(b)), texts[b]);
  std::vector<CueRanking> rankings;
  for (const Cue& cue : find_cues(said)) {
    rankings.push_back({.weight = cue.weight, .ranked = words.rank(cue.text)});
  }
  return rankings;
}

TEST(Selectors, evokes_takes_the_likest_four_that_are_liker_than_what_is_hot) {
  const std::vector<std::string> texts = {
      "rain",         "the quagga code is 17", "a quagga",          "the quagga",
      "quagga hills", "quagga lamps",          "quagga code asked", "lamps of rain"};
  const auto rankings = rankings_of(texts, "What is the quagga code?");
  const std::vector<double> cold(8, 1.0);
  const auto all = select("evoke:gate=0", {.missing = cold, .words = rankings, .max_blocks = 8});
  EXPECT_EQ(blocks_of(all, Verdict::kRecall).size(), 4U);
  EXPECT_FALSE(blocks_of(all, Verdict::kBeyond).empty());
  EXPECT_EQ(
      blocks_of(select("evoke:most=2", {.missing = cold, .words = rankings, .max_blocks = 8}), Verdict::kRecall).size(),
      2U);
  // What was asked before is hot, and liker what is asked now than most: it shuts them out.
  std::vector<double> missing = cold;
  missing[6] = 0.0;
  const auto gated = select("evoke", {.missing = missing, .words = rankings, .max_blocks = 8});
  EXPECT_LT(blocks_of(gated, Verdict::kRecall).size(), 3U);
  EXPECT_GT(
      blocks_of(select("evoke:gate=0", {.missing = missing, .words = rankings, .max_blocks = 8}), Verdict::kRecall)
          .size(),
      2U);
}

}  // namespace
}  // namespace ebb
