// `ebb demo`: one session played three times, to show what is forgotten and what comes back.
#include <iostream>
#include <memory>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/text_table.h"
#include "chat/conversation.h"
#include "chat/prompt_tokens.h"
#include "cli/block_map.h"
#include "cli/command.h"
#include "cli/demo_session.h"
#include "cli/engine_flags.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "engine/generation.h"

namespace ebb {
namespace {

constexpr const char* kDemoFooter =
    R"(A fact is told in the first of fourteen turns and asked for in the last. The session is played
  truncated      the client drops the oldest turns, so that the rest fits the KV budget
  ebb            the oldest blocks are evicted to RAM; before each answer, those that share the rarest words with the
                 question come back at their own positions, byte for byte, without a forward pass
  never evicted  the whole session stays hot: what the model could answer at best
The KV budget of the first two is a quarter of the whole session.)";

// More than the model needs to say its sentence; it bounds a reply that does not end.
constexpr std::int32_t kReplyTokens = 48;
// The demo's own: of all its sessions together.
constexpr std::int32_t kPoolTokens = 4096;
// A quarter, as the house's main job says.
constexpr std::int32_t kBudgetShare = 4;

struct DemoFlags {
  EngineFlags engine;
  std::int32_t recall_blocks = 2;
  bool all_replies = false;
};

struct ArmResult {
  std::string name;
  std::vector<std::string> replies;
  std::int32_t budget_tokens = 0;
  std::int32_t peak_hot_tokens = 0;
  std::int32_t session_tokens = 0;
  std::int64_t n_evicted = 0;
  std::int64_t n_recalled = 0;
  std::int32_t n_holes = 0;  // of the last turn
  std::int64_t n_computed = 0;
  double prefill_ms = 0.0;
  double recall_ms = 0.0;
  double decode_ms = 0.0;
};

class Demo {
 public:
  Demo(Engine& engine, const DemoFlags& flags, ProgressBar& bar) : engine_(engine), flags_(flags), bar_(bar) {}

  Result<std::vector<ArmResult>> play() {
    ArmResult whole{.name = "never evicted", .budget_tokens = engine_.budget_tokens()};
    EBB_RETURN_IF_ERROR(play_session(whole, 0));
    if (whole.n_evicted > 0) {
      return error(Code::kInvalidArgument,
                   "a KV budget of {} tokens does not hold the whole session, which the demo plays too; "
                   "give {} or more",
                   engine_.budget_tokens(), kPoolTokens);
    }
    const std::int32_t block_size = engine_.layout().block_size;
    const std::int32_t budget = whole.session_tokens / kBudgetShare / block_size * block_size;
    ArmResult ours{.name = "ebb", .budget_tokens = budget};
    EBB_RETURN_IF_ERROR(play_session(ours, flags_.recall_blocks));
    ArmResult truncated{.name = "truncated", .budget_tokens = budget};
    EBB_RETURN_IF_ERROR(play_truncated(truncated));
    return std::vector<ArmResult>{std::move(truncated), std::move(ours), std::move(whole)};
  }

 private:
  // One session from the first turn to the last.
  Status play_session(ArmResult& result, std::int32_t n_recalled_blocks) {
    EBB_ASSIGN_OR_RETURN(
        const std::unique_ptr<Session> session,
        engine_.new_session(SessionOptions{.budget_tokens = result.budget_tokens, .sink_tokens = 0, .adopts = false}));
    Conversation conversation(engine_.vocabulary(), "");
    for (const std::string_view user : demo_turns().user) {
      show_progress(result);
      EBB_ASSIGN_OR_RETURN(std::vector<Token> prompt, conversation.ask(user));
      GenerationOptions options = reply_options();
      if (n_recalled_blocks > 0) options.recall.cues = find_cues(user);
      options.recall.max_blocks = n_recalled_blocks;
      EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Generation> generation,
                           reply(*session, std::move(prompt), options, result));
      EBB_RETURN_IF_ERROR(conversation.answer(generation->tokens(), generation->text()));
      if (n_recalled_blocks > 0) show_blocks(*session, generation->turn_stats(), result);
    }
    result.session_tokens = session->end().value();
    result.n_evicted = session->stats().n_evicted_blocks;
    result.n_recalled = session->stats().n_recalled_blocks;
    result.peak_hot_tokens = session->peak_hot_tokens();
    return {};
  }

  // What a client does that keeps its history short: each turn is a new session of the newest turns that fit.
  Status play_truncated(ArmResult& result) {
    std::vector<ChatMessage> messages;
    for (const std::string_view user : demo_turns().user) {
      show_progress(result);
      messages.push_back({.role = "user", .content = std::string(user)});
      EBB_ASSIGN_OR_RETURN(std::vector<Token> prompt, newest_that_fit(messages, result.budget_tokens));
      EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           engine_.new_session(SessionOptions{
                               .budget_tokens = result.budget_tokens, .sink_tokens = 0, .adopts = false}));
      EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Generation> generation,
                           reply(*session, std::move(prompt), reply_options(), result));
      messages.push_back({.role = "assistant", .content = generation->text()});
      result.session_tokens = session->end().value();
      result.peak_hot_tokens = std::max(result.peak_hot_tokens, session->peak_hot_tokens());
    }
    return {};
  }

  Result<std::vector<Token>> newest_that_fit(std::vector<ChatMessage>& messages, std::int32_t budget_tokens) {
    while (true) {
      EBB_ASSIGN_OR_RETURN(const ChatPrompt text, render_messages(engine_.vocabulary(), messages, true));
      EBB_ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenize_prompt(engine_.vocabulary(), text, true));
      if (static_cast<std::int32_t>(tokens.size()) + kReplyTokens <= budget_tokens || messages.size() < 3)
        return tokens;
      messages.erase(messages.begin(), messages.begin() + 2);
    }
  }

  Result<std::unique_ptr<Generation>> reply(Session& session, std::vector<Token> prompt,
                                            const GenerationOptions& options, ArmResult& result) {
    EBB_ASSIGN_OR_RETURN(std::unique_ptr<Generation> generation,
                         Generation::start(session, engine_.vocabulary(), Prompt(std::move(prompt)), options));
    Generation* const running = generation.get();
    while (!generation->finished()) EBB_RETURN_IF_ERROR(engine_.step({&running, 1}));
    EBB_RETURN_IF_ERROR(generation->status());
    result.replies.push_back(generation->text());
    result.prefill_ms += generation->stats().prefill_ms;
    result.decode_ms += generation->stats().decode_ms;
    result.recall_ms += generation->turn_stats().acts.recall_ms;
    result.n_holes = generation->turn_stats().from[Origin::kHole];
    result.n_computed += generation->stats().n_prompt + generation->stats().n_generated;
    return generation;
  }

  [[nodiscard]] static GenerationOptions reply_options() {
    return {.sampling = {.temperature = 0.0F}, .max_tokens = kReplyTokens};
  }

  void show_progress(const ArmResult& result) {
    bar_.update("playing: " + result.name,
                static_cast<double>(result.replies.size()) / static_cast<double>(demo_turns().user.size()));
  }

  // What the turn did to the cache, as it happens.
  void show_blocks(const Session& session, const TurnStats& stats, const ArmResult& result) {
    bar_.clear();
    if (result.replies.size() == 1) fmt::print("blocks of {} tokens: {}\n\n", session.block_size(), block_map_legend());
    // Blocks that are hot in some heads count as what they hold.
    const std::int32_t per_block = session.shape().frames_per_block();
    const std::int32_t n_hot = (session.hot().n_hot_frames() + per_block - 1) / per_block;
    fmt::print("turn {:2}  {:2} hot of {}  {:2} evicted  {} recalled  {}\n", result.replies.size(), n_hot,
               session.budget_blocks(), stats.acts.evicted.size(), stats.acts.recalled.size(),
               block_map(session, stats.acts.recalled));
    std::fflush(stdout);
  }

  Engine& engine_;
  const DemoFlags& flags_;
  ProgressBar& bar_;
};

bool knows_the_fact(const ArmResult& arm) { return arm.replies.back().find(demo_turns().fact) != std::string::npos; }

void print_replies(const std::vector<ArmResult>& arms) {
  for (std::size_t turn = 0; turn < demo_turns().user.size(); ++turn) {
    fmt::print("\n{:2}  {}\n", turn + 1, demo_turns().user[turn]);
    for (const ArmResult& arm : arms) fmt::print("      {:>13}: {}\n", arm.name, arm.replies[turn]);
  }
}

void print_results(const std::vector<ArmResult>& arms) {
  fmt::print("\nturn 1:   {}\nturn 14:  {}\n", demo_turns().user.front(), demo_turns().user.back());
  for (const ArmResult& arm : arms) {
    fmt::print("{:>15}: {}   [{}]\n", arm.name, arm.replies.back(), knows_the_fact(arm) ? "right" : "wrong");
  }
  using enum TextTable::Align;
  TextTable table({{"", kLeft},
                   {"session"},
                   {"KV budget"},
                   {"peak hot"},
                   {"holes"},
                   {"evicted"},
                   {"recalled"},
                   {"computed"},
                   {"prefill ms"},
                   {"recall ms"},
                   {"decode ms"}});
  for (const ArmResult& arm : arms) {
    table.add_row({arm.name, std::to_string(arm.session_tokens), std::to_string(arm.budget_tokens),
                   std::to_string(arm.peak_hot_tokens), std::to_string(arm.n_holes), std::to_string(arm.n_evicted),
                   std::to_string(arm.n_recalled), std::to_string(arm.n_computed),
                   fmt::format("{:.0f}", arm.prefill_ms), fmt::format("{:.2f}", arm.recall_ms),
                   fmt::format("{:.0f}", arm.decode_ms)});
  }
  fmt::print(
      "\n{}\nsession, budget, peak, holes (when the last answer began) and computed are tokens; evicted and recalled "
      "are blocks.\n",
      table.render());
}

Status run_demo(const DemoFlags& flags) {
  std::unique_ptr<Engine> engine;
  InterruptListener interrupt;
  EngineFlags engine_flags = flags.engine;
  if (engine_flags.kv_budget == 0) engine_flags.kv_budget = kPoolTokens;
  EBB_ASSIGN_OR_RETURN(engine, open_engine(engine_flags, interrupt));
  ProgressBar bar;
  EBB_ASSIGN_OR_RETURN(const std::vector<ArmResult> arms, Demo(*engine, flags, bar).play());
  bar.clear();
  if (flags.all_replies) print_replies(arms);
  print_results(arms);
  const ArmResult& ours = arms[1];
  if (!knows_the_fact(ours))
    return error(Code::kNotFound, "the fact was not recalled; `ebb demo --replies` shows all turns");
  return {};
}

}  // namespace

void add_demo(CLI::App& app, Action& action) {
  auto flags = std::make_shared<DemoFlags>();
  flags->engine.block_size = 32;
  // Whole blocks leave, the oldest first: so the fact is gone for certain before it is asked for.
  flags->engine.eviction = "streaming";
  CLI::App* command = app.add_subcommand("demo", "Play a session far longer than its KV budget, beside what others do");
  command->footer(kDemoFooter);
  command->add_flag("--replies", flags->all_replies, "Print the replies of all turns");
  command->add_option("--recall", flags->recall_blocks, "Evicted blocks to recall for each turn")
      ->check(CLI::Range(1, 64))
      ->type_name("BLOCKS")
      ->capture_default_str();
  add_engine_flags(*command, flags->engine);
  command->callback([flags, &action] {
    action = [flags] {
      const Status status = run_demo(*flags);
      return status.ok() ? ExitCode::kOk : fail(status);
    };
  });
}

}  // namespace ebb
