#include "bench/resend.h"

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "chat/turn_text.h"
#include "device/backend.h"
#include "engine/generation.h"
#include "policy/rare_words.h"

namespace ebb {
namespace {

// As a word of its own: "9448717" does not say "944871".
bool says(std::string_view text, std::string_view word) {
  const auto is_of_word = [&](std::size_t at) { return at < text.size() && is_word_byte(text[at]); };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (!is_of_word(at + word.size()) && (at == 0 || !is_of_word(at - 1))) return true;
  }
  return false;
}

// One message and the reply to it, as the client says them again.
struct Exchange {
  std::string message;
  std::vector<Token> tokens;
  std::vector<Token> reply;
};

SessionOptions session_options(const Engine& engine, const ResendOptions& options) {
  const bool evicts = options.arm != ResendArm::kTruncate && options.arm != ResendArm::kNone;
  return {.budget_tokens = evicts ? options.budget_tokens : engine.budget_tokens(),
          .watermarks = evicts ? options.watermarks : Watermarks(),
          .rebases = evicts,
          .tenant = options.tenant};
}

void set_session_budget(Session& session, std::int32_t n_tokens) {
  // What pins need beyond it they have; the arms that shrink a session pin nothing.
  (void)session.set_budget(FrameBudget::of_tokens(n_tokens, session.shape()));
}

// As the arms that do not ask fill holes: all that fit, from the tail on.
void fill_holes(Session& session, std::int32_t n_left_blocks) { session.refill(n_left_blocks, {}, Holes::kAll); }

class Client {
 public:
  Client(Engine& engine, const ResendOptions& options) : engine_(engine), options_(options) {}

  Result<ResendSession> play(std::span<const ResendMessage> script) {
    const Stopwatch watch;
    EBB_ASSIGN_OR_RETURN(session_, engine_.new_session(session_options(engine_, options_)));
    double ms_beside = 0.0;
    for (const ResendMessage& message : script) {
      const Stopwatch beside;
      bool was_cold = false;
      if (!message.wanted.empty()) {
        EBB_ASSIGN_OR_RETURN(const bool hot, is_hot(message.wanted, session_->n_blocks()));
        was_cold = !hot;
      }
      ms_beside += beside.elapsed_ms();
      EBB_RETURN_IF_ERROR(say(message));
      if (!played_.ended_by.empty()) break;
      if (message.wanted.empty()) continue;
      played_.answers.push_back({.wanted = message.wanted,
                                 .said = reply_,
                                 .is_right = says(reply_, message.wanted),
                                 .was_cold = was_cold,
                                 .was_found = was_found_});
    }
    played_.peak_hot_tokens = session_->peak_hot_tokens();
    played_.seconds = (watch.elapsed_ms() - ms_beside) / 1000.0;
    return std::move(played_);
  }

 private:
  Status say(const ResendMessage& message) {
    EBB_RETURN_IF_ERROR(add_to_history(message.text));
    const Prompt history = said();
    ResendTurn turn{.asks = !message.wanted.empty(), .history_tokens = history.n_tokens()};
    const GenerationOptions generation_options = {
        .sampling = {.temperature = 0.0F},
        .max_tokens = options_.n_reply,
        .recall = {
            .cues = find_cues(options_.arm == ResendArm::kOurs ? std::string_view(message.text) : std::string_view())}};
    // The reply may begin in the last block, and say what is wanted there.
    const std::int32_t n_blocks_before = session_->n_blocks() - 1;
    const Stopwatch watch;
    if (options_.arm == ResendArm::kEverything) set_session_budget(*session_, engine_.budget_tokens());
    if (options_.arm == ResendArm::kEverything || options_.arm == ResendArm::kAware) {
      const auto n_new = static_cast<std::int32_t>(exchanges_.back().tokens.size()) + options_.n_reply;
      fill_holes(*session_, n_new / session_->block_size() + 2);
    }
    Result<std::unique_ptr<Generation>> generation =
        Generation::resume(*session_, engine_.vocabulary(), history, generation_options);
    if (!generation.ok()) {
      if (generation.status().code() != Code::kOutOfBudget) return generation.status();
      played_.ended_by = generation.status().message();
      return {};
    }
    Generation* const running = generation->get();
    // Blocks come back in pieces before the first step.
    while (running->prepare(engine_.rows_of_prompts({&running, 1})) != Turn::Ready::kNow) std::this_thread::yield();
    turn.overhead_ms = watch.elapsed_ms();
    while (!running->finished()) EBB_RETURN_IF_ERROR(engine_.step({&running, 1}));
    if (!running->status().ok()) played_.ended_by = running->status().message();
    turn.ms = watch.elapsed_ms();
    if (turn.asks) {
      EBB_ASSIGN_OR_RETURN(was_found_, is_hot(message.wanted, n_blocks_before));
    }
    const Stopwatch shrinking;
    if (options_.arm == ResendArm::kEverything) set_session_budget(*session_, options_.budget_tokens);
    turn.overhead_ms += shrinking.elapsed_ms();
    turn.ms += shrinking.elapsed_ms();
    note(*running, turn);
    return {};
  }

  void note(const Generation& generation, ResendTurn turn) {
    const TurnStats& stats = generation.turn_stats();
    turn.n_computed = stats.n_computed + stats.n_generated;
    turn.n_recalled = static_cast<std::int32_t>(stats.acts.recalled.size());
    turn.n_evicted = static_cast<std::int32_t>(session_->stats().n_evicted_blocks - n_evicted_);
    n_evicted_ = session_->stats().n_evicted_blocks;
    turn.hot_tokens = session_->n_hot_tokens();
    played_.turns.push_back(turn);
    reply_ = generation.text();
    exchanges_.back().reply = generation.tokens();
    before_ = generation.reason() == FinishReason::kEndOfGeneration ? Before::kEndedReply : Before::kCutReply;
  }

  Status add_to_history(const std::string& message) {
    EBB_ASSIGN_OR_RETURN(std::vector<Token> tokens, turn_tokens(engine_.vocabulary(), message, before_));
    exchanges_.push_back({.message = message, .tokens = std::move(tokens), .reply = {}});
    if (options_.arm != ResendArm::kTruncate) return {};
    while (exchanges_.size() > 1 && n_history() + options_.n_reply > options_.budget_tokens) {
      exchanges_.erase(exchanges_.begin());
      EBB_ASSIGN_OR_RETURN(exchanges_.front().tokens,
                           turn_tokens(engine_.vocabulary(), exchanges_.front().message, Before::kNothing));
    }
    return {};
  }

  [[nodiscard]] std::int32_t n_history() const {
    std::size_t n = 0;
    for (const Exchange& exchange : exchanges_) n += exchange.tokens.size() + exchange.reply.size();
    return static_cast<std::int32_t>(n);
  }

  [[nodiscard]] Prompt said() const {
    Prompt::Builder prompt;
    for (const Exchange& exchange : exchanges_) {
      prompt.add(exchange.tokens, {.source = Source::kUser});
      if (!exchange.reply.empty()) prompt.add(exchange.reply, {.source = Source::kAssistant});
    }
    return prompt.build();
  }

  // In one hot block of the first n, or across the border of two.
  [[nodiscard]] Result<bool> is_hot(const std::string& wanted, std::int32_t n_blocks) const {
    std::string text;
    for (std::int32_t b = 0; b < std::min(n_blocks, session_->n_blocks()); ++b) {
      if (!session_->hot().is_hot(BlockIndex(b))) {
        text += '\n';
        continue;
      }
      EBB_ASSIGN_OR_RETURN(const std::string block_text, session_->block_text(BlockIndex(b)));
      text += block_text;
    }
    return text.find(wanted) != std::string::npos;
  }

  Engine& engine_;
  const ResendOptions& options_;
  std::unique_ptr<Session> session_;
  std::vector<Exchange> exchanges_;
  Before before_ = Before::kNothing;
  std::string reply_;
  bool was_found_ = false;
  std::int64_t n_evicted_ = 0;
  ResendSession played_;
};

}  // namespace

std::string_view resend_arm_name(ResendArm arm) {
  switch (arm) {
    case ResendArm::kOurs: return "ours";
    case ResendArm::kAware: return "aware";
    case ResendArm::kEverything: return "everything";
    case ResendArm::kTruncate: return "truncate";
    case ResendArm::kNone: return "none";
  }
  EBB_CHECK(false, "no arm {}", static_cast<int>(arm));
}

Result<std::unique_ptr<Engine>> open_resend_engine(const ResendSetup& setup, ResendReport& report) {
  report.setup = setup;
  if (setup.n_threads == 0) report.setup.n_threads = default_threads();
  report.machine = read_machine();
  EBB_RETURN_IF_ERROR(setup.watermarks.validate());
  setup.progress("loading", 0.0);
  EngineOptions options{.model = setup.model,
                        .n_threads = report.setup.n_threads,
                        .kv_type = setup.kv_type,
                        .block_size = setup.block_size,
                        .policy = setup.policy};
  options.store.ram_bytes = setup.ram_bytes;
  EBB_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::open(options));
  report.n_ctx_train = engine->model().hparams().n_ctx_train;
  return engine;
}

Result<ResendSession> play_resend(Engine& engine, std::span<const ResendMessage> script, const ResendOptions& options) {
  return Client(engine, options).play(script);
}

Status play_resend_case(Engine& engine, std::span<const std::vector<ResendMessage>> scripts,
                        std::span<const ResendArm> arms, const ResendOptions& options, ResendCase& played) {
  for (const ResendArm arm : arms) played.sides.push_back({.arm = arm});
  for (std::size_t s = 0; s < scripts.size(); ++s) {
    const auto n_questions =
        std::ranges::count_if(scripts[s], [](const ResendMessage& message) { return !message.wanted.empty(); });
    for (std::size_t i = 0; i < arms.size(); ++i) {
      // In another order each time, so that no arm always comes first.
      ResendSide& side = played.sides[(i + s) % arms.size()];
      ResendOptions one = options;
      one.arm = side.arm;
      one.tenant = fmt::format("{}, {}, session {}", played.name, resend_arm_name(side.arm), s);
      EBB_ASSIGN_OR_RETURN(side.sessions.emplace_back(), play_resend(engine, scripts[s], one));
      side.n_questions += static_cast<std::int32_t>(n_questions);
    }
  }
  return {};
}

ResendOverhead resend_overhead(const ResendSide& side, bool asks) {
  std::vector<double> ms;
  std::vector<double> shares;
  for (const ResendSession& session : side.sessions) {
    for (std::size_t i = session.turns.size() * 3 / 4; i < session.turns.size(); ++i) {
      const ResendTurn& turn = session.turns[i];
      if (turn.asks != asks) continue;
      ms.push_back(turn.overhead_ms);
      shares.push_back(turn.overhead_ms / turn.ms);
    }
  }
  if (ms.empty()) return {};
  return {.ms = spread_of(ms), .share = spread_of(shares)};
}

}  // namespace ebb
