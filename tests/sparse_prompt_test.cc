// Sparse prompts on the bundled model: what is computed is what would be if what is hidden were not there, it has names of its own,
// and how it was cut into steps leaves no trace.
#include <filesystem>

#include <gtest/gtest.h>

#include "bench/session_steps.h"
#include "engine/engine.h"

namespace ebb {
namespace {

constexpr std::int32_t kTokens = 300;
constexpr std::int32_t kBlockSize = 16;
constexpr SparsePrompt kSparse = {.chunk = 32, .start_tokens = 16, .recent_tokens = 48, .tail_tokens = 20};
// Where the last chunks begin, which look at everything: (300 - 20) / 32 * 32.
constexpr std::int32_t kTail = 256;
// The first chunk that does not see all before it: 16 + 48 lie before the third, and 16 more before the fourth.
constexpr std::int32_t kFirstSparse = 96;

class SparsePrompts : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Engine> open(std::int32_t chunk = 512) {
    auto engine = Engine::open({.model = std::filesystem::path(EBB_SOURCE_DIR) / "models" / "ebb-recall.gguf",
                                .n_threads = 1,
                                .block_size = kBlockSize,
                                .kv_budget_tokens = 4 * kTokens,
                                .chunk = chunk,
                                .store = {.ram_bytes = 64 << 20},
                                .composed_attention = GetParam()});
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return *std::move(engine);
  }

  static std::unique_ptr<Session> begin(Engine& engine, const SparsePrompt& sparse, bool adopts = false) {
    auto session = engine.new_session({.budget_tokens = 2 * kTokens, .sparse_prompt = sparse, .adopts = adopts});
    EXPECT_TRUE(session.ok()) << session.status().message();
    return *std::move(session);
  }

  static std::vector<Token> make_tokens(const Engine& engine, std::uint32_t seed = 7) {
    return make_random_tokens(engine.vocabulary().n_tokens(), kTokens, seed);
  }

  static std::vector<std::byte> bytes_of(const Session& session) {
    std::vector<std::byte> all;
    for (std::int32_t b = 0; b < session.n_blocks(); ++b) {
      std::vector<std::byte> bytes(session.block_bytes(BlockIndex(b)));
      session.read_frames(BlockIndex(b), bytes);
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  }

  static std::int32_t n_named_alike(const Session& a, const Session& b) {
    std::int32_t n = 0;
    while (n < a.n_blocks() && a.exact_name(BlockIndex(n)) == b.exact_name(BlockIndex(n))) ++n;
    return n;
  }
};

TEST_P(SparsePrompts, give_what_a_session_gives_from_which_the_hidden_blocks_were_evicted) {
  const std::unique_ptr<Engine> engine = open();
  const std::vector<Token> tokens = make_tokens(*engine);
  const std::unique_ptr<Session> sparse = begin(*engine, kSparse);
  ASSERT_TRUE(compute_tokens(*engine, *sparse, tokens).ok());

  const std::unique_ptr<Session> twin = begin(*engine, {});
  for (std::int32_t at = 0; at < kTokens; at = at < kTail ? at + kSparse.chunk : kTokens) {
    std::vector<BlockIndex> hidden;
    for (std::int32_t p = kSparse.start_tokens; at < kTail && p < at - kSparse.recent_tokens; p += kBlockSize) {
      hidden.emplace_back(p / kBlockSize);
    }
    EXPECT_EQ(hidden.empty(), at < kFirstSparse || at >= kTail) << at;
    (void)twin->evict(hidden);
    const std::int32_t n = at < kTail ? kSparse.chunk : kTokens - at;
    ASSERT_TRUE(compute_tokens(*engine, *twin,
                               std::span(tokens).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(n)))
                    .ok());
    (void)twin->recall(hidden);
  }
  EXPECT_EQ(bytes_of(*sparse), bytes_of(*twin));

  // In steps of as many rows: products of others may round otherwise, and bytes are part of names.
  const std::unique_ptr<Session> dense = begin(*engine, {});
  for (std::int32_t at = 0; at < kTokens; at += kSparse.chunk) {
    const auto n = static_cast<std::size_t>(std::min(kSparse.chunk, kTokens - at));
    ASSERT_TRUE(compute_tokens(*engine, *dense, std::span(tokens).subspan(static_cast<std::size_t>(at), n)).ok());
  }
  EXPECT_NE(bytes_of(*sparse), bytes_of(*dense));
  EXPECT_EQ(n_named_alike(*sparse, *dense), kFirstSparse / kBlockSize) << "what hides nothing has the name of all";
}

TEST_P(SparsePrompts, are_cut_into_steps_without_a_trace) {
  const std::unique_ptr<Engine> engine = open();
  const std::unique_ptr<Session> whole = begin(*engine, kSparse);
  const std::vector<Token> tokens = make_tokens(*engine);
  ASSERT_TRUE(compute_tokens(*engine, *whole, tokens).ok());
  for (const std::int32_t n_rows : {7, 16, 45}) {
    const std::unique_ptr<Engine> other = open(n_rows);
    const std::unique_ptr<Session> cut = begin(*other, kSparse);
    ASSERT_TRUE(compute_tokens(*other, *cut, tokens).ok());
    // Other products of matrices round otherwise, so that bytes and with them names behind may differ in their last bits.
    EXPECT_EQ(cut->exact_name(BlockIndex(0)), whole->exact_name(BlockIndex(0))) << n_rows;
    for (std::int32_t b = 0; b < whole->n_blocks(); ++b) {
      EXPECT_EQ(cut->hot().info(BlockIndex(b)).lineage.runs().size(), 1U) << "block " << b << " of steps of " << n_rows;
    }
  }
}

TEST_P(SparsePrompts, are_adopted_by_prompts_that_leave_out_the_same_and_by_no_others) {
  const std::unique_ptr<Engine> engine = open();
  const std::vector<Token> tokens = make_tokens(*engine);
  const std::unique_ptr<Session> first = begin(*engine, kSparse, true);
  ASSERT_TRUE(compute_tokens(*engine, *first, tokens).ok());

  const auto n_adopted = [&](const SparsePrompt& sparse) {
    const std::unique_ptr<Session> session = begin(*engine, sparse, true);
    Turn turn(*session, Prompt(tokens));
    turn.prepare_all(512);
    const std::int32_t n = session->end().value();
    (void)turn.settle();
    return n;
  };
  EXPECT_GE(n_adopted(kSparse), kTail);
  EXPECT_EQ(n_adopted({}), kFirstSparse);
  SparsePrompt wider = kSparse;
  wider.recent_tokens += kBlockSize;
  EXPECT_EQ(n_adopted(wider), kFirstSparse);
}

TEST_P(SparsePrompts, of_sizes_that_are_no_whole_blocks_are_refused) {
  const std::unique_ptr<Engine> engine = open();
  for (const SparsePrompt& wrong : {SparsePrompt{.chunk = 40}, SparsePrompt{.chunk = 32, .start_tokens = 8},
                                    SparsePrompt{.chunk = 32, .recent_tokens = 20}}) {
    const auto session = engine->new_session({.budget_tokens = kTokens, .sparse_prompt = wrong});
    ASSERT_FALSE(session.ok());
    EXPECT_NE(session.status().message().find("multiples of the block size, 16"), std::string::npos)
        << session.status().message();
  }
}

INSTANTIATE_TEST_SUITE_P(Attention, SparsePrompts, ::testing::Bool(),
                         [](const auto& about) { return about.param ? "composed" : "ours"; });

}  // namespace
}  // namespace ebb
