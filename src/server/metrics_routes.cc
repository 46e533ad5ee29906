// GET /metrics: what the server counts, as Prometheus reads it. Counters never fall while the server lives.
#include <array>

#include "engine/meaning_thread.h"
#include "server/api_state.h"

namespace ebb {
namespace {

std::string metric_head(const char* kind, std::string_view name, const char* help) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, kind);
}

void add_metric(std::string& text, const char* kind, const std::string& name, const char* help, double value) {
  text += metric_head(kind, name, help) + fmt::format("{} {}\n", name, value);
}

struct SchedulerMetric {
  const char* kind;
  const char* name;
  const char* help;
  double (*value)(const SchedulerStats&);
};

using Stats = SchedulerStats;

double per_second(std::int64_t n, double ms) { return ms > 0.0 ? static_cast<double>(n) * 1000.0 / ms : 0.0; }

// Under llama.cpp's names and with its prefix too, so that dashboards made for it work.
constexpr std::array kSharedMetrics = {
    SchedulerMetric{"counter", "prompt_tokens_total", "Prompt tokens computed",
                    [](const Stats& s) { return double(s.n_computed_tokens); }},
    SchedulerMetric{"counter", "prompt_tokens_cached_total", "Prompt tokens seen without computing them",
                    [](const Stats& s) { return double(s.n_cached_tokens); }},
    SchedulerMetric{"counter", "prompt_seconds_total", "Time in prompts",
                    [](const Stats& s) { return s.prompt_ms / 1000.0; }},
    SchedulerMetric{"counter", "tokens_predicted_total", "Tokens generated",
                    [](const Stats& s) { return double(s.n_generated_tokens); }},
    SchedulerMetric{"counter", "tokens_predicted_seconds_total", "Time in generating",
                    [](const Stats& s) { return s.generated_ms / 1000.0; }},
    SchedulerMetric{"counter", "n_decode_total", "Steps of the engine",
                    [](const Stats& s) { return double(s.n_steps); }},
    SchedulerMetric{"counter", "n_tokens_max", "Most tokens that one session has had",
                    [](const Stats& s) { return double(s.n_most_tokens); }},
    SchedulerMetric{"gauge", "prompt_tokens_seconds", "Prompt tokens computed per second of it",
                    [](const Stats& s) { return per_second(s.n_computed_tokens, s.prompt_ms); }},
    SchedulerMetric{"gauge", "predicted_tokens_seconds", "Tokens generated per second of it",
                    [](const Stats& s) { return per_second(s.n_generated_tokens, s.generated_ms); }},
    SchedulerMetric{
        "gauge", "n_busy_slots_per_decode", "Requests computed together in a step, on average",
        [](const Stats& s) { return s.n_steps > 0 ? double(s.n_requests_in_steps) / double(s.n_steps) : 0.0; }},
    SchedulerMetric{"gauge", "requests_processing", "Requests at work",
                    [](const Stats& s) { return double(s.n_running); }},
    SchedulerMetric{"gauge", "requests_deferred", "Requests that wait",
                    [](const Stats& s) { return double(s.n_waiting); }},
};

constexpr std::array kOwnMetrics = {
    SchedulerMetric{"counter", "requests_total", "Requests ended", [](const Stats& s) { return double(s.n_requests); }},
    SchedulerMetric{"counter", "evicted_blocks_total", "Blocks that left the cache in turns that ended",
                    [](const Stats& s) { return double(s.n_evicted_blocks); }},
    SchedulerMetric{"counter", "recalled_blocks_total", "Blocks that came back from the cold store in such turns",
                    [](const Stats& s) { return double(s.n_recalled_blocks); }},
    SchedulerMetric{"counter", "missed_recalls_total", "Blocks that were saved once and no longer to be had",
                    [](const Stats& s) { return double(s.n_missed_recalls); }},
    SchedulerMetric{"counter", "instruction_hole_tokens_total",
                    "Tokens of system texts and tools that turns did without",
                    [](const Stats& s) { return double(s.n_instruction_holes); }},
    SchedulerMetric{"counter", "late_recalls_total", "Blocks that were asked back and stayed away for want of time",
                    [](const Stats& s) { return double(s.n_late_recalls); }},
    SchedulerMetric{"counter", "computed_again_tokens_total",
                    "Last tokens of prompts computed once more, with what their queries looked for in sight",
                    [](const Stats& s) { return double(s.n_computed_again); }},
    SchedulerMetric{"counter", "writing_looks_total", "Looks for blocks while replies were written",
                    [](const Stats& s) { return double(s.n_writing_looks); }},
    SchedulerMetric{"counter", "writing_looks_found_total", "Of these, those that found something that had left",
                    [](const Stats& s) { return double(s.n_writing_found); }},
    SchedulerMetric{"counter", "writing_looks_seconds_total", "Time in them",
                    [](const Stats& s) { return s.writing_looks_ms / 1000.0; }},
    SchedulerMetric{"counter", "recomputed_tokens_total", "Tokens of lost blocks computed again in turns that ended",
                    [](const Stats& s) { return double(s.from[Origin::kRecomputed]); }},
    SchedulerMetric{"counter", "hole_tokens_total", "Prompt tokens that turns did without, once for each turn",
                    [](const Stats& s) { return double(s.from[Origin::kHole]); }},
    SchedulerMetric{"gauge", "sessions", "Sessions known", [](const Stats& s) { return double(s.n_lanes); }},
    SchedulerMetric{"gauge", "kv_hot_tokens", "Tokens whose K and V are hot",
                    [](const Stats& s) { return double(s.n_hot_tokens); }},
    SchedulerMetric{"gauge", "kv_budget_tokens", "Tokens that may be hot",
                    [](const Stats& s) { return double(s.budget_tokens); }},
    SchedulerMetric{"gauge", "kv_in_force_tokens", "Tokens that may be hot, with what prompts under way have besides",
                    [](const Stats& s) { return double(s.in_force_tokens); }},
    SchedulerMetric{"gauge", "kept_sessions", "Sessions that are kept on disk",
                    [](const Stats& s) { return double(s.kept.n_images); }},
    SchedulerMetric{"gauge", "kept_session_bytes", "Bytes of their files",
                    [](const Stats& s) { return double(s.kept.bytes); }},
    SchedulerMetric{"gauge", "kept_sessions_waiting", "Images on their way to the disk",
                    [](const Stats& s) { return double(s.kept.n_waiting); }},
    SchedulerMetric{"counter", "kept_sessions_written_total", "Images of sessions that were written",
                    [](const Stats& s) { return double(s.kept.n_written); }},
    SchedulerMetric{"counter", "kept_sessions_failed_total", "Images that could not be written",
                    [](const Stats& s) { return double(s.kept.n_write_errors); }},
    SchedulerMetric{"counter", "kept_sessions_dropped_total", "Images that made room for others",
                    [](const Stats& s) { return double(s.kept.n_dropped); }},
    SchedulerMetric{"gauge", "kept_sessions_resumed", "Sessions taken up again at the start",
                    [](const Stats& s) { return double(s.kept.n_resumed); }},
    SchedulerMetric{"gauge", "kept_sessions_refused", "Images found damaged at the start",
                    [](const Stats& s) { return double(s.kept.n_refused); }},
    SchedulerMetric{"gauge", "kept_sessions_foreign", "Images of another model, layout or owner at the start",
                    [](const Stats& s) { return double(s.kept.n_foreign); }},
};

struct HttpMetric {
  const char* kind;
  const char* name;
  const char* help;
  std::uint64_t HttpCounters::*value;
};

constexpr std::array kHttpMetrics = {
    HttpMetric{"gauge", "ebb:http_connections", "Connections that are open", &HttpCounters::n_connections},
    HttpMetric{"counter", "ebb:http_accepted_total", "Connections accepted", &HttpCounters::n_accepted},
    HttpMetric{"counter", "ebb:http_turned_away_total", "Connections too many", &HttpCounters::n_turned_away},
    HttpMetric{"counter", "ebb:http_accept_failures_total", "Connections that waited for descriptors or memory",
               &HttpCounters::n_accept_failures},
    HttpMetric{"counter", "ebb:http_requests_total", "Requests read", &HttpCounters::n_requests},
    HttpMetric{"counter", "ebb:http_refused_total", "Requests malformed, too large or too slow",
               &HttpCounters::n_refused},
    HttpMetric{"counter", "ebb:http_left_total", "Clients that left before their answer was complete",
               &HttpCounters::n_left},
    HttpMetric{"counter", "ebb:http_too_slow_total", "Clients dropped for not reading", &HttpCounters::n_too_slow},
    HttpMetric{"counter", "ebb:http_failures_total", "Requests and connections ended by an error inside the server",
               &HttpCounters::n_failures},
    HttpMetric{"gauge", "ebb:http_body_bytes", "Bytes of bodies being read or answered", &HttpCounters::body_bytes},
};

struct MeaningMetric {
  const char* kind;
  const char* name;
  const char* help;
  double (*value)(const MeaningStats&);
};

constexpr std::array kMeaningMetrics = {
    MeaningMetric{"counter", "ebb:embedded_blocks_total", "Blocks whose sentences were embedded",
                  [](const MeaningStats& s) { return double(s.n_blocks); }},
    MeaningMetric{"counter", "ebb:embedded_texts_total", "Sentences that were embedded, of blocks and of messages",
                  [](const MeaningStats& s) { return double(s.n_texts); }},
    MeaningMetric{"counter", "ebb:embedded_seconds_total", "Time in the embedding model for them",
                  [](const MeaningStats& s) { return s.ms / 1000.0; }},
    MeaningMetric{"counter", "ebb:embeddings_read_total", "Blocks whose vectors came from the cold store",
                  [](const MeaningStats& s) { return double(s.n_read); }},
    MeaningMetric{"counter", "ebb:embeddings_without_room_total", "Blocks whose vectors found no room in memory",
                  [](const MeaningStats& s) { return double(s.n_without_room); }},
    MeaningMetric{"gauge", "ebb:embeddings_waiting", "Blocks whose sentences wait to be embedded",
                  [](const MeaningStats& s) { return double(s.n_waiting); }},
};

// Law 7: each token of a turn's prompt is in one of them.
std::string place_metrics(const SchedulerStats& stats) {
  constexpr const char* kName = "ebb:prompt_tokens_by_place_total";
  std::string text = metric_head("counter", kName, "Prompt tokens by where turns found them");
  for (const OriginName& name : kOriginNames) {
    text += fmt::format("{}{{place=\"{}\"}} {}\n", kName, name.name, stats.from[name.origin]);
  }
  return text;
}

struct LatencyMetric {
  const char* name;
  const char* help;
  Histogram Latencies::*histogram;
};

constexpr std::array kLatencyMetrics = {
    LatencyMetric{"ebb:queue_seconds", "Waiting in the queue, of requests that began", &Latencies::queue},
    LatencyMetric{"ebb:time_to_first_token_seconds", "From the queue to the first token", &Latencies::first_token},
    LatencyMetric{"ebb:time_per_output_token_seconds", "Between two tokens of a reply", &Latencies::next_token},
    LatencyMetric{"ebb:recall_seconds", "Bringing blocks back, of turns that brought back some", &Latencies::recall},
};

std::string latency_metrics(const Latencies& latencies) {
  std::string text;
  for (const LatencyMetric& metric : kLatencyMetrics) {
    const Histogram& histogram = latencies.*metric.histogram;
    text += metric_head("histogram", metric.name, metric.help);
    std::int64_t n_below = 0;
    for (std::size_t i = 0; i < histogram.bounds().size(); ++i) {
      n_below += histogram.n_in(i);
      text += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", metric.name, histogram.bounds()[i], n_below);
    }
    text += fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", metric.name, histogram.n(),
                        histogram.sum());
  }
  return text;
}

struct LookMetric {
  const char* name;
  const char* help;
  double (*value)(const LookSums&);
};

constexpr std::array kLookMetrics = {
    LookMetric{"ebb:recall_looks_total",
               "Looks before prompts and at their ends, and of those while replies are written what found something, "
               "by selector",
               [](const LookSums& sums) { return double(sums.n_looks); }},
    LookMetric{"ebb:recall_look_seconds_total", "Time in them", [](const LookSums& sums) { return sums.ms / 1000.0; }},
    LookMetric{"ebb:recall_chosen_blocks_total", "Blocks that a selector chose to come or to stay, also during replies",
               [](const LookSums& sums) { return double(sums.n_chosen); }},
    LookMetric{"ebb:recall_came_blocks_total", "Blocks that a selector told of and that came back then",
               [](const LookSums& sums) { return double(sums.n_came); }},
};

std::string look_metrics(const SchedulerStats& stats) {
  std::string text;
  for (const LookMetric& metric : kLookMetrics) {
    text += metric_head("counter", metric.name, metric.help);
    for (const auto& [selector, sums] : stats.looks) {
      text += fmt::format("{}{{selector=\"{}\"}} {}\n", metric.name, selector, metric.value(sums));
    }
  }
  return text;
}

}  // namespace

void answer_metrics(ApiState& state, const ApiCall& call) {
  const SchedulerStats stats = state.scheduler.stats();
  std::string text;
  for (const std::string prefix : {"ebb:", "llamacpp:"}) {
    for (const SchedulerMetric& metric : kSharedMetrics) {
      add_metric(text, metric.kind, prefix + metric.name, metric.help, metric.value(stats));
    }
  }
  for (const SchedulerMetric& metric : kOwnMetrics) {
    add_metric(text, metric.kind, std::string("ebb:") + metric.name, metric.help, metric.value(stats));
  }
  text += place_metrics(stats) + look_metrics(stats) + latency_metrics(stats.latencies);
  if (state.options.http_counters) {
    const HttpCounters http = state.options.http_counters();
    for (const HttpMetric& metric : kHttpMetrics) {
      add_metric(text, metric.kind, metric.name, metric.help, static_cast<double>(http.*metric.value));
    }
  }
  if (const MeaningThread* meanings = state.engine.meanings(); meanings != nullptr) {
    const MeaningStats embedded = meanings->stats();
    for (const MeaningMetric& metric : kMeaningMetrics) {
      add_metric(text, metric.kind, metric.name, metric.help, metric.value(embedded));
    }
  }
  text += store_metrics(state);
  call.send({.headers = {{"Content-Type", "text/plain; version=0.0.4"},
                         {"Process-Start-Time-Unix", std::to_string(state.started)}},
             .body = std::move(text)});
}

}  // namespace ebb
