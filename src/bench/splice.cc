#include "bench/splice.h"

#include <algorithm>
#include <array>
#include <utility>

#include <unistd.h>

#include "base/clock.h"
#include "bench/session_steps.h"
#include "bench/speed_model.h"
#include "device/backend.h"
#include "engine/engine.h"
#include "session/turn.h"

namespace ebb {
namespace {

// Blocks of the budget beyond what is hot at once.
constexpr std::int32_t kSpareBlocks = 4;
// Before decode rounds, for graphs and pages.
constexpr std::int32_t kWarmTokens = 4;

// Milliseconds of each move, by SpliceMove and one per round; and what the probes of the rounds in RAM and on disk copied.
struct Times {
  std::array<std::vector<double>, kSpliceMoves> ms;
  std::vector<double> ram_copy_gb_s;
  std::vector<double> disk_copy_gb_s;
};

std::vector<double>& of(Times& times, SpliceMove move) { return times.ms[static_cast<std::size_t>(move)]; }

Status check(const SpliceOptions& options) {
  if (options.spans.empty() || std::ranges::min(options.spans) < 1) {
    return error(Code::kInvalidArgument, "spans must be one or more numbers of tokens, each at least 1");
  }
  if (options.kv_types.empty()) return error(Code::kInvalidArgument, "no type of K and V to measure; f16, for example");
  if (options.n_rounds < 1 || options.n_prefills < 1 || options.n_decode_rounds < 1 || options.n_context < 1) {
    return error(Code::kInvalidArgument,
                 "{} rounds, {} passes, {} decode rounds, {} tokens of context: each must be at least 1",
                 options.n_rounds, options.n_prefills, options.n_decode_rounds, options.n_context);
  }
  if (options.n_decode < 0) return error(Code::kInvalidArgument, "{} tokens to decode", options.n_decode);
  return {};
}

// A folder that is there while this lives.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::filesystem::path& parent)
      : path_(parent / fmt::format("splice-bench-{}", getpid())) {}
  ~ScratchFolder() {
    std::error_code failed;  // what cannot be removed is left
    std::filesystem::remove_all(path_, failed);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// One type of K and V. First an engine whose cold store is in RAM, then one whose cold store is on disk alone.
class KvBench {
 public:
  KvBench(const SpliceOptions& options, PeakProbe& probe, CacheSweep& sweep)
      : options_(options), probe_(probe), sweep_(sweep) {
    n_context_ = whole_blocks(options.n_context, options.block_size) * options.block_size;
  }

  std::function<void(std::string_view)> on_step = [](std::string_view) {};

  Result<KvSplice> run(const std::filesystem::path& model, RowType type) {
    KvSplice result{.kv_type = type};
    std::vector<Times> times(options_.spans.size());
    EBB_RETURN_IF_ERROR(open(model, type, {.ram_bytes = kAmpleRamBytes}));
    for (std::size_t i = 0; i < times.size(); ++i) {
      EBB_RETURN_IF_ERROR(measure_ram(options_.spans[i], times[i]));
    }
    if (options_.n_decode > 0) {
      EBB_ASSIGN_OR_RETURN(result.stall, measure_stall());
    }
    close();
    const ScratchFolder folder(options_.disk_folder);
    EBB_RETURN_IF_ERROR(
        open(model, type, {.ram_bytes = 0, .disk = DiskOptions{.folder = folder.path(), .sync = SyncPolicy::kNever}}));
    for (std::size_t i = 0; i < times.size(); ++i) {
      EBB_RETURN_IF_ERROR(measure_disk(options_.spans[i], times[i]));
      result.lines.push_back(line_of(options_.spans[i], times[i]));
    }
    result.kv_bytes_per_token = static_cast<double>(block_bytes_) / options_.block_size;
    close();
    return result;
  }

 private:
  Status open(const std::filesystem::path& model, RowType type, const ColdStoreOptions& store) {
    on_step(fmt::format("{}: loading", row_type_name(type)));
    type_ = type;
    const std::int32_t largest =
        whole_blocks(std::ranges::max(options_.spans), options_.block_size) * options_.block_size;
    // What is hot at once: context and span; what a turn may recall, half of the budget; two sessions that decode.
    const std::int32_t n_hot =
        std::max({n_context_ + largest, 2 * largest,
                  2 * (n_context_ + whole_blocks(options_.n_decode, options_.block_size) * options_.block_size)});
    EBB_ASSIGN_OR_RETURN(engine_, Engine::open({.model = model,
                                                .n_threads = options_.n_threads,
                                                .kv_type = type,
                                                .block_size = options_.block_size,
                                                .kv_budget_tokens = n_hot + kSpareBlocks * options_.block_size,
                                                .store = store}));
    const std::int32_t n_needed = n_context_ + 2 * largest;
    if (const std::int32_t n_ctx = engine_->model().hparams().n_ctx_train; n_needed > n_ctx) {
      return error(Code::kOutOfBudget,
                   "a span of {} tokens behind {}, and again behind itself, takes {}, and the model was trained for "
                   "{}; give smaller --spans or --context",
                   largest, n_context_, n_needed, n_ctx);
    }
    // What is timed as computing is computed: nothing that the same tokens left in the store is taken instead.
    EBB_ASSIGN_OR_RETURN(session_, engine_->new_session({.adopts = false}));
    EBB_RETURN_IF_ERROR(compute_tokens(*engine_, *session_, random_tokens(n_context_, 0)));
    block_bytes_ = engine_->read_block(*session_, BlockIndex(0)).size();
    return {};
  }

  void close() {
    session_.reset();
    engine_.reset();
  }

  [[nodiscard]] std::vector<Token> random_tokens(std::int32_t n, std::uint32_t seed) const {
    return make_random_tokens(engine_->vocabulary().n_tokens(), n, seed);
  }

  // Leaves the session with the context and the span hot and saved.
  Status compute_span(std::int32_t n_blocks) {
    cut_session(*session_, Position(n_context_));
    const auto tokens = random_tokens(n_blocks * options_.block_size, 1);
    const Stopwatch watch;
    EBB_RETURN_IF_ERROR(compute_tokens(*engine_, *session_, tokens));
    last_pass_ms_ = watch.elapsed_ms();
    return engine_->store()->flush();
  }

  [[nodiscard]] std::vector<BlockIndex> span_blocks(std::int32_t n_blocks) const {
    std::vector<BlockIndex> blocks;
    for (std::int32_t b = 0; b < n_blocks; ++b) blocks.emplace_back(n_context_ / options_.block_size + b);
    return blocks;
  }

  // Forgets the saved bytes of blocks that are hot, so that they are saved anew.
  void drop(std::span<const BlockIndex> blocks) {
    for (const BlockIndex block : blocks) engine_->store()->drop(session_->exact_name(block));
  }

  void sweep() {
    if (options_.sweeps_caches) sweep_.sweep();
  }

  // Milliseconds; every block must come back from its bytes.
  Result<double> recall(Session& session, std::span<const BlockIndex> blocks) {
    sweep();
    const Stopwatch watch;
    const Acts acts = session.recall(blocks);
    const double ms = watch.elapsed_ms();
    const auto n_recalled = std::ssize(acts.recalled);
    if (n_recalled != std::ssize(blocks)) {
      return error(Code::kNotFound, "{} of {} blocks came back from the cold store; is memory or the disk full?",
                   n_recalled, blocks.size());
    }
    return ms;
  }

  [[nodiscard]] std::vector<std::vector<std::byte>> read(std::span<const BlockIndex> blocks) const {
    std::vector<std::vector<std::byte>> bytes;
    for (const BlockIndex block : blocks) bytes.push_back(engine_->read_block(*session_, block));
    return bytes;
  }

  // The first round is not counted: it pays for pages, and shows that what comes back is what left.
  Status check_bytes(std::span<const BlockIndex> blocks) {
    const auto before = read(blocks);
    evict_blocks(*session_, blocks);
    EBB_RETURN_IF_ERROR(recall(*session_, blocks).status());
    if (read(blocks) == before) return {};
    return error(Code::kDamaged, "recalled blocks are not what was evicted (K and V in {}); please report this",
                 row_type_name(type_));
  }

  Status measure_saves(std::span<const BlockIndex> blocks, Times& times) {
    drop(blocks);
    sweep();
    Stopwatch watch;
    EBB_RETURN_IF_ERROR(session_->save());
    of(times, SpliceMove::kSaveEager).push_back(watch.elapsed_ms());
    drop(blocks);
    sweep();
    watch.restart();
    session_->save_behind();
    of(times, SpliceMove::kSaveBehind).push_back(watch.elapsed_ms());
    for (const BlockIndex block : blocks) engine_->store()->wait(session_->exact_name(block));
    of(times, SpliceMove::kSaveKept).push_back(watch.elapsed_ms());
    return {};
  }

  // At the tail of a session that goes on from this one's image, so that every round turns by the same difference.
  Result<double> recall_moved(std::span<const BlockIndex> blocks) {
    EBB_ASSIGN_OR_RETURN(const auto other,
                         engine_->restore_session({.recall_place = RecallPlace::kTail}, session_->image()));
    EBB_ASSIGN_OR_RETURN(const double ms, recall(*other, blocks));
    const std::int64_t n_moved = other->stats().n_moved_blocks - session_->stats().n_moved_blocks;
    if (n_moved != std::ssize(blocks)) {
      return error(Code::kUnsupported, "{} of {} blocks were moved to the tail", n_moved, blocks.size());
    }
    return ms;
  }

  Status measure_ram(std::int32_t span, Times& times) {
    const std::int32_t n_blocks = whole_blocks(span, options_.block_size);
    const auto blocks = span_blocks(n_blocks);
    EBB_RETURN_IF_ERROR(compute_span(n_blocks));
    EBB_RETURN_IF_ERROR(check_bytes(blocks));
    for (std::int32_t round = 0; round <= options_.n_rounds; ++round) {
      say(span, "saving and recalling");
      Times once;
      EBB_RETURN_IF_ERROR(measure_saves(blocks, once));
      evict_blocks(*session_, blocks);
      const double copy_gb_s = probe_.measure().copy_gb_s;
      EBB_ASSIGN_OR_RETURN(const double ms, recall(*session_, blocks));
      of(once, SpliceMove::kRecallRam).push_back(ms);
      of(once, SpliceMove::kSaveAndRecall).push_back(of(once, SpliceMove::kSaveEager).front() + ms);
      of(once, SpliceMove::kBehindAndRecall).push_back(of(once, SpliceMove::kSaveBehind).front() + ms);
      evict_blocks(*session_, blocks);
      EBB_ASSIGN_OR_RETURN(const double moved_ms, recall_moved(blocks));
      of(once, SpliceMove::kRecallRamMoved).push_back(moved_ms);
      EBB_RETURN_IF_ERROR(recall(*session_, blocks).status());
      if (round == 0) continue;
      times.ram_copy_gb_s.push_back(copy_gb_s);
      for (std::size_t i = 0; i < kSpliceMoves; ++i)
        times.ms[i].insert(times.ms[i].end(), once.ms[i].begin(), once.ms[i].end());
    }
    for (std::int32_t round = 0; round < options_.n_prefills; ++round) {
      say(span, "computing again");
      EBB_RETURN_IF_ERROR(compute_span(n_blocks));
      of(times, SpliceMove::kPrefill).push_back(last_pass_ms_);
    }
    return {};
  }

  Status measure_disk(std::int32_t span, Times& times) {
    const std::int32_t n_blocks = whole_blocks(span, options_.block_size);
    const auto blocks = span_blocks(n_blocks);
    say(span, "computing what goes to disk");
    EBB_RETURN_IF_ERROR(compute_span(n_blocks));
    EBB_RETURN_IF_ERROR(check_bytes(blocks));
    for (std::int32_t round = 0; round < options_.n_rounds; ++round) {
      say(span, "recalling from disk");
      evict_blocks(*session_, blocks);
      times.disk_copy_gb_s.push_back(probe_.measure().copy_gb_s);
      EBB_ASSIGN_OR_RETURN(const double ms, recall(*session_, blocks));
      of(times, SpliceMove::kRecallDisk).push_back(ms);
    }
    return {};
  }

  // Milliseconds of decoding behind the context.
  Result<double> decode(Session& session, std::span<const Token> tokens) {
    cut_session(session, Position(n_context_));
    EBB_ASSIGN_OR_RETURN(const double ms, decode_tokens(*engine_, session, tokens));
    EBB_RETURN_IF_ERROR(engine_->store()->flush());
    return ms;
  }

  Result<DecodeStall> measure_stall() {
    on_step(fmt::format("{}: decoding {} tokens", row_type_name(type_), options_.n_decode));
    cut_session(*session_, Position(n_context_));
    EBB_ASSIGN_OR_RETURN(const auto plain, engine_->new_session({.remains = Remains::kNothing, .adopts = false}));
    EBB_RETURN_IF_ERROR(compute_tokens(*engine_, *plain, random_tokens(n_context_, 0)));
    for (Session* session : {session_.get(), plain.get()}) {
      EBB_RETURN_IF_ERROR(decode(*session, random_tokens(kWarmTokens, 2)).status());
    }
    std::vector<double> saving_ms;
    std::vector<double> plain_ms;
    for (std::int32_t round = 0; round < options_.n_decode_rounds; ++round) {
      // Other tokens each time: what is saved already is not saved again.
      const auto tokens = random_tokens(options_.n_decode, static_cast<std::uint32_t>(3 + round));
      const bool saving_begins = round % 2 == 0;
      for (const bool saving : {saving_begins, !saving_begins}) {
        on_step(fmt::format("{}: decoding {} tokens", row_type_name(type_), options_.n_decode));
        EBB_ASSIGN_OR_RETURN(const double ms, decode(saving ? *session_ : *plain, tokens));
        (saving ? saving_ms : plain_ms).push_back(ms);
      }
    }
    std::vector<double> slowdowns = paired_ratios(saving_ms, plain_ms);
    for (double& slowdown : slowdowns) slowdown -= 1.0;
    const auto speeds = [&](std::span<const double> times) {
      std::vector<double> per_s;
      for (const double ms : times) per_s.push_back(1000.0 * options_.n_decode / ms);
      return spread_of(per_s);
    };
    return DecodeStall{.n_tokens = options_.n_decode,
                       .saving_tokens_per_s = speeds(saving_ms),
                       .plain_tokens_per_s = speeds(plain_ms),
                       .slowdown = spread_of(slowdowns)};
  }

  [[nodiscard]] SpliceLine line_of(std::int32_t span, Times& times) const {
    const std::int32_t n_blocks = whole_blocks(span, options_.block_size);
    SpliceLine line{.n_asked = span,
                    .n_tokens = n_blocks * options_.block_size,
                    .n_blocks = n_blocks,
                    .n_bytes = block_bytes_ * static_cast<std::size_t>(n_blocks)};
    const double prefill_ms = median(of(times, SpliceMove::kPrefill));
    for (std::size_t i = 0; i < kSpliceMoves; ++i) {
      const auto move = static_cast<SpliceMove>(i);
      SpliceFigure figure{.ms = spread_of(times.ms[i])};
      figure.prefill_ratio = prefill_ms / figure.ms.median;
      const bool moves_bytes = move != SpliceMove::kSaveBehind && move != SpliceMove::kSaveAndRecall &&
                               move != SpliceMove::kBehindAndRecall && move != SpliceMove::kPrefill;
      if (moves_bytes) {
        std::vector<double> gb_per_s;
        for (const double ms : times.ms[i]) gb_per_s.push_back(static_cast<double>(line.n_bytes) / ms / 1e6);
        figure.gb_per_s = median(gb_per_s);
        figure.copy_share =
            peak_share(gb_per_s, move == SpliceMove::kRecallDisk ? times.disk_copy_gb_s : times.ram_copy_gb_s);
      }
      line.figures.push_back(figure);
    }
    return line;
  }

  void say(std::int32_t span, std::string_view what) const {
    on_step(fmt::format("{}: {} {} tokens", row_type_name(type_), what, span));
  }

  const SpliceOptions& options_;
  PeakProbe& probe_;
  CacheSweep& sweep_;
  std::int32_t n_context_ = 0;
  RowType type_ = RowType::kF16;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;
  std::size_t block_bytes_ = 0;
  double last_pass_ms_ = 0.0;
};

void add_beaten(const KvSplice& kv, PeakBeaten& beaten) {
  for (const SpliceLine& line : kv.lines) {
    for (const SpliceFigure& figure : line.figures) {
      if (figure.copy_share) beaten.add(*figure.copy_share);
    }
  }
}

std::int64_t n_steps(const SpliceOptions& options) {
  const std::int64_t per_span = 2 * options.n_rounds + 2 + options.n_prefills;
  const std::int64_t decode = options.n_decode > 0 ? 1 + 2 * options.n_decode_rounds : 0;
  return std::ssize(options.kv_types) * (2 + per_span * std::ssize(options.spans) + decode);
}

}  // namespace

Result<SpliceReport> run_splice(const SpliceOptions& given) {
  EBB_RETURN_IF_ERROR(check(given));
  SpliceOptions options = given;
  std::ranges::sort(options.spans);
  const auto repeated = std::ranges::unique(options.spans);
  options.spans.erase(repeated.begin(), repeated.end());
  if (options.n_threads == 0) options.n_threads = default_threads();
  if (options.cache_folder.empty()) options.cache_folder = default_cache_folder();
  if (options.disk_folder.empty()) options.disk_folder = options.cache_folder;

  EBB_ASSIGN_OR_RETURN(const auto model, given_or_speed_model(options.model, options.cache_folder,
                                                              {.quant = options.quant}, options.progress));
  SpliceReport report{.machine = read_machine(),
                      .model = model.stem().string(),
                      .n_threads = options.n_threads,
                      .n_context = whole_blocks(options.n_context, options.block_size) * options.block_size,
                      .block_size = options.block_size};
  options.progress("trying ways to read and copy memory", 0.0);
  EBB_ASSIGN_OR_RETURN(PeakProbe probe, PeakProbe::open(options.n_threads, options.peak_sizes));
  probe.choose(options.peak_sizes.least);
  EBB_ASSIGN_OR_RETURN(CacheSweep sweep, CacheSweep::open());
  KvBench bench(options, probe, sweep);
  std::int64_t n_done = 0;
  bench.on_step = [&](std::string_view what) {
    options.progress(what, static_cast<double>(n_done++) / static_cast<double>(n_steps(options)));
  };
  for (const RowType type : options.kv_types) {
    EBB_ASSIGN_OR_RETURN(KvSplice kv, bench.run(model, type));
    add_beaten(kv, report.beaten);
    report.kv_types.push_back(std::move(kv));
  }
  report.peak = probe.peak();
  options.progress("done", 1.0);
  return report;
}

}  // namespace ebb
