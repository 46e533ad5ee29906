#include "bench/policies.h"

#include <algorithm>
#include <cmath>

#include "bench/recall_prompts.h"
#include "bench/session_steps.h"

namespace ebb {
namespace {

// Longer than any answer; it bounds a reply that does not end.
constexpr std::int32_t kMostReplyTokens = 24;
// What a question and its reply may take on top of the budget.
constexpr std::int32_t kQuestionTokens = 160;
// Of a budget: one that is written to, and one to keep.
constexpr std::int32_t kLeastBlocks = 2;

// By what was noted, which is of the continuation alone.
class Oracle final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return kOracle; }
  [[nodiscard]] Ask asks() const override { return {.scope = Scope::kHead, .totals = true}; }
  [[nodiscard]] std::vector<double> score(const Evidence&, const ScopeEvidence& scope) const override {
    return scope.total;
  }
};

class PoliciesBench {
 public:
  PoliciesBench(Engine& engine, const PoliciesOptions& options, std::vector<NamedPolicy> policies,
                PoliciesReport& report)
      : engine_(engine), options_(options), policies_(std::move(policies)), report_(report) {}

  Status measure() {
    for (const RecallKind kind : options_.kinds) {
      for (const std::int32_t seed : options_.seeds) {
        RecallTaskOptions asked = options_.task;
        asked.kind = kind;
        asked.seed = static_cast<std::uint64_t>(seed);
        asked.n_tasks = options_.n_tasks;
        EBB_ASSIGN_OR_RETURN(const std::vector<RecallTask> tasks, make_recall_tasks(engine_.vocabulary(), asked));
        for (const RecallTask& task : tasks) EBB_RETURN_IF_ERROR(measure_task(task));
      }
    }
    for (const std::int32_t seed : options_.seeds) EBB_RETURN_IF_ERROR(measure_text(seed));
    return {};
  }

 private:
  // A context as every arm finds it.
  struct Base {
    SessionImage image;
    std::vector<Token> pending;  // computed by each arm
    std::int32_t n_context = 0;
  };

  Status measure_task(const RecallTask& task) {
    options_.progress(fmt::format("{} of {} tokens", name_of(task.kind), task.n_tokens), n_done_++ / n_all());
    EBB_ASSIGN_OR_RETURN(const RecallContext context, recall_context(engine_.vocabulary(), task));
    EBB_ASSIGN_OR_RETURN(const SessionImage image, compute_image(engine_, nullptr, context.tokens));
    for (const RecallQuestion& question : task.questions) {
      EBB_ASSIGN_OR_RETURN(const std::vector<Token> tokens,
                           recall_question(engine_.vocabulary(), question.text, context.ends));
      if (std::ssize(tokens) + kMostReplyTokens > kQuestionTokens) {
        return error(Code::kOutOfBudget, "a question of {} tokens, {} at most", tokens.size(),
                     kQuestionTokens - kMostReplyTokens);
      }
      EBB_RETURN_IF_ERROR(measure_question(task, question, image, tokens));
    }
    return {};
  }

  Status measure_question(const RecallTask& task, const RecallQuestion& question, const SessionImage& image,
                          const std::vector<Token>& tokens) {
    const auto n_context = static_cast<std::int32_t>(image.tokens.size());
    const Base agnostic{.image = image, .pending = tokens, .n_context = n_context};
    EBB_ASSIGN_OR_RETURN(SessionImage behind,
                         compute_image(engine_, &image, std::span(tokens).first(tokens.size() - 1)));
    const Base aware{.image = std::move(behind), .pending = {tokens.back()}, .n_context = n_context};
    EBB_ASSIGN_OR_RETURN(const Base oracle, look_ahead(image, tokens, question.answer));
    const Asked asked{.task = task, .question = question};
    EBB_RETURN_IF_ERROR(answer(asked, agnostic, {std::string(kEverythingHot), watching_policy()}, {.kind = task.kind}));
    for (const std::int32_t part : options_.parts) {
      for (const NamedPolicy& policy : policies_) {
        PoliciesCell cell{.kind = task.kind, .part = part};
        EBB_RETURN_IF_ERROR(answer(asked, agnostic, policy, cell));
        cell.recalls = true;
        // What a shift discards is gone.
        if (!policy.shifts) EBB_RETURN_IF_ERROR(answer(asked, agnostic, policy, cell));
        cell = {.kind = task.kind, .is_aware = true, .part = part};
        EBB_RETURN_IF_ERROR(answer(asked, aware, policy, cell));
      }
      const PoliciesCell cell{.kind = task.kind, .is_aware = true, .part = part};
      EBB_RETURN_IF_ERROR(answer(asked, oracle, {std::string(kOracle), std::make_shared<Oracle>()}, cell));
    }
    return {};
  }

  // Contexts.
  [[nodiscard]] double n_all() const {
    return static_cast<double>((options_.kinds.size() + 1) * options_.seeds.size()) * options_.n_tasks;
  }

  struct Asked {
    const RecallTask& task;
    const RecallQuestion& question;
  };

  // --- contexts ---

  // The context, with notes on what question and right answer look at.
  Result<Base> look_ahead(const SessionImage& image, const std::vector<Token>& question, std::string_view answer) {
    SessionImage blank = image;
    blank.attention = {};
    EBB_ASSIGN_OR_RETURN(const std::vector<Token> said, engine_.vocabulary().tokenize(answer, {.add_bos = false}));
    std::vector<Token> ahead = question;
    ahead.insert(ahead.end(), said.begin(), said.end());
    EBB_ASSIGN_OR_RETURN(const SessionImage behind, compute_image(engine_, &blank, ahead));
    Base base{.image = image, .pending = question, .n_context = static_cast<std::int32_t>(image.tokens.size())};
    // The oracle ranks blocks, and slices of those that are left out would have to go too.
    base.image.attention = {.entries = behind.attention.entries};
    const auto n_blocks = static_cast<std::int32_t>(image.blocks.size());
    std::erase_if(base.image.attention.entries, [&](const auto& entry) { return entry.block >= n_blocks; });
    return base;
  }

  // A fork that has shrunk to a part of the context; 0: everything is hot.
  Result<std::unique_ptr<Session>> shrink(const Base& base, const NamedPolicy& policy, std::int32_t part) {
    return fork_session(engine_, base.image, policy, part > 0 ? budget_of(base, part) : 0, options_.floors);
  }

  [[nodiscard]] std::int32_t budget_of(const Base& base, std::int32_t part) const {
    // What of the question is there already is on top, as it is for who has not seen it.
    const auto n_more = static_cast<std::int32_t>(base.image.tokens.size()) - base.n_context;
    const std::int32_t n = base.n_context / part / options_.block_size * options_.block_size;
    return std::max(n, kLeastBlocks * options_.block_size) + n_more;
  }

  // --- answers ---

  Status answer(const Asked& asked, const Base& base, const NamedPolicy& policy, const PoliciesCell& cell) {
    EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, shrink(base, policy, cell.part));
    if (cell.recalls) {
      EBB_RETURN_IF_ERROR(engine_
                              .recall(*session, chosen_blocks(session->look({.cues = find_cues(asked.question.text)},
                                                                            Moment::kBeforePrompt)))
                              .status());
    }
    PoliciesArm& arm = arm_of(policy.name, cell);
    const std::int32_t n_hot = FrameBudget{session->room().n_hot_frames}.n_tokens(engine_.shape());
    arm.most_hot_tokens = std::max(arm.most_hot_tokens, n_hot);
    arm.budget_tokens = std::max(arm.budget_tokens, session->budget_tokens());
    if (cell.part > 0) {
      (void)session->set_budget(FrameBudget::of_tokens(session->budget_tokens() + kQuestionTokens, engine_.shape()));
    }
    EBB_ASSIGN_OR_RETURN(const std::string said, reply_greedily(engine_, *session, base.pending,
                                                                {.max_tokens = kMostReplyTokens,
                                                                 .stop_strings = recall_stops(engine_.vocabulary())}));
    arm.right.push_back(is_right(said, asked.task, asked.question));
    return {};
  }

  // --- text ---

  // What goes on behind as much of a needle's haystack as the other contexts have.
  Status measure_text(std::int32_t seed) {
    if (options_.n_text_tokens == 0) return {};
    RecallTaskOptions longer = options_.task;
    longer.kind = RecallKind::kNeedle;
    longer.seed = static_cast<std::uint64_t>(seed);
    longer.n_tasks = options_.n_tasks;
    longer.n_tokens = options_.task.n_tokens + 2 * options_.n_text_tokens;
    EBB_ASSIGN_OR_RETURN(const std::vector<RecallTask> tasks, make_recall_tasks(engine_.vocabulary(), longer));
    for (const RecallTask& task : tasks) {
      options_.progress("reading text", n_done_++ / n_all());
      EBB_ASSIGN_OR_RETURN(const RecallContext all, recall_context(engine_.vocabulary(), task));
      const auto n_context = static_cast<std::size_t>(options_.task.n_tokens);
      if (all.tokens.size() < n_context + static_cast<std::size_t>(options_.n_text_tokens) + 1) continue;
      const std::span<const Token> tokens = all.tokens;
      EBB_ASSIGN_OR_RETURN(SessionImage image, compute_image(engine_, nullptr, tokens.first(n_context)));
      const Base base{.image = std::move(image), .n_context = options_.task.n_tokens};
      const std::span<const Token> text = tokens.subspan(n_context);
      EBB_RETURN_IF_ERROR(read_on(base, {std::string(kEverythingHot), watching_policy()}, 0, text));
      for (const std::int32_t part : options_.parts) {
        for (const NamedPolicy& policy : policies_) EBB_RETURN_IF_ERROR(read_on(base, policy, part, text));
      }
    }
    return {};
  }

  Status read_on(const Base& base, const NamedPolicy& policy, std::int32_t part, std::span<const Token> text) {
    const auto n = static_cast<std::size_t>(options_.n_text_tokens);
    EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, shrink(base, policy, part));
    double surprise = 0.0;
    EBB_ASSIGN_OR_RETURN(const double ms,
                         decode_tokens(engine_, *session, text.first(n), [&](std::size_t i, auto logits) {
                           const double most = *std::ranges::max_element(logits);
                           double sum = 0.0;
                           for (const float logit : logits) sum += std::exp(double{logit} - most);
                           surprise += most + std::log(sum) - double{logits[text[i + 1].index()]};
                         }));
    PoliciesText& of = text_of(policy.name, part);
    of.n_tokens = options_.n_text_tokens;
    of.surprise.push_back(surprise);
    of.ms_per_token.push_back(ms / static_cast<double>(n));
    return {};
  }

  // --- report ---

  PoliciesArm& arm_of(const std::string& policy, const PoliciesCell& cell) {
    for (PoliciesArm& arm : report_.arms) {
      if (arm.policy == policy && arm.cell == cell) return arm;
    }
    report_.arms.push_back({.policy = policy, .cell = cell});
    return report_.arms.back();
  }

  PoliciesText& text_of(const std::string& policy, std::int32_t part) {
    for (PoliciesText& text : report_.texts) {
      if (text.policy == policy && text.part == part) return text;
    }
    report_.texts.push_back({.policy = policy, .part = part});
    return report_.texts.back();
  }

  Engine& engine_;
  const PoliciesOptions& options_;
  std::vector<NamedPolicy> policies_;
  PoliciesReport& report_;
  double n_done_ = 0.0;
};

template <class T>
bool has_twice(std::vector<T> values) {
  std::ranges::sort(values);
  return std::ranges::adjacent_find(values) != values.end();
}

Status check(const PoliciesOptions& options) {
  if (options.parts.empty() || options.kinds.empty() || options.seeds.empty() || options.n_tasks < 1) {
    return error(Code::kInvalidArgument, "give one part, one kind, one seed and one task at least");
  }
  if (has_twice(options.parts) || has_twice(options.kinds) || has_twice(options.seeds)) {
    return error(Code::kInvalidArgument,
                 "a part, kind or seed is given twice, which would count the same answers twice");
  }
  for (const std::int32_t part : options.parts) {
    if (part > 0 && options.task.n_tokens / part >= kLeastBlocks * options.block_size) continue;
    return error(
        Code::kInvalidArgument,
        "1/{} of a context of {} tokens holds less than {} blocks of {}; give other --parts, a longer --context or "
        "a smaller --block-size",
        part, options.task.n_tokens, kLeastBlocks, options.block_size);
  }
  return {};
}

}  // namespace

double PoliciesArm::share() const {
  return right.empty() ? 0.0 : static_cast<double>(std::ranges::count(right, true)) / static_cast<double>(right.size());
}

double PoliciesText::perplexity() const {
  double sum = 0.0;
  for (const double value : surprise) sum += value;
  return std::exp(sum / std::max(1.0, static_cast<double>(surprise.size()) * n_tokens));
}

const PoliciesArm* PoliciesReport::find(std::string_view policy, const PoliciesCell& cell) const {
  for (const PoliciesArm& arm : arms) {
    if (arm.policy == policy && arm.cell == cell) return &arm;
  }
  return nullptr;
}

PairedDifference compare_answers(const std::vector<bool>& a, const std::vector<bool>& b) {
  const auto points = [](const std::vector<bool>& right) {
    std::vector<double> of(right.size());
    std::ranges::transform(right, of.begin(), [](bool is_right) { return is_right ? 100.0 : 0.0; });
    return of;
  };
  return paired_difference(points(a), points(b));
}

Result<PoliciesReport> run_policies(const PoliciesOptions& options) {
  EBB_RETURN_IF_ERROR(check(options));
  std::vector<std::string> names = options.policies;
  if (!names.empty() && std::ranges::find(names, kBaseline) == names.end())
    names.insert(names.begin(), std::string(kBaseline));
  EBB_ASSIGN_OR_RETURN(std::vector<NamedPolicy> policies, policies_of_forks(std::move(names)));
  policies.push_back(context_shift());
  options.progress("loading", 0.0);
  // A context as long as asked for, marks of its chat template, a question, a reply.
  const std::int32_t n_tokens = 2 * options.task.n_tokens + 4 * kQuestionTokens + options.n_text_tokens;
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                       Engine::open({.model = options.model,
                                     .n_threads = options.n_threads,
                                     .kv_type = options.kv_type,
                                     .block_size = options.block_size,
                                     .kv_budget_tokens = n_tokens,
                                     .store = {.ram_bytes = std::size_t{1} << 30}}));
  PoliciesReport report{.model = options.model.filename().string(), .options = options};
  for (const NamedPolicy& policy : policies) report.policies.push_back(policy.name);
  EBB_RETURN_IF_ERROR(PoliciesBench(*engine, options, std::move(policies), report).measure());
  return report;
}

}  // namespace ebb
