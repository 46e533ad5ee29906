#include "bench/longbench.h"

#include <algorithm>
#include <numeric>

#include "bench/policy_forks.h"

namespace ebb {
namespace {

// Of a prompt's tokens: what a chat template adds to them at most, with room to spare.
constexpr std::int32_t kTemplateTokens = 128;
constexpr const char* kNeverEvicting = "never evicting";

class LongBench {
 public:
  LongBench(Engine& engine, const LongBenchOptions& options, const std::vector<NamedPolicy>& policies,
            LongBenchReport& report)
      : engine_(engine), options_(options), report_(report) {
    add_row({kNeverEvicting, watching_policy()}, 0);
    for (const std::int32_t budget : options.budgets) {
      for (const NamedPolicy& policy : policies) add_row(policy, budget);
    }
  }

  Status measure(const std::vector<LongBenchColumn>& columns) {
    // Questions take most of the time.
    double n_questions = 0.0;
    for (const LongBenchColumn& column : columns) {
      for (const LongBenchItem& item : column.items) n_questions += static_cast<double>(item.questions.size());
    }
    double n_done = 0.0;
    for (const LongBenchColumn& column : columns) {
      report_.tasks.push_back(task_of(column));
      for (LongBenchRow& row : report_.rows) row.scores.emplace_back();
      for (const LongBenchItem& item : column.items) {
        options_.progress(fmt::format("{}, {} tokens", column.name, item.n_prompt_tokens()), n_done / n_questions);
        EBB_RETURN_IF_ERROR(measure_item(column, item));
        n_done += static_cast<double>(item.questions.size());
      }
    }
    return {};
  }

 private:
  void add_row(const NamedPolicy& policy, std::int32_t budget) {
    policies_.push_back(policy);
    report_.rows.push_back({.policy = policy.name, .budget_tokens = budget});
  }

  static LongBenchTask task_of(const LongBenchColumn& column) {
    LongBenchTask task{.name = column.name, .metric = column.metric};
    std::vector<double> n_tokens;
    for (const LongBenchItem& item : column.items) {
      n_tokens.push_back(item.n_prompt_tokens());
      task.n_questions += static_cast<std::int32_t>(item.questions.size());
      task.n_truncated += item.was_truncated ? 1 : 0;
    }
    task.n_tokens = spread_of(n_tokens);
    return task;
  }

  Status measure_item(const LongBenchColumn& column, const LongBenchItem& item) {
    EBB_RETURN_IF_ERROR(check_fits(column, item));
    EBB_ASSIGN_OR_RETURN(const SessionImage context, compute_image(engine_, nullptr, item.context));
    std::vector<double> sums(report_.rows.size(), 0.0);
    for (const LongBenchQuestion& question : item.questions) {
      // The last token gives the logits that a reply begins with.
      const auto seen = std::span(question.tokens).first(question.tokens.size() - 1);
      SessionImage behind;
      if (!seen.empty()) {
        EBB_ASSIGN_OR_RETURN(behind, compute_image(engine_, &context, seen));
      }
      const SessionImage& prompt = seen.empty() ? context : behind;
      for (std::size_t r = 0; r < report_.rows.size(); ++r) {
        EBB_ASSIGN_OR_RETURN(const std::string said, reply(column, prompt, question.tokens.back(), r));
        sums[r] += column.score(said, question);
      }
    }
    for (std::size_t r = 0; r < report_.rows.size(); ++r) {
      report_.rows[r].scores.back().push_back(100.0 * sums[r] / static_cast<double>(item.questions.size()));
    }
    return {};
  }

  [[nodiscard]] Status check_fits(const LongBenchColumn& column, const LongBenchItem& item) const {
    const std::int32_t n_most = std::min(engine_.budget_tokens(), engine_.model().hparams().n_ctx_train);
    const std::int32_t n_needed = item.n_prompt_tokens() + column.max_reply_tokens;
    if (n_needed <= n_most) return {};
    return error(Code::kOutOfBudget,
                 "{}: a prompt and its reply take {} tokens, and the model's context, as far as memory allows, has {}; "
                 "ask for shorter prompts",
                 column.name, n_needed, n_most);
  }

  Result<std::string> reply(const LongBenchColumn& column, const SessionImage& prompt, Token last, std::size_t r) {
    LongBenchRow& row = report_.rows[r];
    EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         fork_session(engine_, prompt, policies_[r], row.budget_tokens));
    const auto note = [&] {
      const std::int32_t n_hot = FrameBudget{session->room().n_hot_frames}.n_tokens(engine_.shape());
      row.most_hot_tokens = std::max(row.most_hot_tokens, n_hot);
    };
    note();
    EBB_ASSIGN_OR_RETURN(std::string said,
                         reply_greedily(engine_, *session, {last},
                                        {.max_tokens = column.max_reply_tokens, .stop_strings = column.stop_strings}));
    note();
    return said;
  }

  Engine& engine_;
  const LongBenchOptions& options_;
  LongBenchReport& report_;
  std::vector<NamedPolicy> policies_;  // of the rows
};

Status check(const LongBenchOptions& options) {
  std::vector<std::int32_t> budgets = options.budgets;
  std::ranges::sort(budgets);
  if (budgets.empty() || std::ranges::adjacent_find(budgets) != budgets.end()) {
    return error(Code::kInvalidArgument, "give one budget at least, and each once");
  }
  if (budgets.front() >= kMinSessionBlocks * options.block_size) return {};
  return error(Code::kInvalidArgument, "a budget of {} tokens; give {} at least ({} blocks of {})", budgets.front(),
               kMinSessionBlocks * options.block_size, kMinSessionBlocks, options.block_size);
}

Result<std::vector<LongBenchColumn>> make_columns(const Engine& engine, const LongBenchOptions& options) {
  if (!options.file) return make_longbench_columns(engine.vocabulary(), options.task);
  LongBenchFileOptions file = *options.file;
  if (file.max_tokens == 0) {
    const std::int32_t n_most = std::min(engine.budget_tokens(), engine.model().hparams().n_ctx_train);
    file.max_tokens = std::max(n_most / 2, n_most - most_longbench_reply_tokens() - kTemplateTokens);
  }
  return read_longbench(engine.vocabulary(), file);
}

}  // namespace

double LongBenchRow::score(std::size_t task) const {
  const std::vector<double>& of = scores[task];
  return std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
}

PairedDifference LongBenchReport::difference(const LongBenchRow& row, std::size_t task) const {
  return paired_difference(row.scores[task], rows.front().scores[task]);
}

Result<LongBenchReport> run_longbench(const LongBenchOptions& options) {
  EBB_RETURN_IF_ERROR(check(options));
  EBB_ASSIGN_OR_RETURN(const std::vector<NamedPolicy> policies, policies_of_forks(options.policies));
  options.progress("loading", 0.0);
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, Engine::open({.model = options.model,
                                                                           .n_threads = options.n_threads,
                                                                           .kv_type = options.kv_type,
                                                                           .block_size = options.block_size,
                                                                           .store = options.store}));
  EBB_ASSIGN_OR_RETURN(const std::vector<LongBenchColumn> columns, make_columns(*engine, options));
  LongBenchReport report{.model = options.model.filename().string(), .options = options};
  EBB_RETURN_IF_ERROR(LongBench(*engine, options, policies, report).measure(columns));
  return report;
}

}  // namespace ebb
