#include "bench/wall.h"

#include <algorithm>

#include "base/clock.h"
#include "bench/sections.h"
#include "chat/turn_text.h"
#include "engine/engine.h"
#include "engine/generation.h"

namespace ebb {
namespace {

// Longer than any answer; it bounds a reply that does not end.
constexpr std::int32_t kWallReplyTokens = 32;

class Wall {
 public:
  Wall(Engine& engine, const WallOptions& options) : engine_(engine), options_(options) {}

  Result<std::vector<WallArm>> play() {
    const std::int32_t n_section_tokens = options_.session_tokens / options_.n_sections;
    EBB_ASSIGN_OR_RETURN(sections_,
                         make_sections(engine_.vocabulary(), options_.n_sections, n_section_tokens, options_.seed));
    const SessionOptions ours = {.budget_tokens = options_.budget_tokens, .adopts = false};
    SessionOptions lost = ours;
    lost.remains = Remains::kNothing;
    const SessionOptions whole = {.budget_tokens = engine_.budget_tokens(), .rebases = false, .adopts = false};
    std::vector<WallArm> arms;
    EBB_ASSIGN_OR_RETURN(arms.emplace_back(), play_arm("ebb", ours));
    EBB_ASSIGN_OR_RETURN(arms.emplace_back(), play_arm("no recall", lost));
    EBB_ASSIGN_OR_RETURN(arms.emplace_back(), play_arm("no eviction", whole));
    EBB_ASSIGN_OR_RETURN(arms.emplace_back(), play_ceiling(whole));
    return arms;
  }

 private:
  // EVOKE's step between questions, so that the first and the last sections are asked for too.
  [[nodiscard]] std::size_t asked_section(std::int32_t i) const {
    const std::int32_t step = std::max(1, options_.n_sections / (options_.n_questions + 2));
    return static_cast<std::size_t>(std::min(i * step, options_.n_sections - 1));
  }

  Result<WallArm> play_arm(const std::string& name, const SessionOptions& session_options) {
    WallArm arm{.name = name, .budget_tokens = session_options.budget_tokens};
    const Stopwatch watch;
    EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, engine_.new_session(session_options));
    before_ = Before::kNothing;
    for (const Section& section : sections_) {
      options_.progress(name, share_done_ += 1.0 / static_cast<double>(3 * sections_.size()));
      EBB_ASSIGN_OR_RETURN(const std::string reply, say(*session, section.text, "", arm));
      if (!arm.ended_by.empty()) break;
      ++arm.n_sections;
      arm.turns.push_back(turn_of(*session));
    }
    for (std::int32_t i = 0; i < options_.n_questions && arm.ended_by.empty(); ++i) {
      const std::size_t asked = asked_section(i);
      EBB_RETURN_IF_ERROR(ask(*session, asked, arm.turns[asked].session_tokens, arm));
      arm.turns.push_back(turn_of(*session));
    }
    arm.n_asked = options_.n_questions;
    note(*session, arm);
    arm.seconds = watch.elapsed_ms() / 1000.0;
    return arm;
  }

  Result<WallArm> play_ceiling(const SessionOptions& session_options) {
    WallArm arm{.name = "ceiling", .n_asked = options_.n_questions, .budget_tokens = session_options.budget_tokens};
    const Stopwatch watch;
    for (std::int32_t i = 0; i < options_.n_questions; ++i) {
      EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, engine_.new_session(session_options));
      before_ = Before::kNothing;
      const std::size_t asked = asked_section(i);
      EBB_ASSIGN_OR_RETURN(const std::string reply, say(*session, sections_[asked].text, "", arm));
      ++arm.n_sections;
      EBB_RETURN_IF_ERROR(ask(*session, asked, session->end().value(), arm));
      note(*session, arm);
    }
    arm.seconds = watch.elapsed_ms() / 1000.0;
    return arm;
  }

  // `read_to`: where the session ended when it had read that section.
  Status ask(Session& session, std::size_t asked, std::int32_t read_to, WallArm& arm) {
    const Section& section = sections_[asked];
    WallAnswer answer{.n_section = static_cast<std::int32_t>(asked),
                      .n_read = session.end().value() - read_to,
                      .question = section.question,
                      .wanted = section.answer};
    EBB_ASSIGN_OR_RETURN(answer.said, say(session, section.question, section.question, arm));
    answer.is_right = answer.said.find(section.answer) != std::string::npos;
    if (answer.is_right) ++arm.n_right;
    for (const BlockIndex block : last_.acts.recalled) answer.recalled.push_back(block.value());
    arm.answers.push_back(std::move(answer));
    return {};
  }

  // One turn; its reply. A session that is full ends the arm and is no error.
  Result<std::string> say(Session& session, std::string_view message, std::string question, WallArm& arm) {
    EBB_ASSIGN_OR_RETURN(std::vector<Token> tokens, turn_tokens(engine_.vocabulary(), message, before_));
    const GenerationOptions options = {
        .sampling = {.temperature = 0.0F},
        .max_tokens = kWallReplyTokens,
        .recall = {.cues = find_cues(question), .max_blocks = options_.n_recalled_blocks}};
    Result<std::unique_ptr<Generation>> generation =
        Generation::start(session, engine_.vocabulary(), Prompt(std::move(tokens)), options);
    if (!generation.ok()) {
      if (generation.status().code() != Code::kOutOfBudget) return generation.status();
      arm.ended_by = generation.status().message();
      return std::string();
    }
    Generation* const running = generation->get();
    while (!running->finished()) EBB_RETURN_IF_ERROR(engine_.step({&running, 1}));
    if (!running->status().ok()) arm.ended_by = running->status().message();
    before_ = running->reason() == FinishReason::kEndOfGeneration ? Before::kEndedReply : Before::kCutReply;
    last_ = running->turn_stats();
    arm.n_computed += running->stats().n_prompt + running->stats().n_generated;
    return running->text();
  }

  [[nodiscard]] WallTurn turn_of(const Session& session) const {
    return {.session_tokens = session.end().value(),
            .hot_tokens = session.n_hot_tokens(),
            .n_evicted = static_cast<std::int32_t>(last_.acts.evicted.size()),
            .n_recalled = static_cast<std::int32_t>(last_.acts.recalled.size())};
  }

  static void note(const Session& session, WallArm& arm) {
    const SessionStats& stats = session.stats();
    arm.session_tokens = std::max(arm.session_tokens, session.end().value());
    arm.peak_hot_tokens = std::max(arm.peak_hot_tokens, session.peak_hot_tokens());
    arm.n_evicted += stats.n_evicted_blocks;
    arm.n_recalled += stats.n_recalled_blocks;
    arm.n_rebases += stats.n_rebases;
  }

  Engine& engine_;
  const WallOptions& options_;
  std::vector<Section> sections_;
  Before before_ = Before::kNothing;
  TurnStats last_;
  double share_done_ = 0.0;
};

}  // namespace

Result<WallReport> run_wall(const WallOptions& given) {
  if (given.n_sections < 1 || given.n_questions < 1 || given.n_questions > given.n_sections) {
    return error(Code::kInvalidArgument, "{} questions about {} sections; ask for one to all of them",
                 given.n_questions, given.n_sections);
  }
  EngineOptions engine_options{.model = given.model,
                               .n_threads = given.n_threads,
                               .kv_type = given.kv_type,
                               .block_size = given.block_size,
                               .policy = given.policy};
  engine_options.store.ram_bytes = given.ram_bytes;
  given.progress("loading", 0.0);
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, Engine::open(engine_options));
  const std::int32_t n_ctx = engine->model().hparams().n_ctx_train;
  WallOptions options = given;
  if (options.budget_tokens == 0)
    options.budget_tokens = n_ctx / 4 / given.block_size * given.block_size - given.block_size;
  if (options.session_tokens == 0) options.session_tokens = 8 * n_ctx;
  WallReport report{.model = given.model.filename().string(), .n_ctx_train = n_ctx, .options = options};
  EBB_ASSIGN_OR_RETURN(report.arms, Wall(*engine, options).play());
  return report;
}

}  // namespace ebb
