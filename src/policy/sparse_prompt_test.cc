#include "policy/sparse_prompt.h"

#include <gtest/gtest.h>

#include "policy/sparse_prefill.h"

namespace ebb {
namespace {

TEST(SparsePrompt, is_none_or_a_scheme_with_parameters) {
  EXPECT_FALSE(SparsePrompt::parse("none").value().is_sparse());
  EXPECT_EQ(SparsePrompt::parse("tri_shape").value(),
            (SparsePrompt{.chunk = 256, .start_tokens = 128, .recent_tokens = 1920, .tail_tokens = 100}));
  EXPECT_EQ(SparsePrompt::parse("tri_shape:tail=7,recent=64").value(),
            (SparsePrompt{.chunk = 256, .start_tokens = 128, .recent_tokens = 64, .tail_tokens = 7}));
  EXPECT_EQ(SparsePrompt::parse("xattention").value(),
            (SparsePrompt{.threshold = 0.8, .stride = 8, .tail_tokens = 100}));
  EXPECT_EQ(SparsePrompt::parse("xattention:stride=4,threshold=0.95").value(),
            (SparsePrompt{.threshold = 0.95, .stride = 4, .tail_tokens = 100}));
}

TEST(SparsePrompt, says_what_it_was_told) {
  for (const char* text :
       {"none", "tri_shape:start=64,recent=512,chunk=128,tail=7", "xattention:threshold=0.85,stride=16,tail=0"}) {
    EXPECT_EQ(SparsePrompt::parse(text).value().text(), text);
  }
}

TEST(SparsePrompt, of_xattention_has_strides_that_divide_blocks_and_vectors) {
  const auto check = [](std::int32_t stride, std::int32_t grain) {
    return SparsePrompt{.threshold = 0.8, .stride = stride}.check_grain(grain);
  };
  for (const std::int32_t stride : {2, 4, 8, 16}) EXPECT_TRUE(check(stride, 64).ok()) << stride;
  for (const std::int32_t stride : {3, 5, 6, 12}) EXPECT_FALSE(check(stride, 120).ok()) << stride;
  EXPECT_TRUE(check(8, 8).ok());
  EXPECT_EQ(check(16, 8).message(),
            "xattention: a stride of 16 with blocks of 8; it must be 2, 4, 8 or 16, and divide the block size");
  EXPECT_FALSE(check(2, 1).ok());
}

TEST(SparsePrompt, what_is_none_is_refused_with_what_there_is) {
  EXPECT_EQ(SparsePrompt::parse("streaming").status().message(),
            "no sparse prompt is called 'streaming'; there are none, tri_shape, xattention");
  for (const char* wrong :
       {"", "tri_shape:", "tri_shape:chunk=0", "tri_shape:start=-1", "tri_shape:recent=1.5", "tri_shape:tail",
        "tri_shape:tail=1,tail=1", "tri_shape,tail=1", "none:tail=1", "none:", "xattention:threshold=0",
        "xattention:threshold=1.1", "xattention:stride=1", "xattention:start=64"}) {
    EXPECT_FALSE(SparsePrompt::parse(wrong).ok()) << wrong;
  }
}

// By pass, as the original has it, where passes are the chunks.
TEST(SparsePrompt, hides_nothing_where_the_original_is_dense) {
  constexpr std::int32_t kChunk = 32;
  for (const std::int32_t tail : {0, 1, 20, 32, 33, 100}) {
    const SparsePrompt prompt = {.chunk = kChunk, .start_tokens = 16, .recent_tokens = 16, .tail_tokens = tail};
    const TriShape shape = {.dense_tail_tokens = tail, .start_tokens = 16, .recent_tokens = 16};
    for (std::int32_t n = 1; n < 300; ++n) {
      std::int32_t first_dense = 0;
      for (std::int32_t at = 0; at < n; at += kChunk) {
        const ChunkPlace place = {.n_prompt = n, .n_processed = at, .n_chunk = std::min(kChunk, n - at)};
        // With no tail at all the original leaves the last token's chunk sparse, and its reply to what that saw.
        const bool is_last = at + kChunk >= n;
        const bool skips = !is_last && !find_tri_shape_skips(shape, place, at, 16).value().empty();
        if (skips) first_dense = at + kChunk;
        EXPECT_EQ(skips, at < prompt.find_tail(n, 16) && at > 2 * 16) << n << " tokens, tail " << tail << ", at " << at;
      }
      EXPECT_LE(first_dense, prompt.find_tail(n, 16));
    }
  }
}

}  // namespace
}  // namespace ebb
