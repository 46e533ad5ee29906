#include "bench/wall.h"

#include <algorithm>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "bench/report.h"
#include "bench/wall_session.h"
#include "engine/engine.h"
#include "engine/generation.h"
#include "text/turn_text.h"

namespace ebb {
namespace {

// Longer than any answer; it bounds a reply that does not end.
constexpr std::int32_t kReplyTokens = 32;

class Wall {
 public:
  Wall(Engine& engine, const WallOptions& options) : engine_(engine), options_(options) {}

  Result<std::vector<WallArm>> play() {
    const std::int32_t n_section_tokens = options_.session_tokens / options_.n_sections;
    EBB_ASSIGN_OR_RETURN(
        sections_, make_wall_sections(engine_.vocabulary(), options_.n_sections, n_section_tokens, options_.seed));
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
    for (const WallSection& section : sections_) {
      options_.progress(name, share_done_ += 1.0 / static_cast<double>(3 * sections_.size()));
      EBB_ASSIGN_OR_RETURN(const std::string reply, say(*session, section.text, "", arm));
      if (!arm.ended_by.empty()) break;
      ++arm.n_sections;
    }
    for (std::int32_t i = 0; i < options_.n_questions && arm.ended_by.empty(); ++i) {
      EBB_RETURN_IF_ERROR(ask(*session, sections_[asked_section(i)], arm));
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
      const WallSection& section = sections_[asked_section(i)];
      EBB_ASSIGN_OR_RETURN(const std::string reply, say(*session, section.text, "", arm));
      ++arm.n_sections;
      EBB_RETURN_IF_ERROR(ask(*session, section, arm));
      note(*session, arm);
    }
    arm.seconds = watch.elapsed_ms() / 1000.0;
    return arm;
  }

  Status ask(Session& session, const WallSection& section, WallArm& arm) {
    EBB_ASSIGN_OR_RETURN(const std::string reply, say(session, section.question, section.question, arm));
    if (reply.find(section.answer) != std::string::npos) ++arm.n_right;
    WallAnswer answer{.question = section.question, .wanted = section.answer, .said = reply};
    for (const BlockIndex block : recalled_) answer.recalled.push_back(block.value());
    arm.answers.push_back(std::move(answer));
    return {};
  }

  // One turn; its reply. A session that is full ends the arm and is no error.
  Result<std::string> say(Session& session, std::string_view message, std::string question, WallArm& arm) {
    EBB_ASSIGN_OR_RETURN(const std::vector<Token> tokens, turn_tokens(engine_.vocabulary(), message, before_));
    const GenerationOptions options = {.sampling = {.temperature = 0.0F},
                                       .max_tokens = kReplyTokens,
                                       .recall_question = std::move(question),
                                       .max_recalled_blocks = options_.n_recalled_blocks};
    Result<std::unique_ptr<Generation>> generation = Generation::start(session, engine_.vocabulary(), tokens, options);
    if (!generation.ok()) {
      if (generation.status().code() != Code::kOutOfBudget) return generation.status();
      arm.ended_by = generation.status().message();
      return std::string();
    }
    Generation* const running = generation->get();
    while (!running->finished()) EBB_RETURN_IF_ERROR(engine_.step({&running, 1}));
    if (!running->status().ok()) arm.ended_by = running->status().message();
    before_ = running->reason() == FinishReason::kEndOfGeneration ? Before::kEndedReply : Before::kCutReply;
    recalled_ = running->turn_stats().recalled;
    arm.n_computed += running->stats().n_prompt + running->stats().n_generated;
    return running->text();
  }

  static void note(const Session& session, WallArm& arm) {
    const SessionStats& stats = session.stats();
    arm.session_tokens = std::max(arm.session_tokens, session.end().value());
    arm.peak_hot_tokens = std::max(arm.peak_hot_tokens, stats.peak_hot_blocks * session.block_size());
    arm.n_evicted += stats.n_evicted_blocks;
    arm.n_recalled += stats.n_recalled_blocks;
    arm.n_rebases += stats.n_rebases;
  }

  Engine& engine_;
  const WallOptions& options_;
  std::vector<WallSection> sections_;
  Before before_ = Before::kNothing;
  std::vector<BlockIndex> recalled_;  // of the last turn
  double share_done_ = 0.0;
};

}  // namespace

Result<WallReport> run_wall(const WallOptions& given) {
  if (given.n_sections < 1 || given.n_questions < 1 || given.n_questions > given.n_sections) {
    return error(Code::kInvalidArgument, "{} questions about {} sections; ask for one to all of them",
                 given.n_questions, given.n_sections);
  }
  EngineOptions engine_options{
      .model = given.model, .n_threads = given.n_threads, .kv_type = given.kv_type, .block_size = given.block_size};
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

std::string wall_text(const WallReport& report) {
  using enum TextTable::Align;
  TextTable table({{"", kLeft},
                   {"sections"},
                   {"right"},
                   {"budget"},
                   {"peak hot"},
                   {"session"},
                   {"computed"},
                   {"evicted"},
                   {"recalled"},
                   {"rebases"},
                   {"seconds"}});
  for (const WallArm& arm : report.arms) {
    table.add_row({arm.name, std::to_string(arm.n_sections), fmt::format("{} of {}", arm.n_right, arm.n_asked),
                   std::to_string(arm.budget_tokens), std::to_string(arm.peak_hot_tokens),
                   std::to_string(arm.session_tokens), std::to_string(arm.n_computed), std::to_string(arm.n_evicted),
                   std::to_string(arm.n_recalled), std::to_string(arm.n_rebases), fmt::format("{:.1f}", arm.seconds)});
  }
  std::string text = fmt::format(
      "{}, trained for {} tokens; a session of {} sections, {} tokens in all, and {} late questions\n\n{}\nbudget, "
      "peak, "
      "session and computed are tokens; evicted and recalled are blocks of {}. ceiling: each question right behind its "
      "own section.\n",
      report.model, report.n_ctx_train, report.options.n_sections, report.options.session_tokens,
      report.options.n_questions, table.render(), report.options.block_size);
  for (const WallArm& arm : report.arms) {
    if (!arm.ended_by.empty())
      text += fmt::format("{} ended in section {}: {}\n", arm.name, arm.n_sections + 1, arm.ended_by);
  }
  return text;
}

std::string wall_answers_text(const WallReport& report) {
  std::string text;
  for (const WallArm& arm : report.arms) {
    text += fmt::format("\n{}\n", arm.name);
    for (const WallAnswer& answer : arm.answers) {
      text +=
          fmt::format("  {}  wanted {}, said: {}  (blocks recalled: {})\n", answer.question, answer.wanted, answer.said,
                      answer.recalled.empty() ? "none" : fmt::format("{}", fmt::join(answer.recalled, ", ")));
    }
  }
  return text;
}

Status write_wall_json(const std::filesystem::path& path, const WallReport& report) {
  nlohmann::json arms = nlohmann::json::array();
  for (const WallArm& arm : report.arms) {
    arms.push_back({{"name", arm.name},
                    {"sections", arm.n_sections},
                    {"right", arm.n_right},
                    {"asked", arm.n_asked},
                    {"budget_tokens", arm.budget_tokens},
                    {"peak_hot_tokens", arm.peak_hot_tokens},
                    {"session_tokens", arm.session_tokens},
                    {"computed_tokens", arm.n_computed},
                    {"evicted_blocks", arm.n_evicted},
                    {"recalled_blocks", arm.n_recalled},
                    {"rebases", arm.n_rebases},
                    {"seconds", arm.seconds},
                    {"ended_by", arm.ended_by}});
  }
  return write_json(path, {{"bench", "wall"},
                           {"model", report.model},
                           {"trained_context", report.n_ctx_train},
                           {"sections", report.options.n_sections},
                           {"questions", report.options.n_questions},
                           {"block_size", report.options.block_size},
                           {"kv_type", row_type_name(report.options.kv_type)},
                           {"seed", report.options.seed},
                           {"arms", arms}});
}

}  // namespace ebb
