#include "bench/baseline.h"

#include <algorithm>
#include <array>

#include "bench/sections.h"

namespace ebb {
namespace {

constexpr std::array kBaselineArms = {ResendArm::kNone, ResendArm::kTruncate, ResendArm::kOurs};

// Every message states a fact, so that the one that is asked for does not stand out.
Result<std::vector<ResendMessage>> make_script(const Vocabulary& vocabulary, std::int32_t n_turns,
                                               std::int32_t n_tokens, std::uint64_t seed) {
  EBB_ASSIGN_OR_RETURN(const std::vector<Section> sections, make_sections(vocabulary, n_turns - 1, n_tokens, seed));
  std::vector<ResendMessage> script;
  for (const Section& section : sections) script.push_back({.text = section.text, .wanted = ""});
  script.push_back({.text = sections.front().question, .wanted = sections.front().answer});
  return script;
}

}  // namespace

Result<ResendReport> run_baseline(const BaselineOptions& options) {
  if (options.turns.empty() || std::ranges::min(options.turns) < 2 || options.n_sessions < 1 ||
      options.message_tokens < 1) {
    return error(Code::kInvalidArgument,
                 "give one length at least, each of 2 turns or more, and 1 or more sessions and tokens of a message");
  }
  ResendReport report{.bench = "baseline",
                      .protocol = fmt::format("messages of {} tokens, each with a fact; the last turn asks for the "
                                              "first",
                                              options.message_tokens)};
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, open_resend_engine(options.setup, report));
  std::uint64_t seed = options.setup.seed;
  for (const std::int32_t n_turns : options.turns) {
    std::vector<std::vector<ResendMessage>> scripts;
    for (std::int32_t s = 0; s < options.n_sessions; ++s) {
      EBB_ASSIGN_OR_RETURN(scripts.emplace_back(),
                           make_script(engine->vocabulary(), n_turns, options.message_tokens, seed++));
    }
    ResendCase played{.name = fmt::format("{} turns, budget {}", n_turns, options.budget_tokens),
                      .budget_tokens = options.budget_tokens};
    options.setup.progress(played.name,
                           static_cast<double>(report.cases.size()) / static_cast<double>(options.turns.size()));
    EBB_RETURN_IF_ERROR(
        play_resend_case(*engine, scripts, kBaselineArms,
                         {.budget_tokens = options.budget_tokens, .watermarks = options.setup.watermarks}, played));
    report.cases.push_back(std::move(played));
  }
  return report;
}

}  // namespace ebb
