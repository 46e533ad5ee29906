// Notes on slices of one token say what notes on blocks of one token say: the same numbers, after the same steps, cuts and
// images.
#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/to_size.h"
#include "policy/attention_notes.h"

namespace ebb::attention_notes_slices_test {
namespace {

using ::testing::HasSubstr;

constexpr std::int32_t kBlockSize = 8;
constexpr std::size_t kHeads = 2;
constexpr Ask kByToken = {.scope = Scope::kHead, .totals = true, .last = true, .window = 6};
constexpr Ask kBySlice = {.scope = Scope::kHead, .totals = true, .last = true, .window = 6, .slice = 1};

// The same sequence noted twice: in blocks of one token, and in blocks of eight by slices of one.
class TwoNotes {
 public:
  explicit TwoNotes(std::uint32_t seed) : random_(seed) {}

  // Queries that go on from the end, the last n_window of them in the window. Each head lacks some blocks.
  void step(std::int32_t n_queries, std::int32_t n_window) {
    const Span queries{Position(end_), Position(end_ + n_queries)};
    end_ += n_queries;
    for (auto* notes : {&tokens_, &slices_}) {
      notes->begin_step({.observed = queries, .n_window = n_window}, notes == &tokens_ ? 1 : kBlockSize);
    }
    for (std::size_t head = 0; head < kHeads; ++head) step_head(head, n_window == 1 && n_queries == 1);
  }

  void cut(std::int32_t end) {
    tokens_.forget(BlockIndex(end));
    slices_.forget(BlockIndex(end / kBlockSize), end % kBlockSize);
    end_ = end;
  }

  void begin_anew_from_images() {
    AttentionNotes tokens(kHeads, kByToken);
    AttentionNotes slices(kHeads, kBySlice, kBlockSize);
    ASSERT_TRUE(tokens.restore(tokens_.image(), end_).ok());
    ASSERT_TRUE(slices.restore(slices_.image(), (end_ + kBlockSize - 1) / kBlockSize).ok());
    tokens_ = std::move(tokens);
    slices_ = std::move(slices);
  }

  void expect_same() const {
    std::vector<BlockIndex> tokens;
    std::vector<BlockIndex> blocks;
    for (std::int32_t t = 0; t < end_; ++t) {
      if (t % kBlockSize == 0) blocks.emplace_back(t / kBlockSize);
      tokens.emplace_back(t);
    }
    for (std::size_t head = 0; head < kHeads; ++head) {
      ScopeEvidence by_token;
      tokens_.fill(kByToken, head, 1, tokens, by_token);
      ScopeEvidence by_slice;
      slices_.fill(kBySlice, head, 1, blocks, by_slice);
      ASSERT_EQ(by_slice.slices.n_slices, to_size(kBlockSize));
      expect_begin(by_slice.slices.total, by_token.total, "total");
      expect_begin(by_slice.slices.n_queries, by_token.n_queries, "queries");
      expect_begin(by_slice.slices.window_mean, by_token.window_mean, "window mean");
      expect_begin(by_slice.slices.window_max, by_token.window_max, "window maximum");
      expect_begin(by_slice.slices.last, by_token.last, "last");
    }
  }

  [[nodiscard]] const AttentionNotes& slices() const { return slices_; }
  [[nodiscard]] std::int32_t end() const { return end_; }

 private:
  // Slices behind the last token say nothing.
  static void expect_begin(const std::vector<double>& slices, const std::vector<double>& tokens, const char* what) {
    ASSERT_GE(slices.size(), tokens.size());
    EXPECT_EQ(std::vector<double>(slices.begin(), slices.begin() + std::ssize(tokens)), tokens) << what;
  }

  void step_head(std::size_t head, bool is_one_query) {
    const std::int32_t n_blocks = (end_ + kBlockSize - 1) / kBlockSize;
    std::vector<BlockIndex> tokens;
    std::vector<BlockIndex> blocks;
    for (std::int32_t b = 0; b < n_blocks; ++b) {
      if (b + 1 < n_blocks && random_() % 4 == 0) continue;
      blocks.emplace_back(b);
      for (std::int32_t t = b * kBlockSize; t < std::min(end_, (b + 1) * kBlockSize); ++t) tokens.emplace_back(t);
    }
    std::vector<std::vector<float>> of_tokens(4, std::vector<float>(tokens.size()));
    for (std::size_t kind = 0; kind < 4; ++kind) {
      for (float& x : of_tokens[kind]) x = std::uniform_real_distribution<float>(0.0F, 1.0F)(random_);
      if (is_one_query) of_tokens[kind] = of_tokens[0];
    }
    std::vector<std::vector<float>> of_slices;
    for (std::vector<float> all : of_tokens) {
      all.resize(blocks.size() * to_size(kBlockSize), 0.0F);  // only the last block is partial
      of_slices.push_back(std::move(all));
    }
    const std::vector<float> of_blocks(blocks.size(), 1.0F);
    tokens_.add(head, {.blocks = tokens,
                       .sum = of_tokens[0],
                       .window_sum = of_tokens[1],
                       .window_max = of_tokens[2],
                       .last = of_tokens[3]});
    slices_.add(head, {.blocks = blocks,
                       .sum = of_blocks,
                       .window_sum = of_blocks,
                       .window_max = of_blocks,
                       .last = of_blocks,
                       .slices = {of_slices[0], of_slices[1], of_slices[2], of_slices[3]}});
  }

  std::mt19937 random_;
  AttentionNotes tokens_{kHeads, kByToken};
  AttentionNotes slices_{kHeads, kBySlice, kBlockSize};
  std::int32_t end_ = 0;
};

// A prompt in chunks, a few tokens decoded.
void run(TwoNotes& notes, std::mt19937& random) {
  for (int i = 0; i < 3; ++i) notes.step(3 + static_cast<std::int32_t>(random() % 20), 3);
  for (int i = 0; i < 1 + static_cast<int>(random() % 9); ++i) notes.step(1, 1);
}

TEST(AttentionNotesOnSlices, of_one_token_are_those_of_blocks_of_one_token_bit_for_bit) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    TwoNotes notes(seed);
    run(notes, random);
    notes.expect_same();
    run(notes, random);
    notes.expect_same();
  }
}

TEST(AttentionNotesOnSlices, keep_what_lies_before_a_cut_within_a_block) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    TwoNotes notes(seed);
    run(notes, random);
    notes.cut(notes.end() - 1 - static_cast<std::int32_t>(random() % to_size(notes.end() - 1)));
    notes.expect_same();
    run(notes, random);
    notes.expect_same();
  }
}

TEST(AttentionNotesOnSlices, come_back_from_an_image_and_go_on) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    TwoNotes notes(seed);
    run(notes, random);
    notes.begin_anew_from_images();
    notes.expect_same();
    notes.cut(notes.end() / 2);
    run(notes, random);
    notes.expect_same();
  }
}

TEST(AttentionNotesOnSlices, give_a_block_that_a_cut_splits_what_its_slices_keep) {
  AttentionNotes notes(1, kBySlice, 4);
  const std::vector<float> slices = {1.0F, 2.0F, 4.0F, 8.0F};
  const std::vector<float> block = {15.0F};
  const std::vector<BlockIndex> blocks = {BlockIndex(0)};
  notes.begin_step({.observed = {Position(3), Position(4)}, .n_window = 1}, 4);
  notes.add(0, {.blocks = blocks,
                .sum = block,
                .window_sum = block,
                .window_max = block,
                .last = block,
                .slices = {slices, slices, slices, slices}});
  EXPECT_EQ(notes.noted(0, blocks)[0].total, 15.0);
  notes.forget(BlockIndex(0), 2);
  const NotedMass kept = notes.noted(0, blocks)[0];
  EXPECT_EQ(kept.total, 3.0);
  EXPECT_EQ(kept.window_sum, 3.0);
  EXPECT_EQ(kept.window_max, 2.0);
  notes.forget(BlockIndex(0), 0);
  EXPECT_EQ(notes.noted(0, blocks)[0].n_in_window, 0);
}

TEST(AttentionNotesOnSlices, whose_image_no_session_writes_are_refused) {
  std::mt19937 random(1);
  TwoNotes two(1);
  run(two, random);
  const AttentionImage image = two.slices().image();
  const std::int32_t n_blocks = (two.end() + kBlockSize - 1) / kBlockSize;
  const auto status_of = [&](const AttentionImage& changed) {
    return AttentionNotes(kHeads, kBySlice, kBlockSize).restore(changed, n_blocks);
  };
  ASSERT_TRUE(status_of(image).ok());
  for (const auto column : AttentionImage::columns()) {
    for (const float value : {-1.0F, std::numeric_limits<float>::infinity(), std::nanf(""), 1e30F}) {
      AttentionImage changed = image;
      (changed.slices.*column).back() = value;
      EXPECT_THAT(status_of(changed).message(), HasSubstr("that no session writes")) << value;
    }
    AttentionImage shorter = image;
    (shorter.slices.*column).pop_back();
    EXPECT_EQ(status_of(shorter).code(), Code::kDamaged);
  }
  AttentionImage changed = image;
  changed.slices.n_queries.clear();
  EXPECT_EQ(status_of(changed).code(), Code::kDamaged) << "totals without their queries";
  changed = image;
  changed.slices.n_slices = -1;
  EXPECT_EQ(status_of(changed).code(), Code::kDamaged);
  changed = image;
  changed.slices.end = (n_blocks + 1) * kBlockSize;
  EXPECT_EQ(status_of(changed).code(), Code::kDamaged);
}

// Another policy asked when the image was made.
TEST(AttentionNotesOnSlices, of_another_length_are_unknown) {
  std::mt19937 random(2);
  TwoNotes two(2);
  run(two, random);
  Ask halves = kBySlice;
  halves.slice = kBlockSize / 2;
  AttentionNotes notes(kHeads, halves, kBlockSize);
  ASSERT_TRUE(notes.restore(two.slices().image(), (two.end() + kBlockSize - 1) / kBlockSize).ok());
  const std::vector<BlockIndex> blocks = {BlockIndex(0)};
  ScopeEvidence scope;
  notes.fill(halves, 0, 1, blocks, scope);
  EXPECT_EQ(scope.slices.total, std::vector<double>(2, 0.0));
  EXPECT_EQ(scope.slices.window_mean, std::vector<double>(2, 0.0));
  EXPECT_GT(scope.total[0], 0.0) << "blocks are known";
}

}  // namespace
}  // namespace ebb::attention_notes_slices_test
