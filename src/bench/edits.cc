#include "bench/edits.h"

#include <algorithm>
#include <span>

#include "bench/api_client.h"

namespace ebb {
namespace {

constexpr std::int32_t kAnswerTokens = 32;

// The history once, and a fork of it for each arm.
class EditsRun {
 public:
  EditsRun(ApiClient& client, const std::vector<EditArm>& arms, std::vector<EditMiss>& misses)
      : client_(client), arms_(arms), misses_(misses) {}

  // What is asked behind the edit of the history. cells: one an arm.
  Status ask(const EditCase& one, std::span<EditCell> cells) {
    const Json before = {
        {"messages", one.before}, {"max_tokens", 1}, {"temperature", 0}, {"kv_reuse", name_of(Reuse::kFresh)}};
    const std::string history = fmt::format("edit-{}", n_edits_++);
    EBB_RETURN_IF_ERROR(client_.post("/v1/chat/completions", before, history).status());
    exact_.clear();
    for (EditCell& cell : cells) {
      const std::string fork = fmt::format("{}-{}", history, cell.arm);
      EBB_RETURN_IF_ERROR(client_.fork(before, history, fork));
      EBB_RETURN_IF_ERROR(ask_fork(one, fork, cell));
    }
    return {};
  }

 private:
  Status ask_fork(const EditCase& one, const std::string& fork, EditCell& cell) {
    const EditArm& arm = arms_[cell.arm];
    for (const EditProbe& probe : one.probes) {
      Json messages = one.after;
      messages.push_back(make_message("user", probe.text));
      const Json asked = {{"messages", std::move(messages)},
                          {"max_tokens", kAnswerTokens},
                          {"temperature", 0},
                          {"kv_reuse", name_of(arm.reuse)},
                          {"kv_reuse_recompute", arm.n_recomputed}};
      EBB_ASSIGN_OR_RETURN(const Json answer, client_.post("/v1/chat/completions", asked, fork));
      note(probe, answer, static_cast<std::size_t>(&probe - one.probes.data()), cell);
    }
    ++cell.n_edits;
    return {};
  }

  // The cells of exact reuse are the first.
  void note(const EditProbe& probe, const Json& answer, std::size_t i_probe, EditCell& cell) {
    const Json& content = answer["choices"][0]["message"]["content"];
    const std::string reply = content.is_string() ? content.get<std::string>() : "";
    const EditReply verdict = judge(probe, reply);
    if (arms_[cell.arm].reuse == Reuse::kExact) exact_.push_back(verdict);
    EditCounts& counts = cell.by_matter[static_cast<std::size_t>(probe.matter)];
    ++counts.n_asked;
    counts.n_right += verdict == EditReply::kRight ? 1 : 0;
    counts.n_stale += verdict == EditReply::kStale ? 1 : 0;
    counts.n_lost += verdict == EditReply::kStale && exact_[i_probe] == EditReply::kRight ? 1 : 0;
    if (verdict != EditReply::kRight) {
      misses_.push_back(
          {.kind = cell.kind, .n_tokens = cell.n_tokens, .arm = cell.arm, .probe = probe, .reply = reply});
    }
    // Later questions stand behind what the first one's request computed.
    if (i_probe > 0) return;
    cell.n_prompt += answer["usage"]["prompt_tokens"].get<std::int64_t>();
    cell.n_computed += answer["timings"]["prompt_n"].get<std::int64_t>();
    cell.n_approximate += answer["ebb"]["prompt"]["recalled_approximate"].get<std::int64_t>();
  }

  ApiClient& client_;
  const std::vector<EditArm>& arms_;
  std::vector<EditMiss>& misses_;
  std::vector<EditReply> exact_;  // [probe of the edit under way]
  std::int64_t n_edits_ = 0;
};

std::vector<EditArm> arms_of(const EditsOptions& options) {
  std::vector<EditArm> arms = {{}, {.reuse = Reuse::kFresh}};
  for (const std::int32_t n : options.recomputed) arms.push_back({.reuse = Reuse::kApproximate, .n_recomputed = n});
  return arms;
}

}  // namespace

std::string EditArm::name() const {
  if (n_recomputed == 0) return std::string(name_of(reuse));
  return fmt::format("{}, {} recomputed", name_of(reuse), n_recomputed);
}

EditCell& EditCell::operator+=(const EditCell& other) {
  n_edits += other.n_edits;
  n_prompt += other.n_prompt;
  n_computed += other.n_computed;
  n_approximate += other.n_approximate;
  for (std::size_t i = 0; i < kEditMatters; ++i) {
    by_matter[i].n_asked += other.by_matter[i].n_asked;
    by_matter[i].n_right += other.by_matter[i].n_right;
    by_matter[i].n_stale += other.by_matter[i].n_stale;
    by_matter[i].n_lost += other.by_matter[i].n_lost;
  }
  return *this;
}

EditCounts EditCell::changed() const {
  const EditCounts& fact = by_matter[static_cast<std::size_t>(EditMatter::kFact)];
  const EditCounts& concluded = by_matter[static_cast<std::size_t>(EditMatter::kConcluded)];
  return {.n_asked = fact.n_asked + concluded.n_asked,
          .n_right = fact.n_right + concluded.n_right,
          .n_stale = fact.n_stale + concluded.n_stale,
          .n_lost = fact.n_lost + concluded.n_lost};
}

EditCell EditsReport::sum(EditKind kind, std::size_t arm) const {
  EditCell all{.kind = kind, .arm = arm};
  for (const EditCell& cell : cells) {
    if (cell.kind == kind && cell.arm == arm) all += cell;
  }
  return all;
}

EditCell EditsReport::sum(std::size_t arm) const {
  EditCell all{.arm = arm};
  for (const EditCell& cell : cells) {
    if (cell.arm == arm) all += cell;
  }
  return all;
}

Result<EditsReport> run_edits(const EditsOptions& options) {
  EBB_ASSIGN_OR_RETURN(const auto client, ApiClient::open({.model = options.model,
                                                           .n_threads = options.n_threads,
                                                           .block_size = options.block_size,
                                                           .kv_budget_tokens = options.budget_tokens,
                                                           .policy = options.policy},
                                                          {.n_parallel = 1, .session = {.adopts = false}}, {}));
  EditsReport report{.model = options.model.filename().string(),
                     .block_size = options.block_size,
                     .policy = options.policy,
                     .budget_tokens = options.budget_tokens,
                     .split = options.split,
                     .seed = options.seed,
                     .arms = arms_of(options)};
  EditsRun run(*client, report.arms, report.misses);
  const double n_all = static_cast<double>(options.kinds.size() * options.lengths.size()) * options.n_cases;
  double n_done = 0.0;
  for (const EditKind kind : options.kinds) {
    for (const std::int32_t n_tokens : options.lengths) {
      EBB_ASSIGN_OR_RETURN(const std::vector<EditCase> cases, make_edit_cases(client->vocabulary(),
                                                                              {.split = options.split,
                                                                               .language = options.language,
                                                                               .n_cases = options.n_cases,
                                                                               .n_tokens = n_tokens,
                                                                               .seed = options.seed},
                                                                              kind));
      std::vector<EditCell> cells;
      for (std::size_t a = 0; a < report.arms.size(); ++a) {
        cells.push_back({.kind = kind, .n_tokens = n_tokens, .arm = a});
      }
      for (const EditCase& one : cases) {
        options.progress(fmt::format("{} at {} tokens", name_of(kind), n_tokens), n_done++ / n_all);
        EBB_RETURN_IF_ERROR(run.ask(one, cells));
      }
      report.cells.insert(report.cells.end(), cells.begin(), cells.end());
    }
  }
  return report;
}

}  // namespace ebb
