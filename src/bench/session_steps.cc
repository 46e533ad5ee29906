#include "bench/session_steps.h"

#include <algorithm>
#include <random>

#include "base/clock.h"

namespace ebb {
namespace {

Status run_steps(Engine& engine, Turn& turn) {
  while (turn.n_pending() + turn.n_recomputing() + turn.n_rereading() > 0) {
    EBB_ASSIGN_OR_RETURN(const SequenceInput input, turn.begin_step(engine.runner().max_rows()));
    if (const Status status = engine.runner().run({&input, 1}); !status.ok()) {
      turn.abandon_step();
      return status;
    }
    turn.end_step(engine.runner().mass(0));
  }
  return {};
}

}  // namespace

std::vector<Token> make_random_tokens(std::int32_t n_vocab, std::int32_t n, std::uint32_t seed) {
  EBB_CHECK(n_vocab > 0 && n >= 0, "{} tokens of {}", n, n_vocab);
  std::mt19937 random(seed);
  std::vector<Token> tokens;
  for (std::int32_t i = 0; i < n; ++i) {
    tokens.emplace_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(n_vocab)));
  }
  return tokens;
}

Status compute_tokens(Engine& engine, Session& session, std::span<const Token> tokens) {
  Turn turn(session, Prompt({tokens.begin(), tokens.end()}));
  const Status status = run_steps(engine, turn);
  turn.settle();
  return status;
}

Result<double> decode_tokens(Engine& engine, Session& session, std::span<const Token> tokens, const LogitsLook& look) {
  Turn turn(session, Prompt());
  const Stopwatch watch;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    turn.push(tokens[i]);
    if (const Status status = run_steps(engine, turn); !status.ok()) {
      turn.settle();
      return status;
    }
    if (look) look(i, engine.runner().logits(0));
  }
  const double ms = watch.elapsed_ms();
  turn.settle();
  return ms;
}

Result<double> decode_together(Engine& engine, std::span<Session* const> sessions,
                               std::span<const std::vector<Token>> tokens) {
  EBB_CHECK(!sessions.empty() && sessions.size() == tokens.size(), "{} sessions, tokens of {}", sessions.size(),
            tokens.size());
  std::vector<Turn> turns;
  for (Session* session : sessions) turns.emplace_back(*session, Prompt());
  std::vector<SequenceInput> inputs(turns.size());
  Status status;
  const Stopwatch watch;
  for (std::size_t i = 0; i < tokens[0].size() && status.ok(); ++i) {
    std::size_t n_begun = 0;
    while (n_begun < turns.size() && status.ok()) {
      turns[n_begun].push(tokens[n_begun][i]);
      Result<SequenceInput> input = turns[n_begun].begin_step(1);
      status = input.status();
      if (status.ok()) inputs[n_begun++] = *input;
    }
    if (status.ok()) status = engine.runner().run(inputs);
    for (std::size_t t = 0; t < n_begun; ++t) {
      if (!status.ok()) {
        turns[t].abandon_step();
        continue;
      }
      turns[t].end_step(engine.runner().mass(static_cast<std::int32_t>(t)));
    }
  }
  const double ms = watch.elapsed_ms();
  for (Turn& turn : turns) turn.settle();
  EBB_RETURN_IF_ERROR(status);
  return ms;
}

Result<std::vector<Token>> decode_greedily(Engine& engine, Session& session, Token first, std::int32_t n,
                                           const LogitsLook& look) {
  const auto n_vocab = static_cast<std::size_t>(engine.vocabulary().n_tokens());
  std::vector<Token> tokens;
  Turn turn(session, Prompt());
  Token next = first;
  while (std::ssize(tokens) < n) {
    turn.push(next);
    if (const Status status = run_steps(engine, turn); !status.ok()) {
      turn.settle();
      return status;
    }
    const auto logits = engine.runner().logits(0).first(n_vocab);
    if (look) look(tokens.size(), logits);
    next = Token(static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin()));
    tokens.push_back(next);
  }
  turn.settle();
  return tokens;
}

void evict_blocks(Session& session, std::span<const BlockIndex> blocks) { session.evict(blocks); }

Result<Acts> recall_blocks(Engine& engine, Session& session, std::span<const BlockIndex> blocks) {
  return engine.recall(session, blocks);
}

void cut_session(Session& session, Position end) { session.cut(end); }

}  // namespace ebb
