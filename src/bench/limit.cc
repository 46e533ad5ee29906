#include "bench/limit.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"
#include "bench/json_lines.h"
#include "bench/machine.h"
#include "engine/engine.h"
#include "engine/generation.h"
#include "policy/policy.h"

namespace ebb {
namespace {

constexpr std::array<std::string_view, 2> kModes = {"gen_length", "gen_throughput"};

// More are not made; a file may have more.
constexpr std::int32_t kMostPrompts = 4096;
// Longer than any timeout lets a text become.
constexpr std::int32_t kMostLength = 1 << 28;

class Limit {
 public:
  Limit(Engine& engine, const LimitOptions& options, const std::vector<std::vector<Token>>& prompts)
      : engine_(engine), options_(options), prompts_(prompts) {}

  Result<LimitArm> measure(const std::string& name) {
    arm_ = {.policy = name};
    EBB_ASSIGN_OR_RETURN(policy_, make_policy(name));
    evicts_ = policy_->name() != "none";
    EBB_RETURN_IF_ERROR(options_.mode == LimitMode::kGenLength ? double_length() : double_prompts());
    return std::move(arm_);
  }

 private:
  Status double_length() {
    for (std::int32_t length = 1;; length = std::min(2 * length, kMostLength)) {
      EBB_ASSIGN_OR_RETURN(const LimitRound round, run(length, 1, length + 1));
      arm_.most = std::max(arm_.most, round.n_generated);
      arm_.end = round.is_late ? LimitEnd::kTime : LimitEnd::kExhausted;
      if (round.is_late || round.is_full) return {};
    }
  }

  // Between the most prompts that fitted and the fewest that did not.
  Status double_prompts() {
    const auto n_all = static_cast<std::int32_t>(prompts_.size());
    std::int32_t n_too_many = n_all + 1;
    for (std::int32_t n = 1; n_too_many - arm_.most > 1;) {
      EBB_ASSIGN_OR_RETURN(const LimitRound round, run(n, n, options_.max_tokens));
      if (round.is_late) {
        arm_.end = LimitEnd::kTime;
        return {};
      }
      (round.is_full ? n_too_many : arm_.most) = n;
      const bool is_doubling = n_too_many > n_all;
      n = is_doubling ? std::min(2 * n, n_all) : arm_.most + (n_too_many - arm_.most) / 2;
    }
    arm_.end = n_too_many > n_all ? LimitEnd::kOutOfPrompts : LimitEnd::kExhausted;
    return {};
  }

  // The first n_prompts together, from their beginnings, until each has n_tokens more, or one has no room, or time is over.
  Result<LimitRound> run(std::int32_t n_asked, std::int32_t n_prompts, std::int32_t n_tokens) {
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<std::unique_ptr<Generation>> generations;
    for (std::int32_t i = 0; i < n_prompts; ++i) {
      EBB_ASSIGN_OR_RETURN(sessions.emplace_back(), engine_.new_session(session_options()));
      const GenerationOptions asked = {.sampling = {.temperature = 0.0F, .ignore_eos = true}, .max_tokens = n_tokens};
      const std::vector<Token>& prompt = prompts_[static_cast<std::size_t>(i)];
      EBB_ASSIGN_OR_RETURN(generations.emplace_back(),
                           Generation::start(*sessions.back(), engine_.vocabulary(), Prompt(prompt), asked));
    }
    LimitRound round{.n_asked = n_asked};
    EBB_RETURN_IF_ERROR(step_all(generations, round));
    for (const auto& generation : generations) round.n_generated += generation->stats().n_generated;
    round.resident_bytes = read_resident_bytes();
    arm_.rounds.push_back(round);
    return round;
  }

  [[nodiscard]] SessionOptions session_options() const {
    // What leaves is gone, as in the checker: nothing but the pool is to be measured.
    return {.budget_tokens = evicts_ ? options_.session_tokens : engine_.budget_tokens(),
            .policy = policy_,
            .remains = Remains::kNothing,
            .rebases = evicts_,
            .adopts = false};
  }

  Status step_all(const std::vector<std::unique_ptr<Generation>>& generations, LimitRound& round) {
    std::vector<Generation*> running;
    for (const auto& generation : generations) running.push_back(generation.get());
    const FramePool& pool = engine_.pool();
    double sum = 0.0;
    std::int64_t n_steps = 0;
    const Stopwatch watch;
    while (!running.empty() && !round.is_full && !round.is_late) {
      EBB_RETURN_IF_ERROR(engine_.step(running));
      const double usage = static_cast<double>(pool.n_hot()) / pool.n_frames();
      sum += usage;
      ++n_steps;
      round.most_usage = std::max(round.most_usage, usage);
      EBB_ASSIGN_OR_RETURN(round.is_full, is_full(running));
      round.seconds = watch.elapsed_ms() / 1000.0;
      std::erase_if(running, [](const Generation* generation) { return generation->finished(); });
      round.is_late = !running.empty() && round.seconds > options_.timeout_s;
      if (n_steps % 16 == 0) tell(round, pool);
    }
    round.mean_usage = sum / static_cast<double>(std::max<std::int64_t>(1, n_steps));
    for (Generation* const generation : running) generation->finish(FinishReason::kCancelled);
    return {};
  }

  Result<bool> is_full(const std::vector<Generation*>& running) const {
    for (const Generation* const generation : running) {
      if (generation->status().ok()) continue;
      if (generation->status().code() != Code::kOutOfBudget) return generation->status();
      return true;
    }
    const FramePool& pool = engine_.pool();
    return options_.mode == LimitMode::kGenThroughput && pool.n_free() < engine_.shape().frames_per_block();
  }

  void tell(const LimitRound& round, const FramePool& pool) const {
    options_.progress(fmt::format("{}: {} {}, {:.0f} % of the pool is hot", arm_.policy, round.n_asked,
                                  options_.mode == LimitMode::kGenLength ? "tokens" : "prompts",
                                  100.0 * pool.n_hot() / pool.n_frames()),
                      std::min(1.0, round.seconds / options_.timeout_s));
  }

  Engine& engine_;
  const LimitOptions& options_;
  const std::vector<std::vector<Token>>& prompts_;
  LimitArm arm_;
  std::shared_ptr<const Policy> policy_;
  bool evicts_ = false;
};

// Messages and replies as they stand, since a limit is looked for and no answer.
std::string plain_text(const RecallTask& task) {
  std::string text;
  for (const RecallMessage& message : task.messages) text += message.text + "\n" + message.reply + "\n";
  return text;
}

Result<std::vector<std::vector<Token>>> make_prompts(const Engine& engine, const LimitOptions& options) {
  std::vector<std::string> texts = options.prompts;
  if (texts.empty()) {
    // One more than fit in any arm, if each takes no more than it must.
    const std::int32_t n_each = std::min(options.session_tokens, options.prompt_tokens + options.max_tokens);
    const std::int32_t n_most = std::min(kMostPrompts, options.pool_tokens / n_each + 1);
    const RecallTaskOptions asked = {.split = RecallSplit::kTest,
                                     .language = options.language,
                                     .n_tasks = options.mode == LimitMode::kGenLength ? 1 : n_most,
                                     .n_tokens = options.prompt_tokens};
    EBB_ASSIGN_OR_RETURN(const std::vector<RecallTask> tasks, make_recall_tasks(engine.vocabulary(), asked));
    for (const RecallTask& task : tasks) texts.push_back(plain_text(task));
  }
  if (options.mode == LimitMode::kGenLength) texts.resize(1);
  std::vector<std::vector<Token>> prompts;
  for (const std::string& text : texts) {
    EBB_ASSIGN_OR_RETURN(prompts.emplace_back(), engine.vocabulary().tokenize(text));
    if (prompts.back().empty()) return error(Code::kInvalidArgument, "prompt {} is empty", prompts.size());
  }
  return prompts;
}

// Without eviction a sequence also ends where the trained context does, which would be taken for a full pool.
Status check_context(const LimitOptions& options, std::int32_t n_prompt_tokens, std::int32_t n_context) {
  if (std::ranges::find(options.policies, "none") == options.policies.end()) return {};
  if (options.mode == LimitMode::kGenLength && options.pool_tokens > n_context) {
    return error(
        Code::kInvalidArgument,
        "without eviction a text ends with the model's context of {} tokens, before {} are hot; give a smaller "
        "--kv-budget",
        n_context, options.pool_tokens);
  }
  if (options.mode == LimitMode::kGenThroughput && n_prompt_tokens + options.max_tokens > n_context) {
    return error(Code::kInvalidArgument,
                 "a prompt of {} tokens and {} more do not fit the model's context of {}; give shorter ones",
                 n_prompt_tokens, options.max_tokens, n_context);
  }
  return {};
}

Status check(const LimitOptions& options) {
  if (options.policies.empty()) return error(Code::kInvalidArgument, "give one policy at least");
  for (const std::string& name : options.policies) EBB_RETURN_IF_ERROR(make_policy(name).status());
  const std::int32_t least = kMinSessionBlocks * options.block_size;
  if (options.session_tokens < least || options.session_tokens > options.pool_tokens) {
    return error(Code::kInvalidArgument, "a sequence of {} hot tokens in a pool of {}; give {} to {}",
                 options.session_tokens, options.pool_tokens, least, options.pool_tokens);
  }
  return {};
}

}  // namespace

std::string_view name_of(LimitMode mode) { return kModes[static_cast<std::size_t>(mode)]; }

std::optional<LimitMode> find_limit_mode(std::string_view name) {
  const auto found = std::ranges::find(kModes, name);
  if (found == kModes.end()) return std::nullopt;
  return static_cast<LimitMode>(found - kModes.begin());
}

Result<std::vector<std::string>> read_limit_prompts(std::string_view lines) {
  std::vector<std::string> prompts;
  EBB_RETURN_IF_ERROR(read_json_lines(lines, [&](JsonFields& line) {
    prompts.push_back(line.needed_text("prompt"));
    return Status();
  }));
  return prompts;
}

Result<LimitReport> run_limit(const LimitOptions& options) {
  EBB_RETURN_IF_ERROR(check(options));
  options.progress("loading", 0.0);
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                       Engine::open({.model = options.model,
                                     .n_threads = options.n_threads,
                                     .kv_type = options.kv_type,
                                     .block_size = options.block_size,
                                     .kv_budget_tokens = options.pool_tokens,
                                     .n_open_blocks = options.pool_tokens / options.block_size,
                                     .store = {.ram_bytes = 0}}));
  EBB_ASSIGN_OR_RETURN(const std::vector<std::vector<Token>> prompts, make_prompts(*engine, options));
  LimitReport report{.model = options.model.filename().string(), .options = options};
  for (const std::vector<Token>& prompt : prompts) {
    report.n_prompt_tokens = std::max(report.n_prompt_tokens, static_cast<std::int32_t>(prompt.size()));
  }
  EBB_RETURN_IF_ERROR(check_context(options, report.n_prompt_tokens, engine->model().hparams().n_ctx_train));
  for (const std::string& policy : options.policies) {
    EBB_ASSIGN_OR_RETURN(report.arms.emplace_back(), Limit(*engine, options, prompts).measure(policy));
  }
  return report;
}

}  // namespace ebb
