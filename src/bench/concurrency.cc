#include "bench/concurrency.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "bench/duel.h"
#include "bench/ebb_subject.h"
#include "bench/llama_peer.h"
#include "bench/session_steps.h"
#include "device/backend.h"

namespace ebb {
namespace {

constexpr std::uint32_t kSystemSeed = 1;
constexpr std::uint32_t kOwnSeed = 100;
constexpr std::uint32_t kDecodeSeed = 1000;

Result<ConcurrencyOptions> checked(ConcurrencyOptions options) {
  if (options.counts.empty() || std::ranges::min(options.counts) < 1 || std::ranges::max(options.counts) > 64) {
    return error(Code::kInvalidArgument, "numbers of sessions must be one or more, each 1 to 64");
  }
  if (options.n_rounds < 1 || options.n_system < 1 || options.n_own < 1 || options.n_decode < 1) {
    return error(Code::kInvalidArgument, "{} rounds, {} system tokens, {} own, {} decoded: each must be at least 1",
                 options.n_rounds, options.n_system, options.n_own, options.n_decode);
  }
  options.counts.push_back(1);
  std::ranges::sort(options.counts);
  const auto repeated = std::ranges::unique(options.counts);
  options.counts.erase(repeated.begin(), repeated.end());
  if (options.n_threads == 0) options.n_threads = default_threads();
  return options;
}

class ConcurrencyBench {
 public:
  ConcurrencyBench(const ConcurrencyOptions& options, PeakProbe& probe, ConcurrencyReport& report)
      : options_(options), probe_(probe), report_(report), depth_(options.n_system + options.n_own) {}

  Status run() {
    EBB_RETURN_IF_ERROR(open_ebb());
    EBB_RETURN_IF_ERROR(open_llama(ConcurrencySide::kSplit));
    EBB_RETURN_IF_ERROR(open_llama(ConcurrencySide::kUnified));
    for (const std::int32_t n_sessions : options_.counts) report_.lines.push_back({.n_sessions = n_sessions});
    times_.resize(options_.counts.size());
    peak_gb_s_.resize(options_.counts.size());
    options_.progress("trying ways to read memory", 0.0);
    probe_.choose(static_cast<std::size_t>(step_bytes(n_most())));
    // A first round, which pays for page faults and graphs, is not counted.
    for (std::int32_t round = 0; round <= options_.n_rounds; ++round) EBB_RETURN_IF_ERROR(measure_all(round));
    for (std::size_t i = 0; i < times_.size(); ++i) fill(report_.lines[i], times_[i], peak_gb_s_[i]);
    return {};
  }

 private:
  using Times = std::array<std::vector<double>, kConcurrencySides>;

  [[nodiscard]] std::vector<Token> own_tokens(std::int32_t session) const {
    return make_random_tokens(n_vocab_, options_.n_own, kOwnSeed + static_cast<std::uint32_t>(session));
  }
  [[nodiscard]] std::int32_t n_most() const { return options_.counts.back(); }

  Status open_ebb() {
    options_.progress("loading", 0.0);
    const std::int32_t n_blocks = std::max(kMinSessionBlocks, (depth_ + options_.n_decode) / options_.block_size + 2);
    EBB_ASSIGN_OR_RETURN(engine_, Engine::open({.model = options_.model,
                                                .n_threads = options_.n_threads,
                                                .kv_type = options_.kv_type,
                                                .block_size = options_.block_size,
                                                .kv_budget_tokens = n_most() * n_blocks * options_.block_size,
                                                .n_open_blocks = n_most(),
                                                .policy = options_.policy}));
    const ModelTraffic traffic = traffic_of(engine_->model(), engine_->layout());
    report_.weight_bytes = traffic.weight_bytes;
    report_.kv_bytes_per_token = traffic.kv_bytes_per_token;
    report_.setups[0] =
        fmt::format("ebb, {} KV, blocks of {}, policy {}, sessions on one engine, steps of one row for each",
                    row_type_name(options_.kv_type), options_.block_size, options_.policy);
    n_vocab_ = engine_->vocabulary().n_tokens();
    const std::vector<Token> system = make_random_tokens(n_vocab_, options_.n_system, kSystemSeed);
    for (std::int32_t i = 0; i < n_most(); ++i) {
      EBB_ASSIGN_OR_RETURN(auto session,
                           engine_->new_session({.budget_tokens = n_blocks * options_.block_size, .rebases = false}));
      std::vector<Token> tokens = system;
      for (const Token token : own_tokens(i)) tokens.push_back(token);
      EBB_RETURN_IF_ERROR(compute_tokens(*engine_, *session, tokens));
      report_.n_seen_blocks += session->n_hot_blocks();
      sessions_.push_back(std::move(session));
    }
    report_.n_pool_blocks = engine_->pool().n_hot() / engine_->shape().frames_per_block();
    return {};
  }

  Status open_llama(ConcurrencySide side) {
    const bool unified = side == ConcurrencySide::kUnified;
    EBB_ASSIGN_OR_RETURN(auto peer, LlamaPeer::load(options_.model, {.n_threads = options_.n_threads,
                                                                     .n_ctx = depth_ + options_.n_decode,
                                                                     .n_sequences = n_most(),
                                                                     .unified_kv = unified,
                                                                     .kv_type = options_.kv_type}));
    EBB_RETURN_IF_ERROR(peer->append(make_random_tokens(n_vocab_, options_.n_system, kSystemSeed)));
    EBB_RETURN_IF_ERROR(peer->copy_to_all(options_.n_system));
    for (std::int32_t i = 0; i < n_most(); ++i) EBB_RETURN_IF_ERROR(peer->append_to(i, own_tokens(i)));
    report_.setups[static_cast<std::size_t>(side)] =
        fmt::format("{}, {}", peer->description(), unified ? "one KV buffer for all" : "a KV buffer for each sequence");
    (unified ? unified_ : split_) = std::move(peer);
    return {};
  }

  // Up in one round, down in the next, so that no number of sessions always comes first.
  Status measure_all(std::int32_t round) {
    for (std::size_t i = 0; i < options_.counts.size(); ++i) {
      EBB_RETURN_IF_ERROR(measure(round % 2 == 0 ? i : options_.counts.size() - 1 - i, round));
    }
    return {};
  }

  Status measure(std::size_t line, std::int32_t round) {
    const std::int32_t n_sessions = options_.counts[line];
    std::vector<std::vector<Token>> tokens;
    for (std::int32_t i = 0; i < n_sessions; ++i) {
      const auto seed = kDecodeSeed + static_cast<std::uint32_t>(round * n_most() + i);
      tokens.push_back(make_random_tokens(n_vocab_, options_.n_decode, seed));
    }
    for (std::size_t s = 0; s < kConcurrencySides; ++s) {
      // Between the sides, so that it is near to each.
      if (s == 1 && round > 0) {
        peak_gb_s_[line].push_back(probe_.measure(static_cast<std::size_t>(step_bytes(n_sessions))).read_gb_s);
      }
      const std::size_t side = (s + static_cast<std::size_t>(round)) % kConcurrencySides;
      EBB_ASSIGN_OR_RETURN(const double ms, time_one(static_cast<ConcurrencySide>(side), tokens));
      if (round > 0) times_[line][side].push_back(ms);
    }
    double& most = report_.lines[line].logits_difference;
    most = std::max(most, compare(n_sessions));
    EBB_RETURN_IF_ERROR(roll_back(n_sessions));
    ++n_done_;
    options_.progress(
        fmt::format("{} sessions", n_sessions),
        static_cast<double>(n_done_) / static_cast<double>(std::ssize(options_.counts) * (options_.n_rounds + 1)));
    return {};
  }

  Result<double> time_one(ConcurrencySide side, std::span<const std::vector<Token>> tokens) {
    if (side == ConcurrencySide::kEbb) {
      std::vector<Session*> sessions;
      for (std::size_t i = 0; i < tokens.size(); ++i) sessions.push_back(sessions_[i].get());
      return decode_together(*engine_, sessions, tokens);
    }
    LlamaPeer& peer = side == ConcurrencySide::kSplit ? *split_ : *unified_;
    const Stopwatch watch;
    for (std::size_t i = 0; i < tokens[0].size(); ++i) {
      std::vector<Token> step;
      for (const std::vector<Token>& of_one : tokens) step.push_back(of_one[i]);
      EBB_RETURN_IF_ERROR(peer.decode_together(step));
      // libllama waits here for what it may still be computing.
      EBB_CHECK(!peer.logits_of(0).empty(), "no logits");
    }
    return watch.elapsed_ms();
  }

  [[nodiscard]] double compare(std::int32_t n_sessions) const {
    double most = 0.0;
    for (std::int32_t i = 0; i < n_sessions; ++i) {
      const auto ours = engine_->runner().logits(i).first(static_cast<std::size_t>(split_->n_vocab()));
      most = std::max(
          {most, logits_difference(ours, split_->logits_of(i)), logits_difference(ours, unified_->logits_of(i))});
    }
    return most;
  }

  Status roll_back(std::int32_t n_sessions) {
    for (std::int32_t i = 0; i < n_sessions; ++i) {
      cut_session(*sessions_[static_cast<std::size_t>(i)], Position(depth_));
    }
    EBB_RETURN_IF_ERROR(split_->truncate_all(depth_));
    return unified_->truncate_all(depth_);
  }

  // A step reads all weights once, and the K and V of each session, shared or not.
  [[nodiscard]] double step_bytes(std::int32_t n_sessions) const {
    return static_cast<double>(report_.weight_bytes) +
           report_.kv_bytes_per_token * n_sessions * (depth_ + (options_.n_decode + 1) / 2.0);
  }

  void fill(ConcurrencyLine& line, const Times& times, std::span<const double> peak_gb_s) {
    const double n_tokens = static_cast<double>(line.n_sessions) * options_.n_decode;
    for (std::size_t s = 0; s < kConcurrencySides; ++s) {
      std::vector<double> speeds;
      std::vector<double> gb_per_s;
      for (const double ms : times[s]) {
        speeds.push_back(1000.0 * n_tokens / ms);
        gb_per_s.push_back(options_.n_decode * step_bytes(line.n_sessions) / ms / 1e6);
      }
      std::vector<double> of_one;
      for (const double ms : times_.front()[s]) of_one.push_back(1000.0 * options_.n_decode / ms);
      ConcurrencyFigure& figure = line.sides[s];
      figure.tokens_per_s = spread_of(speeds);
      figure.speedup = spread_of(paired_ratios(speeds, of_one));
      figure.gb_per_s = median(gb_per_s);
      figure.read_share = peak_share(gb_per_s, peak_gb_s);
      if (figure.read_share) report_.beaten.add(*figure.read_share);
    }
    const bool split_is_faster = line.sides[1].tokens_per_s.median > line.sides[2].tokens_per_s.median;
    line.ratio = spread_of(paired_ratios(times[split_is_faster ? 1 : 2], times[0]));
  }

  const ConcurrencyOptions& options_;
  PeakProbe& probe_;
  ConcurrencyReport& report_;
  std::int32_t depth_;
  std::int32_t n_vocab_ = 0;
  std::int64_t n_done_ = 0;
  std::vector<Times> times_;  // of each number of sessions
  std::vector<std::vector<double>> peak_gb_s_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::unique_ptr<Session>> sessions_;  // they die before their engine
  std::unique_ptr<LlamaPeer> split_;
  std::unique_ptr<LlamaPeer> unified_;
};

}  // namespace

Result<ConcurrencyReport> run_concurrency(const ConcurrencyOptions& given) {
  EBB_ASSIGN_OR_RETURN(const ConcurrencyOptions options, checked(given));
  ConcurrencyReport report{.machine = read_machine(),
                           .model = options.model.stem().string(),
                           .n_threads = options.n_threads,
                           .n_system = options.n_system,
                           .n_own = options.n_own,
                           .n_decode = options.n_decode};
  EBB_ASSIGN_OR_RETURN(PeakProbe probe, PeakProbe::open(options.n_threads, options.peak_sizes));
  EBB_RETURN_IF_ERROR(ConcurrencyBench(options, probe, report).run());
  report.peak = probe.peak();
  return report;
}

}  // namespace ebb
