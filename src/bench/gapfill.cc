#include "bench/gapfill.h"

#include <algorithm>
#include <array>

#include "bench/sections.h"

namespace ebb {
namespace {

constexpr std::array kGapfillArms = {ResendArm::kNone, ResendArm::kEverything, ResendArm::kAware, ResendArm::kOurs};

Status check(const GapfillOptions& options) {
  if (options.chunks.empty() || options.budgets.empty() || options.n_sessions < 1 || options.chunk_characters < 1 ||
      options.n_before < 1 || options.n_between < 1) {
    return error(Code::kInvalidArgument,
                 "give one length and one budget at least, and 1 or more sessions, characters, and chunks before and "
                 "between questions");
  }
  if (std::ranges::min(options.chunks) < options.n_before) {
    return error(Code::kInvalidArgument, "{} chunks, and the first question comes after {}; read more",
                 std::ranges::min(options.chunks), options.n_before);
  }
  return {};
}

// How many tokens of reading matter have so many characters.
Result<std::int32_t> tokens_of_characters(const Vocabulary& vocabulary, std::int32_t n_characters) {
  constexpr std::int32_t kSample = 512;
  EBB_ASSIGN_OR_RETURN(const Section sample, SectionWriter(vocabulary, 0).write(kSample));
  return std::max<std::int32_t>(
      1, static_cast<std::int32_t>(std::int64_t{n_characters} * kSample / std::ssize(sample.text)));
}

Result<std::vector<ResendMessage>> make_script(const Vocabulary& vocabulary, std::int32_t n_chunks,
                                               const GapfillOptions& options, std::uint64_t seed) {
  EBB_ASSIGN_OR_RETURN(const std::int32_t n_tokens, tokens_of_characters(vocabulary, options.chunk_characters));
  EBB_ASSIGN_OR_RETURN(const std::vector<Section> sections, make_sections(vocabulary, n_chunks, n_tokens, seed));
  std::vector<ResendMessage> script;
  std::size_t n_asked = 0;
  for (std::int32_t i = 0; i < n_chunks; ++i) {
    script.push_back({.text = sections[static_cast<std::size_t>(i)].text, .wanted = ""});
    const std::int32_t n_since = i + 1 - options.n_before;
    if (n_since < 0 || n_since % options.n_between != 0) continue;
    const Section& asked = sections[n_asked++];
    script.push_back({.text = asked.question, .wanted = asked.answer});
  }
  return script;
}

}  // namespace

Result<ResendReport> run_gapfill(const GapfillOptions& options) {
  EBB_RETURN_IF_ERROR(check(options));
  ResendReport report{
      .bench = "gapfill",
      .protocol = fmt::format("chunks of {} characters, each with a fact; from chunk {} on, after every "
                              "{} one early fact is asked for",
                              options.chunk_characters, options.n_before, options.n_between)};
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, open_resend_engine(options.setup, report));
  std::uint64_t seed = options.setup.seed;
  const auto n_cases = static_cast<double>(options.chunks.size() * options.budgets.size());
  for (const std::int32_t n_chunks : options.chunks) {
    std::vector<std::vector<ResendMessage>> scripts;
    for (std::int32_t s = 0; s < options.n_sessions; ++s) {
      EBB_ASSIGN_OR_RETURN(scripts.emplace_back(), make_script(engine->vocabulary(), n_chunks, options, seed++));
    }
    for (const std::int32_t budget : options.budgets) {
      ResendCase played{.name = fmt::format("{} chunks, budget {}", n_chunks, budget), .budget_tokens = budget};
      options.setup.progress(played.name, static_cast<double>(report.cases.size()) / n_cases);
      EBB_RETURN_IF_ERROR(play_resend_case(*engine, scripts, kGapfillArms,
                                           {.budget_tokens = budget, .watermarks = options.setup.watermarks}, played));
      report.cases.push_back(std::move(played));
    }
  }
  return report;
}

}  // namespace ebb
