#include "bench/evidence_cost.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "bench/session_steps.h"
#include "bench/speed_model.h"
#include "device/backend.h"
#include "engine/engine.h"
#include "policy/policy.h"
#include "session/reread.h"

namespace ebb {
namespace {

// Asks for nothing.
constexpr const char* kNothing = "streaming";
constexpr std::int32_t kWarmPairs = 2;

// Milliseconds of an arm's pieces of work and of those beside them.
struct PairTimes {
  std::vector<double> arm;
  std::vector<double> beside;
};

Status check(const EvidenceCostOptions& options) {
  if (options.n_prompts < 1 || options.n_decode < 1 || options.n_prompt < 1 || options.n_choices < 1) {
    return error(Code::kInvalidArgument, "{} decoded tokens, {} prompts of {}, {} choices: each must be at least 1",
                 options.n_decode, options.n_prompts, options.n_prompt, options.n_choices);
  }
  if (options.depths.empty() || std::ranges::min(options.depths) < 1) {
    return error(Code::kInvalidArgument, "depths must be one or more numbers of resident tokens, each at least 1");
  }
  return {};
}

class EvidenceCostBench {
 public:
  EvidenceCostBench(Engine& engine, const EvidenceCostOptions& options) : engine_(engine), options_(options) {}

  std::function<void(std::string_view)> on_step = [](std::string_view) {};

  Result<EvidenceCostDepth> measure(std::int32_t depth) {
    context_ = make_random_tokens(engine_.vocabulary().n_tokens(), depth, 1);
    on_step(fmt::format("computing {} tokens", depth));
    EBB_ASSIGN_OR_RETURN(beside_, open(kNothing));
    EvidenceCostDepth result{.n_resident = depth, .arms = {}};
    EBB_RETURN_IF_ERROR(add_arm(kNothing, result));
    for (const std::string& policy : options_.policies) EBB_RETURN_IF_ERROR(add_arm(policy, result));
    beside_.reset();
    return result;
  }

 private:
  // Over frames of the first one's, so that nothing is computed again.
  Result<std::unique_ptr<Session>> open(const std::string& spec) {
    EBB_ASSIGN_OR_RETURN(std::shared_ptr<const Policy> policy, make_policy(spec));
    EBB_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, engine_.new_session({.policy = std::move(policy)}));
    EBB_RETURN_IF_ERROR(compute_tokens(engine_, *session, context_));
    return session;
  }

  Status add_arm(const std::string& spec, EvidenceCostDepth& result) {
    const std::string name = spec == kNothing ? "nothing" : spec;
    EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, open(spec));
    on_step(fmt::format("{}: decoding behind {} tokens", name, result.n_resident));
    EBB_ASSIGN_OR_RETURN(const PairTimes decode, time_decode(*session));
    on_step(fmt::format("{}: prompts behind {} tokens", name, result.n_resident));
    EBB_ASSIGN_OR_RETURN(const PairTimes prompt, time_prompts(*session));
    on_step(fmt::format("{}: choosing among {} tokens", name, result.n_resident));
    const std::vector<double> choices = time_choices(*session);
    const SessionImage image = session->image();
    std::size_t n_floats = 0;
    for (const auto column : AttentionImage::columns()) n_floats += (image.attention.slices.*column).size();
    const auto n_bytes = static_cast<double>(image.attention.entries.size() * sizeof(AttentionImage::Entry) +
                                             n_floats * sizeof(float) + image.queries.bytes());
    result.arms.push_back({.policy = name,
                           .decode = cost_of(decode),
                           .prompt = cost_of(prompt),
                           .decode_tokens_per_s = 1000.0 / median(decode.arm),
                           .prompt_tokens_per_s = 1000.0 * options_.n_prompt / median(prompt.arm),
                           .note_bytes_per_token = n_bytes / result.n_resident,
                           .choice_ms = median_interval(choices)});
    return {};
  }

  // Work of one session takes milliseconds; who begins alternates. The first pairs, which pay for pages and graphs, do not
  // count.
  template <class Work>
  Result<PairTimes> time_pairs(Session& session, std::int32_t n_pairs, const Work& work) {
    PairTimes times;
    for (std::int32_t i = -kWarmPairs; i < n_pairs; ++i) {
      const bool arm_begins = i % 2 == 0;
      EBB_ASSIGN_OR_RETURN(const double first, work(arm_begins ? session : *beside_));
      EBB_ASSIGN_OR_RETURN(const double second, work(arm_begins ? *beside_ : session));
      if (i < 0) continue;
      times.arm.push_back(arm_begins ? first : second);
      times.beside.push_back(arm_begins ? second : first);
    }
    return times;
  }

  // Tokens that nobody has computed, so that none are taken over.
  std::vector<Token> new_tokens(std::int32_t n) {
    return make_random_tokens(engine_.vocabulary().n_tokens(), n, ++seed_);
  }

  Result<PairTimes> time_decode(Session& session) {
    EBB_ASSIGN_OR_RETURN(const PairTimes times, time_pairs(session, options_.n_decode, [&](Session& decoding) {
                           return decode_tokens(engine_, decoding, new_tokens(1));
                         }));
    cut_session(session, end());
    cut_session(*beside_, end());
    return times;
  }

  Result<PairTimes> time_prompts(Session& session) {
    return time_pairs(session, options_.n_prompts, [&](Session& reading) -> Result<double> {
      const std::vector<Token> tokens = new_tokens(options_.n_prompt);
      const Stopwatch watch;
      EBB_RETURN_IF_ERROR(compute_tokens(engine_, reading, tokens));
      const double ms = watch.elapsed_ms();
      cut_session(reading, end());
      return ms;
    });
  }

  // The first, which reads what frames hold, does not count.
  std::vector<double> time_choices(Session& session) {
    std::vector<double> times;
    for (std::int32_t i = -1; i < options_.n_choices; ++i) {
      const Stopwatch watch;
      (void)session.find_victims(session.shape().frames_per_block());
      if (i >= 0) times.push_back(watch.elapsed_ms());
    }
    return times;
  }

  [[nodiscard]] Position end() const { return Position(static_cast<std::int32_t>(context_.size())); }

  static MedianInterval cost_of(const PairTimes& times) {
    std::vector<double> costs = paired_ratios(times.arm, times.beside);
    for (double& cost : costs) cost -= 1.0;
    return median_interval(costs);
  }

  Engine& engine_;
  const EvidenceCostOptions& options_;
  std::vector<Token> context_;
  std::unique_ptr<Session> beside_;
  std::uint32_t seed_ = 1;
};

}  // namespace

Result<EvidenceCostReport> run_evidence_cost(const EvidenceCostOptions& given) {
  EBB_RETURN_IF_ERROR(check(given));
  EvidenceCostOptions options = given;
  for (std::int32_t& depth : options.depths) depth = whole_blocks(depth, options.block_size) * options.block_size;
  std::ranges::sort(options.depths);
  const auto repeated = std::ranges::unique(options.depths);
  options.depths.erase(repeated.begin(), repeated.end());
  if (options.n_threads == 0) options.n_threads = default_threads();
  if (options.cache_folder.empty()) options.cache_folder = default_cache_folder();
  EBB_ASSIGN_OR_RETURN(const auto model, given_or_speed_model(options.model, options.cache_folder,
                                                              {.quant = options.quant}, options.progress));
  options.progress("loading", 0.0);
  // Beside the context that all share, what two sessions write: tokens, and rows of a prompt that is read again behind itself. With
  // less room it would not be, and its price would be missing.
  const std::int32_t n_read = options.n_prompt + std::max(kRereadRows, options.block_size);
  const std::int32_t n_more =
      whole_blocks(std::max(options.n_decode + kWarmPairs, n_read), options.block_size) * options.block_size;
  EBB_ASSIGN_OR_RETURN(const auto engine, Engine::open({.model = model,
                                                        .n_threads = options.n_threads,
                                                        .kv_type = options.kv_type,
                                                        .block_size = options.block_size,
                                                        .kv_budget_tokens = options.depths.back() + 2 * n_more,
                                                        .store = {.ram_bytes = 0}}));
  EvidenceCostReport report{.machine = read_machine(),
                            .model = model.stem().string(),
                            .n_threads = options.n_threads,
                            .block_size = options.block_size,
                            .n_decode = options.n_decode,
                            .n_prompts = options.n_prompts,
                            .n_prompt = options.n_prompt,
                            .n_choices = options.n_choices,
                            .kv_type = options.kv_type,
                            .kv_bytes_per_token = engine->layout().token_bytes() * engine->shape().frames_per_block()};
  EvidenceCostBench bench(*engine, options);
  const auto n_arms = static_cast<double>(options.policies.size() + 1);
  const double n_steps = static_cast<double>(options.depths.size()) * (1.0 + 3.0 * n_arms);
  double n_done = 0.0;
  bench.on_step = [&](std::string_view what) { options.progress(what, n_done++ / n_steps); };
  for (const std::int32_t depth : options.depths) {
    EBB_ASSIGN_OR_RETURN(EvidenceCostDepth measured, bench.measure(depth));
    report.depths.push_back(std::move(measured));
  }
  options.progress("done", 1.0);
  return report;
}

}  // namespace ebb
