#include "bench/sparse.h"

#include <algorithm>
#include <utility>

#include "bench/session_steps.h"
#include "bench/speed_model.h"
#include "device/backend.h"
#include "engine/engine.h"
#include "session/turn.h"

namespace ebb {
namespace {

constexpr std::int32_t kMinBudgetBlocks = 4;

Status check(const SparseOptions& options) {
  if (options.depths.empty() || std::ranges::min(options.depths) < 1) {
    return error(Code::kInvalidArgument, "depths must be one or more numbers of tokens, each at least 1");
  }
  const std::int32_t least = kMinBudgetBlocks * options.block_size;
  if (options.budgets.empty() || std::ranges::min(options.budgets) < least) {
    return error(Code::kInvalidArgument,
                 "budgets must be one or more numbers of tokens, each at least {} ({} blocks of {})", least,
                 kMinBudgetBlocks, options.block_size);
  }
  if (options.n_rounds < 1 || options.n_decode < 1) {
    return error(Code::kInvalidArgument, "{} rounds of {} decoded tokens: each must be at least 1", options.n_rounds,
                 options.n_decode);
  }
  if (options.n_text_context < 1 || options.n_text_scored < 1 || options.n_text_generated < 1) {
    return error(Code::kInvalidArgument, "{} tokens of text read, {} scored, {} generated: each must be at least 1",
                 options.n_text_context, options.n_text_scored, options.n_text_generated);
  }
  return {};
}

struct SparseSteps {
  std::int64_t n_done = 0;
  std::int64_t n_all = 1;
};

std::int64_t n_steps(const SparseOptions& options) {
  std::int64_t n = 0;
  for (const std::int32_t depth : options.depths) {
    n += 1 + std::ssize(sparse_arms(options, depth)) * (options.n_rounds + 1);
  }
  return n;
}

// One arm at one depth.
struct ArmRun {
  SparseArm arm;
  Session* session = nullptr;
  std::unique_ptr<Session> own;
  std::vector<double> times_ms;
  std::int64_t n_evicted_before = 0;
  std::int64_t n_moved_before = 0;
  double n_hot_tokens = 0.0;  // summed over the tokens decoded in the rounds
};

class SpeedBench {
 public:
  SpeedBench(const SparseOptions& options, PeakProbe& probe, SparseSteps& steps)
      : options_(options), probe_(probe), steps_(steps) {}

  Status open(const std::filesystem::path& model) {
    const std::int32_t size = options_.block_size;
    // The base, which also is the arm without eviction, and all others beside it.
    std::int32_t n_blocks = whole_blocks(options_.depths.back(), size) + whole_blocks(options_.n_decode, size) + 1;
    for (const std::int32_t budget : options_.budgets) n_blocks += 2 * (budget / size);
    say("loading");
    EBB_ASSIGN_OR_RETURN(engine_, Engine::open({.model = model,
                                                .n_threads = options_.n_threads,
                                                .kv_type = options_.kv_type,
                                                .block_size = size,
                                                .kv_budget_tokens = n_blocks * size,
                                                .policy = "streaming",
                                                .store = {.ram_bytes = kAmpleRamBytes}}));
    const std::int32_t n_needed =
        (whole_blocks(options_.depths.back(), size) + 1) * size + (options_.n_rounds + 1) * options_.n_decode;
    if (const std::int32_t n_ctx = engine_->model().hparams().n_ctx_train; n_needed > n_ctx) {
      return error(Code::kOutOfBudget,
                   "a depth of {} tokens and {} rounds of {} take {}, and the model was trained for {}; give smaller "
                   "--depths",
                   options_.depths.back(), options_.n_rounds, options_.n_decode, n_needed, n_ctx);
    }
    EBB_ASSIGN_OR_RETURN(base_, engine_->new_session(SessionOptions()));
    const FrameLayout& layout = engine_->layout();
    const Hparams& hparams = engine_->model().hparams();
    kv_bytes_per_token_ = layout.token_bytes() * hparams.n_layers * hparams.n_kv_heads;
    return {};
  }

  Result<SparseDepth> run(std::int32_t n_asked) {
    depth_ = whole_blocks(n_asked, options_.block_size) * options_.block_size;
    say(fmt::format("computing {} tokens", depth_));
    ++steps_.n_done;
    EBB_RETURN_IF_ERROR(fill());
    std::vector<ArmRun> arms;
    for (const SparseArm& arm : sparse_arms(options_, depth_)) {
      EBB_RETURN_IF_ERROR(open_arm(arms.emplace_back(ArmRun{.arm = arm})));
    }
    for (std::int32_t round = 0; round <= options_.n_rounds; ++round) {
      probe_.measure();
      for (std::size_t i = 0; i < arms.size(); ++i) {
        // Who comes first changes, so that what drifts favours nobody.
        ArmRun& arm = arms[(i + static_cast<std::size_t>(round)) % arms.size()];
        say(fmt::format("{} of {}", arm.arm.name(), depth_));
        ++steps_.n_done;
        EBB_RETURN_IF_ERROR(run_round(arm, round));
      }
    }
    return report(arms);
  }

 private:
  Status fill() {
    const std::int32_t n_there = base_->end().value();
    const auto tokens = make_random_tokens(engine_->vocabulary().n_tokens(), depth_, 1);
    EBB_RETURN_IF_ERROR(compute_tokens(*engine_, *base_, std::span(tokens).subspan(static_cast<std::size_t>(n_there))));
    return engine_->store()->flush();
  }

  // A session that stands where one of that budget would after so many tokens: sinks and the newest blocks are hot.
  Status open_arm(ArmRun& arm) {
    if (arm.arm.way == SparseWay::kNothing) {
      arm.session = base_.get();
      return {};
    }
    const Removal removal = arm.arm.way == SparseWay::kCompact ? Removal::kCompact : Removal::kSparse;
    EBB_ASSIGN_OR_RETURN(arm.own, engine_->restore_session({.budget_tokens = arm.arm.budget_tokens, .removal = removal},
                                                           base_->image()));
    arm.session = arm.own.get();
    const std::vector<BlockIndex> sinks = {BlockIndex(0)};
    arm.own->recall(sinks);
    arm.own->refill(0);
    if (arm.own->n_hot_blocks() == arm.own->budget_blocks()) return {};
    return error(Code::kNotFound, "{}: {} of {} blocks came back from the cold store; is memory full?", arm.arm.name(),
                 arm.own->n_hot_blocks(), arm.own->budget_blocks());
  }

  // Round 0 is not counted: it pays for graphs, and brings compact to where it evicts as it always will.
  Status run_round(ArmRun& arm, std::int32_t round) {
    if (round == 1) {
      arm.n_evicted_before = arm.session->stats().n_evicted_blocks;
      arm.n_moved_before = arm.session->stats().n_moved_blocks;
    }
    const auto tokens =
        make_random_tokens(engine_->vocabulary().n_tokens(), options_.n_decode, static_cast<std::uint32_t>(2 + round));
    double n_hot = 0.0;
    EBB_ASSIGN_OR_RETURN(const double ms,
                         decode_tokens(*engine_, *arm.session, tokens, [&](std::size_t, std::span<const float>) {
                           n_hot += arm.session->n_hot_tokens();
                         }));
    if (arm.arm.way == SparseWay::kNothing) cut_session(*arm.session, Position(depth_));
    if (round == 0) return {};
    arm.times_ms.push_back(ms);
    arm.n_hot_tokens += n_hot;
    return {};
  }

  [[nodiscard]] SparseDepth report(const std::vector<ArmRun>& arms) const {
    SparseDepth depth{.n_tokens = depth_};
    for (const ArmRun& arm : arms) {
      std::vector<double> speeds;
      for (const double ms : arm.times_ms) speeds.push_back(1000.0 * options_.n_decode / ms);
      const auto& sparse = *std::ranges::find_if(arms, [&](const ArmRun& other) {
        return other.arm == SparseArm{.way = SparseWay::kSparse, .budget_tokens = arm.arm.budget_tokens} ||
               &other == &arm;
      });
      const SessionStats& stats = arm.session->stats();
      depth.arms.push_back(
          {.arm = arm.arm,
           .tokens_per_s = spread_of(speeds),
           .over_nothing = spread_of(paired_ratios(arms.front().times_ms, arm.times_ms)),
           .over_sparse = arm.arm.way == SparseWay::kCompact
                              ? std::optional(spread_of(paired_ratios(sparse.times_ms, arm.times_ms)))
                              : std::nullopt,
           .peak_hot_tokens = FrameBudget{stats.peak_hot_frames}.n_tokens(engine_->shape()),
           .n_evicted_blocks = stats.n_evicted_blocks - arm.n_evicted_before,
           .n_moved_blocks = stats.n_moved_blocks - arm.n_moved_before,
           .kv_bytes = kv_bytes_per_token_ * arm.n_hot_tokens / (options_.n_rounds * options_.n_decode)});
    }
    return depth;
  }

  void say(std::string_view what) const {
    options_.progress(what, static_cast<double>(steps_.n_done) / static_cast<double>(steps_.n_all));
  }

  const SparseOptions& options_;
  PeakProbe& probe_;
  SparseSteps& steps_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> base_;
  std::int32_t depth_ = 0;
  double kv_bytes_per_token_ = 0.0;
};

void sort_unique(std::vector<std::int32_t>& values) {
  std::ranges::sort(values);
  const auto repeated = std::ranges::unique(values);
  values.erase(repeated.begin(), repeated.end());
}

}  // namespace

std::string_view sparse_way_name(SparseWay way) {
  switch (way) {
    case SparseWay::kNothing: return "no eviction";
    case SparseWay::kSparse: return "sparse";
    case SparseWay::kCompact: return "compact";
  }
  EBB_CHECK(false, "no way {}", static_cast<int>(way));
}

std::string SparseArm::name() const {
  if (way == SparseWay::kNothing) return std::string(sparse_way_name(way));
  return fmt::format("{} {}", sparse_way_name(way), budget_tokens);
}

std::vector<SparseArm> sparse_arms(const SparseOptions& options, std::int32_t n_tokens) {
  std::vector<SparseArm> arms = {{}};
  for (const SparseWay way : {SparseWay::kSparse, SparseWay::kCompact}) {
    for (const std::int32_t budget : options.budgets) {
      if (budget < n_tokens) arms.push_back({.way = way, .budget_tokens = budget});
    }
  }
  return arms;
}

Result<SparseReport> run_sparse(const SparseOptions& given) {
  EBB_RETURN_IF_ERROR(check(given));
  SparseOptions options = given;
  sort_unique(options.depths);
  sort_unique(options.budgets);
  if (options.n_threads == 0) options.n_threads = default_threads();
  if (options.cache_folder.empty()) options.cache_folder = default_cache_folder();

  EBB_ASSIGN_OR_RETURN(const auto model, given_or_speed_model(options.model, options.cache_folder,
                                                              {.quant = options.quant}, options.progress));
  SparseReport report{.machine = read_machine(),
                      .model = model.stem().string(),
                      .n_threads = options.n_threads,
                      .block_size = options.block_size,
                      .n_decode = options.n_decode,
                      .kv_type = options.kv_type};
  // First, since it is quick: a text that is missing must not cost minutes.
  if (!options.text_model.empty()) {
    options.progress("reading text", 0.0);
    EBB_ASSIGN_OR_RETURN(report.text, read_sparse_text(options));
  }
  options.progress("trying ways to read memory", 0.0);
  EBB_ASSIGN_OR_RETURN(PeakProbe probe, PeakProbe::open(options.n_threads, options.peak_sizes));
  probe.choose(options.peak_sizes.least);
  SparseSteps steps{.n_all = n_steps(options)};
  SpeedBench bench(options, probe, steps);
  EBB_RETURN_IF_ERROR(bench.open(model));
  for (const std::int32_t depth : options.depths) {
    EBB_ASSIGN_OR_RETURN(SparseDepth measured, bench.run(depth));
    report.depths.push_back(std::move(measured));
  }
  report.peak = probe.peak();
  options.progress("done", 1.0);
  return report;
}

}  // namespace ebb
