#include "plain/observation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/to_size.h"
#include "plain/asked_shape.h"
#include "policy/attention_notes.h"

namespace ebb {
namespace {

constexpr std::array<std::string_view, 3> kRecordingArrays = {"steps", "attention", "keys"};

// Attention of one head on one token; a KV head's is the sum over its query heads.
constexpr double kMostMass = 1e6;
constexpr double kMostKey = 1e15;

struct Recording {
  AskedShape shape;
  std::vector<std::int32_t> steps;  // queries of each
  std::int32_t n_tokens = 0;
  // One step behind the other: [n_layers, n_kv_heads, queries, tokens up to the last of them]
  Numbers attention;
  // [n_layers, n_kv_heads, n_tokens, head_dim]; empty where nobody asks.
  Numbers keys;
  std::int32_t head_dim = 0;

  [[nodiscard]] std::int32_t n_blocks(std::int32_t tokens) const { return (tokens + shape.grain - 1) / shape.grain; }
};

// What one step's queries gave the blocks of a head.
struct StepSums {
  std::vector<float> sum, window_sum, window_max, last;
};

class Observer {
 public:
  Observer(const Recording& recording, const Ask& ask)
      : recording_(recording),
        ask_(ask),
        n_heads_(to_size(recording.shape.n_heads())),
        notes_(n_heads_, ask, recording.shape.grain, to_size(recording.shape.n_kv_heads)),
        last_access_(to_size(recording.n_blocks(recording.n_tokens)), 0.0),
        shares_(last_access_.size(), 0.0) {}

  void observe() {
    std::int32_t n_before = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < recording_.steps.size(); ++i) {
      const std::int32_t n_queries = recording_.steps[i];
      const std::size_t n = n_heads_ * to_size(n_queries) * to_size(n_before + n_queries);
      for (std::int32_t b = n_before / recording_.shape.grain; b < recording_.n_blocks(n_before + n_queries); ++b) {
        last_access_[to_size(b)] = static_cast<double>(i + 1);
      }
      if (ask_.attention()) take(n_before, n_queries, recording_.attention.subspan(at, n), i + 1);
      at += n;
      n_before += n_queries;
    }
  }

  [[nodiscard]] Json answer() const;

 private:
  void take(std::int32_t n_before, std::int32_t n_queries, Numbers step, std::size_t number);
  [[nodiscard]] StepSums sum(Numbers head, std::int32_t n_queries, std::int32_t n_observed, std::int32_t n_tokens,
                             std::int32_t width) const;
  [[nodiscard]] StepSums sum_slices(Numbers head, std::int32_t n_queries, std::int32_t n_observed,
                                    std::int32_t n_tokens) const;
  void fill_keys(std::size_t first, std::size_t n_heads, ScopeEvidence& scope) const;

  const Recording& recording_;
  Ask ask_;
  std::size_t n_heads_;
  AttentionNotes notes_;
  std::vector<double> last_access_;
  std::vector<double> shares_;
};

// Of so many tokens together: of blocks, or of slices.
StepSums Observer::sum(Numbers head, std::int32_t n_queries, std::int32_t n_observed, std::int32_t n_tokens,
                       std::int32_t width) const {
  const std::size_t n_blocks = to_size((n_tokens + width - 1) / width);
  const std::int32_t n_window = std::min(ask_.window, n_observed);
  std::vector<double> all(n_blocks, 0.0);
  std::vector<double> window(n_blocks, 0.0);
  std::vector<double> most(n_blocks, 0.0);
  std::vector<double> row;
  for (std::int32_t q = n_queries - n_observed; q < n_queries; ++q) {
    row.assign(n_blocks, 0.0);
    const Numbers weights = head.subspan(to_size(q) * to_size(n_tokens), to_size(n_tokens));
    for (std::size_t t = 0; t < weights.size(); ++t) row[t / to_size(width)] += weights[t];
    for (std::size_t b = 0; b < n_blocks; ++b) {
      all[b] += row[b];
      if (q < n_queries - n_window) continue;
      window[b] += row[b];
      most[b] = std::max(most[b], row[b]);
    }
  }
  return {.sum = {all.begin(), all.end()},
          .window_sum = {window.begin(), window.end()},
          .window_max = {most.begin(), most.end()},
          .last = {row.begin(), row.end()}};
}

// Of whole blocks; slices behind the last token have nothing. Empty where nobody asks.
StepSums Observer::sum_slices(Numbers head, std::int32_t n_queries, std::int32_t n_observed,
                              std::int32_t n_tokens) const {
  const std::int32_t n_slices = ask_.n_slices(recording_.shape.grain);
  if (n_slices == 0) return {};
  StepSums sums = sum(head, n_queries, n_observed, n_tokens, ask_.slice);
  for (std::vector<float>* column : {&sums.sum, &sums.window_sum, &sums.window_max, &sums.last}) {
    column->resize(to_size(recording_.n_blocks(n_tokens) * n_slices), 0.0F);
  }
  return sums;
}

void Observer::take(std::int32_t n_before, std::int32_t n_queries, Numbers step, std::size_t number) {
  const std::int32_t n_tokens = n_before + n_queries;
  const std::int32_t n_observed = notes_.n_observed(n_queries, {});
  notes_.begin_step({.observed = {Position(n_tokens - n_observed), Position(n_tokens)},
                     .n_window = std::min(ask_.window, n_observed)},
                    recording_.shape.grain);
  std::vector<BlockIndex> blocks;
  for (std::int32_t b = 0; b < recording_.n_blocks(n_tokens); ++b) blocks.emplace_back(b);
  std::vector<double> mass(blocks.size(), 0.0);
  const std::size_t n = to_size(n_queries) * to_size(n_tokens);
  for (std::size_t head = 0; head < n_heads_; ++head) {
    const Numbers of_head = step.subspan(head * n, n);
    const StepSums sums = sum(of_head, n_queries, n_observed, n_tokens, recording_.shape.grain);
    const StepSums slices = sum_slices(of_head, n_queries, n_observed, n_tokens);
    notes_.add(head, {.blocks = blocks,
                      .sum = sums.sum,
                      .window_sum = sums.window_sum,
                      .window_max = sums.window_max,
                      .last = sums.last,
                      .slices = {slices.sum, slices.window_sum, slices.window_max, slices.last}});
    for (std::size_t b = 0; b < mass.size(); ++b) mass[b] += double{sums.sum[b]};
  }
  double total = 0.0;
  for (const double one : mass) total += one;
  for (std::size_t b = 0; b < mass.size(); ++b) {
    const double share = total > 0.0 ? mass[b] / total : 0.0;
    shares_[b] = follow_share(shares_[b], share);
    if (ask_.shares && is_notable_share(share, mass.size())) last_access_[b] = static_cast<double>(number);
  }
}

// Of heads [first, first + n_heads), the mean length of a block's keys, over the heads, and of their directions, of one head behind
// the other; a key of zeros adds nothing.
void Observer::fill_keys(std::size_t first, std::size_t n_heads, ScopeEvidence& scope) const {
  const std::size_t n_dims = to_size(recording_.head_dim);
  const auto n_tokens = to_size(recording_.n_tokens);
  const std::size_t grain = to_size(recording_.shape.grain);
  for (std::size_t begin = 0; begin < n_tokens; begin += grain) {
    const std::size_t end = std::min(n_tokens, begin + grain);
    const auto n_keys = static_cast<double>(end - begin);
    double norm = 0.0;
    for (std::size_t head = first; head < first + n_heads; ++head) {
      std::vector<double> direction(n_dims, 0.0);
      for (std::size_t t = begin; t < end; ++t) {
        const Numbers key = recording_.keys.subspan((head * n_tokens + t) * n_dims, n_dims);
        double length = 0.0;
        for (const double x : key) length += x * x;
        length = std::sqrt(length);
        norm += length;
        for (std::size_t d = 0; length > 0.0 && d < n_dims; ++d) direction[d] += key[d] / length;
      }
      for (const double x : direction) scope.key_direction.push_back(static_cast<float>(x / n_keys));
    }
    scope.key_norm.push_back(norm / n_keys / static_cast<double>(n_heads));
  }
}

Json Observer::answer() const {
  const AskedShape& shape = recording_.shape;
  std::vector<double> begins;
  std::vector<double> ends;
  std::vector<BlockIndex> blocks;
  for (std::int32_t b = 0; b < recording_.n_blocks(recording_.n_tokens); ++b) {
    blocks.emplace_back(b);
    begins.push_back(b * shape.grain);
    ends.push_back(std::min(recording_.n_tokens, (b + 1) * shape.grain));
  }
  Json columns = {{"begin", begins}, {"end", ends}, {"last_access", last_access_}};
  if (ask_.shares) columns["attention"] = shares_;
  const auto add = [&](const char* name, bool is_asked, const auto& values) {
    if (!is_asked) return;
    Json& column = columns[name];
    for (const double value : values) column.push_back(value);
  };
  const auto n_in_scope = to_size(shape.n_heads_of(ask_.scope));
  for (std::size_t head = 0; head < n_heads_; head += n_in_scope) {
    ScopeEvidence scope;
    notes_.fill(ask_, head, n_in_scope, blocks, scope);
    if (ask_.keys) fill_keys(head, n_in_scope, scope);
    add("total", ask_.totals, scope.total);
    add("n_queries", ask_.totals, scope.n_queries);
    add("window_mean", ask_.window > 0, scope.window_mean);
    add("window_max", ask_.window > 0, scope.window_max);
    add("last", ask_.last, scope.last);
    const bool slices = ask_.n_slices(shape.grain) > 0;
    add("slice_total", slices && ask_.totals, scope.slices.total);
    add("slice_n_queries", slices && ask_.totals, scope.slices.n_queries);
    add("slice_window_mean", slices && ask_.window > 0, scope.slices.window_mean);
    add("slice_window_max", slices && ask_.window > 0, scope.slices.window_max);
    add("slice_last", slices && ask_.last, scope.slices.last);
    add("key_norm", ask_.keys, scope.key_norm);
    add("key_direction", ask_.keys, scope.key_direction);
  }
  return {{"scope", scope_name(ask_.scope)},
          {"n_layers", shape.n_layers},
          {"n_kv_heads", shape.n_kv_heads},
          {"grain", shape.grain},
          {"end_position", recording_.n_tokens},
          {"n_key_dims", ask_.keys ? recording_.head_dim * shape.n_heads_of(ask_.scope) : 0},
          {"n_slices", ask_.n_slices(shape.grain)},
          {"columns", std::move(columns)}};
}

Ask read_ask(JsonFields& fields) {
  if (fields.find("policy") != nullptr) {
    const auto policy = make_policy(fields.text("policy"));
    const Ask ask = policy.ok() ? (*policy)->asks() : Ask();
    if (ask.reread || ask.ranges || ask.value_means || ask.output_lengths || ask.expected > 0) {
      fields.refuse("policy",
                    "looks at values, at queries, or at prompts that are read again, which recordings of attention and "
                    "keys have not; give such evidence to `choose`");
    }
    if (policy.ok()) return ask;
    fields.refuse("policy", policy.status().message());
    return {};
  }
  constexpr std::int32_t kMostWindow = 1 << 20;
  constexpr std::int32_t kMostSlice = 1024;
  Ask ask{.scope = read_scope(fields)};
  ask.shares = fields.boolean("shares", false);
  ask.totals = fields.boolean("totals", false);
  ask.last = fields.boolean("last", false);
  ask.keys = fields.boolean("keys", false);
  ask.window = static_cast<std::int32_t>(fields.integer("window", 0, 0, kMostWindow));
  ask.slice = static_cast<std::int32_t>(fields.integer("slice", 0, 0, kMostSlice));
  return ask;
}

Result<Recording> read_recording(JsonFields& fields, std::span<const Numbers> arrays, const Ask& ask) {
  Recording recording{.shape = AskedShape::read(fields)};
  recording.head_dim = static_cast<std::int32_t>(fields.integer("head_dim", 0, 0, 1 << 16));
  EBB_ASSIGN_OR_RETURN(const NamedArrays named, NamedArrays::read(fields, arrays, kRecordingArrays));
  EBB_ASSIGN_OR_RETURN(recording.steps, named.get_whole("steps", kMostTokens));
  std::size_t n_weights = 0;
  for (const std::int32_t n_queries : recording.steps) {
    if (n_queries < 1 || n_queries > kMostTokens - recording.n_tokens) {
      return error(Code::kInvalidArgument, "array 'steps': a step of {} queries behind {}; give 1 to {}", n_queries,
                   recording.n_tokens, kMostTokens - recording.n_tokens);
    }
    recording.n_tokens += n_queries;
    n_weights += to_size(recording.shape.n_heads()) * to_size(n_queries) * to_size(recording.n_tokens);
  }
  if (recording.steps.empty()) return error(Code::kInvalidArgument, "array 'steps': give the queries of each step");
  if (ask.attention()) {
    EBB_ASSIGN_OR_RETURN(recording.attention,
                         named.get("attention", n_weights,
                                   "for each step, [n_layers, n_kv_heads, queries, tokens up to the last of them]"));
    EBB_RETURN_IF_ERROR(check_numbers("attention", recording.attention, 0.0, kMostMass));
  }
  if (ask.keys) {
    const std::size_t n =
        to_size(recording.shape.n_heads()) * to_size(recording.n_tokens) * to_size(recording.head_dim);
    EBB_ASSIGN_OR_RETURN(recording.keys, named.get("keys", n, "[n_layers, n_kv_heads, tokens, head_dim]"));
    EBB_RETURN_IF_ERROR(check_numbers("keys", recording.keys, -kMostKey, kMostKey));
  }
  return recording;
}

}  // namespace

Result<Json> observe(JsonFields& fields, std::span<const Numbers> arrays) {
  const Ask ask = read_ask(fields);
  EBB_RETURN_IF_ERROR(fields.status());
  EBB_ASSIGN_OR_RETURN(const Recording recording, read_recording(fields, arrays, ask));
  EBB_RETURN_IF_ERROR(ask.check_slice(recording.shape.grain));
  EBB_RETURN_IF_ERROR(fields.status());
  Observer observer(recording, ask);
  observer.observe();
  return observer.answer();
}

}  // namespace ebb
