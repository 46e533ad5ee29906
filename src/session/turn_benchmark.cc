// What a turn's steps cost beside the model: opening rows, naming, sharing, evicting. Nothing is computed; the frames are
// small, since no byte of them is looked at.
//
//   Step/N/B    one decoded token of a session of N tokens, of which B may be hot, in a model of 16 layers and 8 KV heads;
//               every 32nd step evicts a block
//   Resume/N/B  a turn of a client that says all N tokens again and 16 more, as far as its first step's input
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "session/turn.h"
#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

constexpr BlockShape kShape = {.n_layers = 16, .n_kv_heads = 8, .block_size = 32};

// A session that holds so many tokens, as `ebb serve` would have it: blocks are shared by name, and none is saved.
class LongSession {
 public:
  LongSession(std::int64_t n_tokens, std::int64_t budget) {
    const FrameLayout layout = {
        .row_type = RowType::kF16, .block_size = kShape.block_size, .head_dim_k = 16, .head_dim_v = 16};
    const auto budget_tokens = static_cast<std::int32_t>(budget);
    const std::int32_t n_frames = (budget_tokens / kShape.block_size + 8) * kShape.n_layers * kShape.n_kv_heads;
    memory_ = *FrameMemory::open(*backend_, layout, n_frames);
    pool_ = std::make_unique<FramePool>(n_frames);
    session_ = std::make_unique<Session>(SessionDeps{.pool = *pool_,
                                                     .memory = *memory_,
                                                     .vocabulary = *vocabulary_,
                                                     .policy = policy_,
                                                     .hot = &hot_,
                                                     .shape = kShape,
                                                     .model = {1, 2},
                                                     .n_ctx_train = 1 << 20},
                                         SessionOptions{.budget_tokens = budget_tokens, .remains = Remains::kNothing});
    history_.resize(static_cast<std::size_t>(n_tokens));
    for (std::size_t i = 0; i < history_.size(); ++i) history_[i] = Token(static_cast<std::int32_t>(i * i % 251));
    Turn turn(*session_, Prompt(history_));
    while (turn.n_pending() > 0) step(turn, 512);
    turn.settle();
  }

  static void step(Turn& turn, std::int32_t max_rows) {
    benchmark::DoNotOptimize(turn.begin_step(max_rows));
    turn.end_step();
  }

  [[nodiscard]] Session& session() { return *session_; }
  [[nodiscard]] const std::vector<Token>& history() const { return history_; }

 private:
  ToyFile vocabulary_file_{toy_bpe().bytes()};
  std::unique_ptr<Vocabulary> vocabulary_ = *Vocabulary::load(vocabulary_file_.path());
  std::unique_ptr<Backend> backend_ = *Backend::open("cpu", 1);
  std::shared_ptr<const Policy> policy_ = make_policy("recency").value();
  HotBlocks hot_;
  std::unique_ptr<FrameMemory> memory_;
  std::unique_ptr<FramePool> pool_;
  std::unique_ptr<Session> session_;
  std::vector<Token> history_;
};

void step(benchmark::State& state) {
  LongSession world(state.range(0), state.range(1));
  Turn turn(world.session(), Prompt(std::vector<Token>{Token(7)}));
  for (auto _ : state) {
    LongSession::step(turn, 512);
    turn.push(Token(7));
  }
  turn.settle();
}

void resume(benchmark::State& state) {
  LongSession world(state.range(0), state.range(1));
  std::vector<Token> history = world.history();
  for (auto _ : state) {
    history.insert(history.end(), 16, Token(static_cast<std::int32_t>(history.size() % 251)));
    Turn turn = Turn::resume(world.session(), Prompt(history));
    while (turn.n_pending() > 0) LongSession::step(turn, 512);
    turn.settle();
  }
}

BENCHMARK(step)->Name("Step")->Args({8192, 8192})->Args({500'000, 8192})->Args({500'000, 65536});
BENCHMARK(resume)
    ->Name("Resume")
    ->Args({8192, 8192})
    ->Args({500'000, 8192})
    ->Args({500'000, 65536})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ebb
