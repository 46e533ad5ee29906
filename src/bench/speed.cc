#include "bench/speed.h"

#include <algorithm>
#include <utility>

#include <unistd.h>

#include "bench/busy_cores.h"
#include "bench/duel.h"
#include "bench/ebb_subject.h"
#include "bench/llama_peer.h"
#include "bench/peer_bench.h"
#include "bench/speed_model.h"
#include "device/backend.h"

namespace ebb {
namespace {

// Counts the pieces of work of the whole run, for its progress bar.
struct Steps {
  std::int64_t n_done = 0;
  std::int64_t n_all = 1;
};

using Peers = std::vector<PeerBench>;

std::int64_t n_steps(const SpeedOptions& options, const Peers& peers) {
  std::int64_t n_peers = 0;
  for (const std::int32_t depth : options.depths) {
    for (const PeerBench& peer : peers) {
      n_peers +=
          int{peer.can({.is_prompt = true, .depth = depth})} + int{peer.can({.is_prompt = false, .depth = depth})};
    }
  }
  const std::int64_t n_fills = (options.depths.back() + options.n_prompt - 1) / options.n_prompt;
  const std::int64_t n_rounds = std::int64_t{2} * std::ssize(options.depths) * (options.n_rounds + 1);
  return 2 * (n_fills + n_rounds) + n_peers * options.n_rounds;
}

Status check(const SpeedOptions& options) {
  if (options.n_rounds < 1 || options.n_prompt < 1 || options.n_decode < 1 || options.n_busy < 0) {
    return error(Code::kInvalidArgument,
                 "{} rounds, {} prompt tokens, {} decoded tokens: each must be at least 1; {} busy cores: at least 0",
                 options.n_rounds, options.n_prompt, options.n_decode, options.n_busy);
  }
  if (options.depths.empty() || std::ranges::min(options.depths) < 0) {
    return error(Code::kInvalidArgument, "depths must be one or more numbers of resident tokens, each at least 0");
  }
  if (!options.model.empty()) return {};
  if (options.quants.empty() || options.shapes.empty()) {
    return error(Code::kInvalidArgument, "no model, and no quantisation or no shape to write one in; there are {}; {}",
                 speed_quant_names(), speed_shape_names());
  }
  // Before minutes go into the first ones.
  for (const std::string& shape : options.shapes) {
    for (const std::string& quant : options.quants) {
      EBB_RETURN_IF_ERROR(speed_model_spec({.quant = quant, .shape = shape}).status());
    }
  }
  return {};
}

// The bytes and operations that a pass over n_rows tokens behind `depth` resident ones cannot do without.
struct PassCost {
  double n_bytes = 0.0;
  double n_flop = 0.0;
};

PassCost pass_cost(const ModelTraffic& traffic, double depth, double n_rows) {
  const double keys_per_row = depth + (n_rows + 1.0) / 2.0;
  return {.n_bytes = static_cast<double>(traffic.weight_bytes) + traffic.kv_bytes_per_token * (depth + n_rows),
          .n_flop = 2.0 * (static_cast<double>(traffic.n_layer_weights) * n_rows +
                           static_cast<double>(traffic.n_output_weights)) +
                    traffic.attention_flop * keys_per_row * n_rows};
}

// What the probes of a line's rounds gave.
struct RoundPeaks {
  std::vector<double> read_gb_s;
  std::vector<double> multiply_gop_s;
};

SpeedSide side_of(std::span<const double> times_ms, std::int32_t n_tokens, const PassCost& cost, double n_passes,
                  const RoundPeaks& peaks) {
  std::vector<double> speeds;
  std::vector<double> gb_per_s;
  std::vector<double> gflop_per_s;
  for (const double ms : times_ms) {
    speeds.push_back(1000.0 * n_tokens / ms);
    gb_per_s.push_back(n_passes * cost.n_bytes / ms / 1e6);
    gflop_per_s.push_back(n_passes * cost.n_flop / ms / 1e6);
  }
  return {.tokens_per_s = spread_of(speeds),
          .gb_per_s = median(gb_per_s),
          .gflop_per_s = median(gflop_per_s),
          .read_share = peak_share(gb_per_s, peaks.read_gb_s),
          .multiply_share = peak_share(gflop_per_s, peaks.multiply_gop_s)};
}

// Floats of 16 bits may be multiplied as they are, or as the wider ones they become.
double multiply_limit(const PeakMoment& moment, MultiplyType type) {
  const auto of = [&moment](MultiplyType one) { return moment.multiply_gop_s[static_cast<std::size_t>(one)]; };
  return type == MultiplyType::kBf16 ? std::max(of(type), of(MultiplyType::kF32)) : of(type);
}

// What one line measures.
struct Work {
  PeerAsk ask;
  PassCost cost;
  double n_passes = 1.0;
};

struct Rounds {
  PairedTimes times;
  RoundPeaks peaks;
  std::vector<std::vector<double>> peer_ms;  // by peer; none where it cannot
};

// What is lent to the benches of all models.
struct SpeedTools {
  PeakProbe& probe;
  Peers& peers;
  BusyCores& busy;
};

// While it lives, the cores are busy.
class BusyWhile {
 public:
  explicit BusyWhile(BusyCores& busy) : busy_(busy) { busy_.resume(); }
  ~BusyWhile() { busy_.pause(); }
  BusyWhile(const BusyWhile&) = delete;
  BusyWhile& operator=(const BusyWhile&) = delete;

 private:
  BusyCores& busy_;
};

// The speed of one model; `steps` goes on counting across models.
class ModelBench {
 public:
  ModelBench(const SpeedOptions& options, const SpeedTools& tools, Steps& steps)
      : options_(options), probe_(tools.probe), peers_(tools.peers), busy_(tools.busy), steps_(steps) {}

  Result<ModelSpeed> run(const std::filesystem::path& path) {
    const std::int32_t n_ctx = options_.depths.back() + std::max(options_.n_prompt, options_.n_decode);
    path_ = path;
    name_ = path.stem().string();
    say("loading");
    EBB_ASSIGN_OR_RETURN(auto ebb, EbbSubject::load(path, {.n_threads = options_.n_threads,
                                                           .n_ctx = n_ctx,
                                                           .kv_type = options_.kv_type,
                                                           .block_size = options_.block_size,
                                                           .chunk = options_.n_prompt,
                                                           .use_repacked = options_.use_repacked}));
    EBB_ASSIGN_OR_RETURN(auto llama, LlamaPeer::load(path, {.n_threads = options_.n_threads,
                                                            .n_ctx = n_ctx,
                                                            .kv_type = options_.kv_type,
                                                            .n_ubatch = options_.n_prompt,
                                                            .use_repacked = options_.use_repacked}));
    traffic_ = ebb->traffic();
    ModelSpeed speed{.model = name_,
                     .n_parameters = traffic_.n_layer_weights + traffic_.n_output_weights,
                     .weight_bytes = traffic_.weight_bytes,
                     .kv_bytes_per_token = traffic_.kv_bytes_per_token,
                     .multiply_type = traffic_.multiply_type,
                     .ebb = ebb->description(),
                     .llama = llama->description()};
    say("trying ways to read memory");
    probe_.choose(static_cast<std::size_t>(pass_cost(traffic_, n_ctx, 0.0).n_bytes));
    Duel duel(*ebb, *llama, ebb->n_vocab());
    duel.on_step = [this] {
      ++steps_.n_done;
      say(doing_);
    };
    for (const std::int32_t depth : options_.depths) {
      doing_ = fmt::format("filling to {} tokens", depth);
      EBB_RETURN_IF_ERROR(duel.fill(depth, options_.n_prompt));
      EBB_ASSIGN_OR_RETURN(SpeedLine prompt, measure(duel, "prompt", depth));
      speed.lines.push_back(std::move(prompt));
      EBB_ASSIGN_OR_RETURN(SpeedLine decode, measure(duel, "decode", depth));
      speed.lines.push_back(std::move(decode));
    }
    for (const PeerBench& peer : peers_) speed.peers.push_back({peer.name(), peer.program().string(), peer.build()});
    return speed;
  }

 private:
  [[nodiscard]] Work work_of(const std::string& test, std::int32_t depth) const {
    const bool is_prompt = test == "prompt";
    const std::int32_t n_tokens = is_prompt ? options_.n_prompt : options_.n_decode;
    // A decoding round is n passes of one row, on average behind half of the round's tokens too.
    return {.ask = {.model = path_,
                    .is_prompt = is_prompt,
                    .n_tokens = n_tokens,
                    .depth = depth,
                    .n_threads = options_.n_threads,
                    .n_ubatch = options_.n_prompt,
                    .kv_type = std::string(row_type_name(options_.kv_type))},
            .cost = is_prompt ? pass_cost(traffic_, depth, n_tokens)
                              : pass_cost(traffic_, depth + (n_tokens - 1) / 2.0, 1.0),
            .n_passes = is_prompt ? 1.0 : n_tokens};
  }

  Result<SpeedLine> measure(Duel& duel, const std::string& test, std::int32_t depth) {
    const Work work = work_of(test, depth);
    const std::int32_t n_tokens = work.ask.n_tokens;
    doing_ = fmt::format("{} of {} behind {} tokens", test, n_tokens, depth);
    Rounds rounds{.peer_ms = std::vector<std::vector<double>>(peers_.size())};
    duel.amid_round = [&] {
      const PeakMoment moment = probe_.measure(static_cast<std::size_t>(work.cost.n_bytes));
      rounds.peaks.read_gb_s.push_back(moment.read_gb_s);
      rounds.peaks.multiply_gop_s.push_back(multiply_limit(moment, traffic_.multiply_type));
    };
    duel.beside_round = [&] { return measure_peers(work.ask, rounds.peer_ms); };
    const BusyWhile busy(busy_);
    EBB_ASSIGN_OR_RETURN(rounds.times, work.ask.is_prompt ? duel.time_prompt(n_tokens, options_.n_rounds)
                                                          : duel.time_decode(n_tokens, options_.n_rounds));
    SpeedLine line = line_of(work, rounds);
    line.test = test;
    line.logits_difference = duel.last_difference();
    return line;
  }

  [[nodiscard]] SpeedLine line_of(const Work& work, const Rounds& rounds) const {
    const auto side = [&](std::span<const double> ms) {
      return side_of(ms, work.ask.n_tokens, work.cost, work.n_passes, rounds.peaks);
    };
    const PairedTimes& times = rounds.times;
    SpeedLine line{.n_tokens = work.ask.n_tokens,
                   .depth = work.ask.depth,
                   .ebb = side(times.a_ms),
                   .llama = side(times.b_ms),
                   .ratio = spread_of(paired_ratios(times.b_ms, times.a_ms)),
                   .best_peer = "libllama"};
    std::span<const double> best_ms = times.b_ms;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const std::span<const double> ms = rounds.peer_ms[i];
      line.peers.push_back(ms.empty() ? std::nullopt : std::optional(side(ms)));
      if (ms.empty() || median(ms) >= median(best_ms)) continue;
      best_ms = ms;
      line.best_peer = peers_[i].name();
    }
    line.best_ratio = spread_of(paired_ratios(best_ms, times.a_ms));
    return line;
  }

  // One measurement of each peer that can, the last first every other time.
  Status measure_peers(const PeerAsk& ask, std::vector<std::vector<double>>& peer_ms) {
    ++n_peer_rounds_;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const std::size_t at = n_peer_rounds_ % 2 == 0 ? i : peers_.size() - 1 - i;
      if (!peers_[at].can(ask)) continue;
      EBB_ASSIGN_OR_RETURN(const double tokens_per_s, peers_[at].measure(ask));
      peer_ms[at].push_back(1000.0 * ask.n_tokens / tokens_per_s);
      ++steps_.n_done;
      say(fmt::format("{}: {}", peers_[at].name(), doing_));
    }
    return {};
  }

  void say(std::string_view what) const {
    options_.progress(fmt::format("{}: {}", name_, what),
                      static_cast<double>(steps_.n_done) / static_cast<double>(steps_.n_all));
  }

  const SpeedOptions& options_;
  PeakProbe& probe_;
  Peers& peers_;
  BusyCores& busy_;
  Steps& steps_;
  std::filesystem::path path_;
  std::string name_;
  std::int32_t n_peer_rounds_ = 0;
  std::string doing_;
  ModelTraffic traffic_;
};

void add_beaten(const ModelSpeed& speed, PeakBeaten& beaten) {
  for (const SpeedLine& line : speed.lines) {
    std::vector<const SpeedSide*> sides = {&line.ebb, &line.llama};
    for (const auto& peer : line.peers) {
      if (peer) sides.push_back(&*peer);
    }
    for (const SpeedSide* side : sides) {
      // Prompts are bound by what they multiply, decoding by what it reads.
      const std::optional<PeakShare>& share = line.test == "prompt" ? side->multiply_share : side->read_share;
      if (share) beaten.add(*share);
    }
  }
}

// Where peers print to; gone with it.
class PeerFolder {
 public:
  PeerFolder() : path_(std::filesystem::temp_directory_path() / fmt::format("ebb-bench-speed-{}", getpid())) {
    std::filesystem::create_directories(path_, ignored_);
  }
  ~PeerFolder() { std::filesystem::remove_all(path_, ignored_); }
  PeerFolder(const PeerFolder&) = delete;
  PeerFolder& operator=(const PeerFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::error_code ignored_;
  std::filesystem::path path_;
};

Result<Peers> open_peers(const SpeedOptions& options, const PeerFolder& folder) {
  Peers peers;
  for (const std::string& given : options.peer_benches) {
    EBB_ASSIGN_OR_RETURN(PeerBench peer, PeerBench::open(given, folder.path()));
    peers.push_back(std::move(peer));
  }
  make_names_differ(peers);
  return peers;
}

Result<std::vector<std::filesystem::path>> models_to_measure(const SpeedOptions& options) {
  std::vector<std::filesystem::path> paths;
  std::vector<SpeedModelKind> kinds;
  for (const std::string& shape : options.shapes) {
    for (const std::string& quant : options.quants) kinds.push_back({.quant = quant, .shape = shape});
  }
  if (!options.model.empty()) kinds.resize(1);
  for (const SpeedModelKind& kind : kinds) {
    EBB_ASSIGN_OR_RETURN(paths.emplace_back(),
                         given_or_speed_model(options.model, options.cache_folder, kind, options.progress));
  }
  return paths;
}

}  // namespace

Result<SpeedReport> run_speed(const SpeedOptions& given) {
  EBB_RETURN_IF_ERROR(check(given));
  SpeedOptions options = given;
  std::ranges::sort(options.depths);
  const auto repeated = std::ranges::unique(options.depths);
  options.depths.erase(repeated.begin(), repeated.end());
  if (options.n_threads == 0) options.n_threads = default_threads();
  if (options.cache_folder.empty()) options.cache_folder = default_cache_folder();

  // First, since they are forks of this process, which is still small.
  EBB_ASSIGN_OR_RETURN(BusyCores busy, BusyCores::start(options.n_busy));
  const PeerFolder folder;
  EBB_ASSIGN_OR_RETURN(Peers peers, open_peers(options, folder));
  EBB_ASSIGN_OR_RETURN(const auto paths, models_to_measure(options));
  SpeedReport report{.machine = read_machine(), .n_threads = options.n_threads, .n_busy = options.n_busy};
  EBB_ASSIGN_OR_RETURN(PeakProbe probe, PeakProbe::open(options.n_threads, options.peak_sizes));
  Steps steps{.n_all = n_steps(options, peers) * std::ssize(paths)};
  for (const auto& path : paths) {
    EBB_ASSIGN_OR_RETURN(ModelSpeed speed,
                         ModelBench(options, {.probe = probe, .peers = peers, .busy = busy}, steps).run(path));
    add_beaten(speed, report.beaten);
    report.models.push_back(std::move(speed));
  }
  report.peak = probe.peak();
  return report;
}

}  // namespace ebb
