// Sparse prompts on the bundled model: what is computed is what would be if what is hidden were not there, it has names of its own,
// and how it was cut into steps leaves no trace.
#include <filesystem>

#include <gtest/gtest.h>

#include "bench/session_steps.h"
#include "engine/engine.h"
#include "engine/generation.h"

namespace ebb::sparse_prompt_test {
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

// Blocks of rows that choose what they look at.
class ChosenSquares : public SparsePrompts {
 protected:
  static constexpr SparsePrompt kChosen = {.threshold = 0.5, .stride = 4, .tail_tokens = 20};
  // Where the last block begins that is sparse: (300 - 20) / 16 * 16.
  static constexpr std::int32_t kDense = 272;

  static std::vector<Hash128> names_of(const Session& session) {
    std::vector<Hash128> names;
    for (std::int32_t b = 0; b < session.n_blocks(); ++b) names.push_back(session.exact_name(BlockIndex(b)));
    return names;
  }
};

TEST_P(ChosenSquares, are_in_bytes_and_in_names) {
  const std::unique_ptr<Engine> engine = open();
  const std::vector<Token> tokens = make_tokens(*engine);
  const std::unique_ptr<Session> sparse = begin(*engine, kChosen);
  const std::unique_ptr<Session> again = begin(*engine, kChosen);
  const std::unique_ptr<Session> dense = begin(*engine, {});
  for (Session* session : {sparse.get(), again.get(), dense.get()}) {
    ASSERT_TRUE(compute_tokens(*engine, *session, tokens).ok());
  }
  EXPECT_EQ(bytes_of(*sparse), bytes_of(*again));
  EXPECT_EQ(names_of(*sparse), names_of(*again));
  EXPECT_NE(bytes_of(*sparse), bytes_of(*dense));
  EXPECT_EQ(n_named_alike(*sparse, *dense), 0);
  SparsePrompt other = kChosen;
  other.threshold = 0.6;
  const std::unique_ptr<Session> more = begin(*engine, other);
  ASSERT_TRUE(compute_tokens(*engine, *more, tokens).ok());
  EXPECT_EQ(n_named_alike(*sparse, *more), 0);
}

// With all of its attention kept, a block of rows looks at everything, and its name says that it chose.
TEST_P(ChosenSquares, of_all_the_attention_give_what_a_dense_prompt_gives) {
  const std::unique_ptr<Engine> engine = open();
  const std::vector<Token> tokens = make_tokens(*engine);
  const std::unique_ptr<Session> all = begin(*engine, {.threshold = 1.0, .stride = 4});
  const std::unique_ptr<Session> dense = begin(*engine, {});
  ASSERT_TRUE(compute_tokens(*engine, *all, tokens).ok());
  ASSERT_TRUE(compute_tokens(*engine, *dense, tokens).ok());
  EXPECT_EQ(bytes_of(*all), bytes_of(*dense));
  EXPECT_EQ(n_named_alike(*all, *dense), 0);
}

// Steps of another length take whole blocks too, and round as a dense prompt's would: the first blocks, whose rows go through the
// same products, are the same.
TEST_P(ChosenSquares, are_made_of_whole_blocks_however_long_a_step_is) {
  const std::unique_ptr<Engine> engine = open();
  const std::unique_ptr<Session> whole = begin(*engine, kChosen);
  const std::vector<Token> tokens = make_tokens(*engine);
  ASSERT_TRUE(compute_tokens(*engine, *whole, tokens).ok());
  for (const std::int32_t n_rows : {16, 23, 45, 100}) {
    const std::unique_ptr<Engine> other = open(n_rows);
    const std::unique_ptr<Session> cut = begin(*other, kChosen);
    ASSERT_TRUE(compute_tokens(*other, *cut, tokens).ok());
    EXPECT_EQ(cut->exact_name(BlockIndex(0)), whole->exact_name(BlockIndex(0))) << n_rows;
    for (std::int32_t b = 0; b < whole->n_blocks(); ++b) {
      EXPECT_EQ(cut->hot().info(BlockIndex(b)).lineage.runs().size(), 1U) << "block " << b << " of steps of " << n_rows;
    }
  }
}

TEST_P(ChosenSquares, are_adopted_whole_by_prompts_that_choose_alike_and_by_no_others) {
  const std::unique_ptr<Engine> engine = open();
  const std::vector<Token> tokens = make_tokens(*engine);
  const std::unique_ptr<Session> first = begin(*engine, kChosen, true);
  ASSERT_TRUE(compute_tokens(*engine, *first, tokens).ok());
  const auto n_adopted = [&](const SparsePrompt& sparse, const std::vector<Token>& prompt) {
    const std::unique_ptr<Session> session = begin(*engine, sparse, true);
    Turn turn(*session, Prompt(prompt));
    turn.prepare_all(512);
    const std::int32_t n = session->end().value();
    (void)turn.settle();
    return n;
  };
  EXPECT_GE(n_adopted(kChosen, tokens), kDense);
  EXPECT_EQ(n_adopted({}, tokens), 0);
  EXPECT_EQ(n_adopted({.threshold = 0.5, .stride = 2, .tail_tokens = 20}, tokens), 0);
  // A block that begins alike and goes on otherwise was chosen for with rows that are not there.
  std::vector<Token> other = tokens;
  other[100] = other[100] == Token(300) ? Token(301) : Token(300);
  EXPECT_EQ(n_adopted(kChosen, other), 96);
}

// Rows that a step has beside those of others may be less than a block: prompts take turns then.
TEST_P(ChosenSquares, are_whole_blocks_in_company_too) {
  const std::unique_ptr<Engine> engine = open(2 * kBlockSize);
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::unique_ptr<Generation>> generations;
  std::vector<Generation*> running;
  for (std::uint32_t i = 0; i < 3; ++i) {
    auto session = engine->new_session({.budget_tokens = 320, .sparse_prompt = kChosen, .adopts = false});
    ASSERT_TRUE(session.ok()) << session.status().message();
    sessions.push_back(*std::move(session));
    auto generation = Generation::start(*sessions.back(), engine->vocabulary(), Prompt(make_tokens(*engine, 20 + i)),
                                        {.max_tokens = 1});
    ASSERT_TRUE(generation.ok()) << generation.status().message();
    generations.push_back(*std::move(generation));
    running.push_back(generations.back().get());
  }
  const auto is_over = [](const Generation* generation) { return generation->finished(); };
  for (int n = 0; n < 400 && !std::ranges::all_of(running, is_over); ++n) ASSERT_TRUE(engine->step(running).ok());
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(generations[i]->finished());
    const std::unique_ptr<Engine> other = open();
    const std::unique_ptr<Session> alone = begin(*other, kChosen);
    ASSERT_TRUE(compute_tokens(*other, *alone, make_tokens(*engine, 20 + i)).ok());
    // Products of other rows round otherwise, and with them the names behind; what was seen is told in each lineage.
    EXPECT_EQ(sessions[i]->exact_name(BlockIndex(0)), alone->exact_name(BlockIndex(0))) << i;
    const std::unique_ptr<Session> dense = begin(*other, {});
    ASSERT_TRUE(compute_tokens(*other, *dense, make_tokens(*engine, 20 + i)).ok());
    EXPECT_NE(sessions[i]->exact_name(BlockIndex(0)), dense->exact_name(BlockIndex(0))) << i;
    for (std::int32_t b = 0; b < kDense / kBlockSize; ++b) {
      EXPECT_EQ(sessions[i]->hot().info(BlockIndex(b)).lineage.runs().size(), 1U);
    }
  }
}

// What is cut off from its block keeps its bytes, and a name that says of which block it was.
TEST_P(ChosenSquares, that_are_cut_are_never_taken_for_others) {
  const std::unique_ptr<Engine> engine = open();
  const std::vector<Token> tokens = make_tokens(*engine);
  // All go on alike from within the block in which they differed.
  const std::vector<Token> joint(tokens.begin() + 150, tokens.begin() + 200);
  const auto cut = [&](std::span<const Token> before) {
    std::unique_ptr<Session> session = begin(*engine, kChosen);
    EXPECT_TRUE(compute_tokens(*engine, *session, before).ok());
    session->cut(Position(104));
    EXPECT_EQ(session->end(), Position(104));
    EXPECT_TRUE(compute_tokens(*engine, *session, joint).ok());
    return session;
  };
  const auto bytes = [](const Session& session, std::int32_t block) {
    std::vector<std::byte> of(session.block_bytes(BlockIndex(block)));
    session.read_frames(BlockIndex(block), of);
    return of;
  };
  const std::unique_ptr<Session> a = cut(tokens);
  // Which tokens make the rows before the cut choose otherwise is the model's affair.
  std::int32_t n_others = 0;
  for (std::int32_t token = 300; token < 2300; token += 250) {
    std::vector<Token> other = tokens;
    for (std::int32_t i = 104; i < 112; ++i) other[static_cast<std::size_t>(i)] = Token(token + i);
    const std::unique_ptr<Session> b = cut(other);
    EXPECT_EQ(a->exact_name(BlockIndex(5)), b->exact_name(BlockIndex(5)));
    if (bytes(*a, 6) == bytes(*b, 6)) continue;
    ++n_others;
    EXPECT_NE(a->exact_name(BlockIndex(6)), b->exact_name(BlockIndex(6)));
    EXPECT_NE(a->exact_name(BlockIndex(7)), b->exact_name(BlockIndex(7)));
  }
  EXPECT_GT(n_others, 0) << "the rows before the cut chose with others";
}

TEST_P(ChosenSquares, that_leave_are_recalled_as_they_were) {
  const std::unique_ptr<Engine> engine = open();
  const std::vector<Token> tokens = make_tokens(*engine);
  const std::unique_ptr<Session> session = begin(*engine, kChosen);
  ASSERT_TRUE(compute_tokens(*engine, *session, tokens).ok());
  const std::vector<std::byte> before = bytes_of(*session);
  const std::vector<BlockIndex> blocks = {BlockIndex(3), BlockIndex(9)};
  (void)session->evict(blocks);
  (void)session->recall(blocks);
  EXPECT_EQ(bytes_of(*session), before);
}

TEST(ChosenSquaresOptions, that_cannot_be_are_refused) {
  EngineOptions options = {.model = std::filesystem::path(EBB_SOURCE_DIR) / "models" / "ebb-recall.gguf",
                           .n_threads = 1,
                           .block_size = 32,
                           .kv_budget_tokens = 1024,
                           .chunk = 20};
  options.session.sparse_prompt = {.threshold = 0.8, .stride = 8};
  EXPECT_EQ(Engine::open(options).status().message(),
            "xattention chooses for a whole block of 32 rows at once, and a step takes 20; take a larger chunk");
  options.chunk = 64;
  options.composed_attention = true;
  EXPECT_EQ(Engine::open(options).status().code(), Code::kUnsupported);
  options.composed_attention = false;
  options.session.sparse_prompt.stride = 12;
  EXPECT_EQ(Engine::open(options).status().code(), Code::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Attention, ChosenSquares, ::testing::Values(false), [](const auto&) { return "ours"; });

INSTANTIATE_TEST_SUITE_P(Attention, SparsePrompts, ::testing::Bool(),
                         [](const auto& about) { return about.param ? "composed" : "ours"; });

}  // namespace
}  // namespace ebb::sparse_prompt_test
