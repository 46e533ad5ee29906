#include "plain/choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/to_size.h"
#include "plain/asked_shape.h"
#include "policy/choose.h"

namespace ebb {
namespace {

constexpr auto kEvidenceArrays = std::to_array<std::string_view>({"begin",
                                                                  "end",
                                                                  "hold",
                                                                  "source",
                                                                  "priority",
                                                                  "last_access",
                                                                  "attention",
                                                                  "focus",
                                                                  "recovery",
                                                                  "n_rows",
                                                                  "row_block",
                                                                  "total",
                                                                  "n_queries",
                                                                  "window_mean",
                                                                  "window_max",
                                                                  "last",
                                                                  "reread",
                                                                  "key_norm",
                                                                  "output_length",
                                                                  "expected",
                                                                  "expected_value",
                                                                  "value_length",
                                                                  "key_direction",
                                                                  "key_least",
                                                                  "key_greatest",
                                                                  "key_mean",
                                                                  "value_least",
                                                                  "value_greatest",
                                                                  "value_mean",
                                                                  "scores",
                                                                  "slice_total",
                                                                  "slice_n_queries",
                                                                  "slice_window_mean",
                                                                  "slice_window_max",
                                                                  "slice_last"});

// Sums and squares of as many as there may be stay finite.
constexpr double kMostValue = 1e60;
constexpr std::int32_t kMostPosition = 1 << 30;
constexpr double kMostAccess = 1e15;

// Scores that came with the question.
class GivenScores final : public Policy {
 public:
  GivenScores(Scope scope, Shares shares) : scope_(scope), shares_(shares) {}
  void set(std::int32_t scope, Numbers scores) { scores_[scope] = {scores.begin(), scores.end()}; }

  [[nodiscard]] std::string_view name() const override { return "given"; }
  [[nodiscard]] Ask asks() const override { return {.scope = scope_, .sinks = false}; }
  [[nodiscard]] Shares shares() const override { return shares_; }
  [[nodiscard]] std::vector<double> score(const Evidence&, const ScopeEvidence& scope) const override {
    return scores_.at(scope.index);
  }

 private:
  Scope scope_;
  Shares shares_;
  std::map<std::int32_t, std::vector<double>> scores_;  // by ScopeEvidence::index
};

// A column of a scope, whether a policy asks for it, and how large its numbers may be.
struct Column {
  std::string_view name;
  std::vector<double> ScopeEvidence::*values;
  bool (*is_asked)(const Ask& ask);
};
constexpr Column kColumns[] = {
    {"total", &ScopeEvidence::total, [](const Ask& ask) { return ask.totals; }},
    {"n_queries", &ScopeEvidence::n_queries, [](const Ask& ask) { return ask.totals; }},
    {"window_mean", &ScopeEvidence::window_mean, [](const Ask& ask) { return ask.window > 0; }},
    {"window_max", &ScopeEvidence::window_max, [](const Ask& ask) { return ask.window > 0; }},
    {"last", &ScopeEvidence::last, [](const Ask& ask) { return ask.last; }},
    {"reread", &ScopeEvidence::reread, [](const Ask& ask) { return ask.reread; }},
    {"key_norm", &ScopeEvidence::key_norm, [](const Ask& ask) { return ask.keys; }},
    {"output_length", &ScopeEvidence::output_length, [](const Ask& ask) { return ask.output_lengths; }},
    {"expected", &ScopeEvidence::expected, [](const Ask& ask) { return ask.expected > 0; }},
    {"expected_value", &ScopeEvidence::expected_value, [](const Ask& ask) { return ask.expected > 0; }},
    {"value_length", &ScopeEvidence::value_length, [](const Ask& ask) { return ask.expected > 0; }}};

// The same by slice: as many numbers for each row as a full block has slices.
struct SliceColumn {
  std::string_view name;
  std::vector<double> SliceColumns::*values;
  bool (*is_asked)(const Ask& ask);
};
constexpr SliceColumn kSliceColumns[] = {
    {"slice_total", &SliceColumns::total, [](const Ask& ask) { return ask.totals; }},
    {"slice_n_queries", &SliceColumns::n_queries, [](const Ask& ask) { return ask.totals; }},
    {"slice_window_mean", &SliceColumns::window_mean, [](const Ask& ask) { return ask.window > 0; }},
    {"slice_window_max", &SliceColumns::window_max, [](const Ask& ask) { return ask.window > 0; }},
    {"slice_last", &SliceColumns::last, [](const Ask& ask) { return ask.last; }}};

// One whose rows have n_key_dims or n_value_dims numbers each.
struct VectorColumn {
  std::string_view name;
  bool is_of_values;
  double most;
  std::vector<float>& (*values)(ScopeEvidence& scope);
  bool (*is_asked)(const Ask& ask);
};
constexpr bool asks_ranges(const Ask& ask) { return ask.ranges; }
// Half floats and their sums stay finite far below.
constexpr double kMostChannel = 1e30;
constexpr VectorColumn kVectorColumns[] = {
    // Means of vectors of length 1, a rounding aside.
    {"key_direction", false, 1.001, [](ScopeEvidence& scope) -> std::vector<float>& { return scope.key_direction; },
     [](const Ask& ask) { return ask.keys; }},
    {"key_least", false, kMostChannel, [](ScopeEvidence& scope) -> std::vector<float>& { return scope.keys.least; },
     asks_ranges},
    {"key_greatest", false, kMostChannel,
     [](ScopeEvidence& scope) -> std::vector<float>& { return scope.keys.greatest; }, asks_ranges},
    {"key_mean", false, kMostChannel, [](ScopeEvidence& scope) -> std::vector<float>& { return scope.keys.mean; },
     asks_ranges},
    {"value_least", true, kMostChannel, [](ScopeEvidence& scope) -> std::vector<float>& { return scope.values.least; },
     asks_ranges},
    {"value_greatest", true, kMostChannel,
     [](ScopeEvidence& scope) -> std::vector<float>& { return scope.values.greatest; }, asks_ranges},
    {"value_mean", true, kMostChannel, [](ScopeEvidence& scope) -> std::vector<float>& { return scope.values.mean; },
     [](const Ask& ask) { return ask.ranges || ask.value_means; }}};

// What is asked: evidence, whose policy, and how much stays.
class Question {
 public:
  Question(JsonFields& fields, const NamedArrays& arrays) : fields_(fields), arrays_(arrays) {}

  Status read();
  [[nodiscard]] Result<Json> answer() const;

 private:
  Status read_policy();
  [[nodiscard]] Result<Shares> read_shares() const;
  Status read_blocks();
  Status read_block_columns();
  Status read_rows();
  Status read_columns();
  Status read_slices(std::size_t n_rows);
  Status read_vectors(std::size_t n_rows);
  Status read_scores(std::size_t n_rows);
  [[nodiscard]] Json scope_json(const ScopeEvidence& scope, std::span<const BlockIndex> victims) const;
  // One number for each block, or `otherwise` for all where the array is missing.
  [[nodiscard]] Result<std::vector<double>> block_numbers(std::string_view name, double otherwise, double most) const;

  JsonFields& fields_;
  const NamedArrays& arrays_;
  AskedShape shape_;
  std::shared_ptr<Policy> policy_;
  std::shared_ptr<GivenScores> given_;  // the same, where the question has scores
  Evidence evidence_;
};

Status Question::read() {
  shape_ = AskedShape::read(fields_);
  evidence_.grain = shape_.grain;
  evidence_.n_layers = shape_.n_layers;
  EBB_RETURN_IF_ERROR(fields_.status());
  EBB_RETURN_IF_ERROR(read_policy());
  evidence_.n_scopes = shape_.n_scopes(policy_->asks().scope);
  EBB_RETURN_IF_ERROR(read_blocks());
  EBB_RETURN_IF_ERROR(read_block_columns());
  EBB_RETURN_IF_ERROR(read_rows());
  return read_columns();
}

Result<Shares> Question::read_shares() const {
  constexpr std::pair<std::string_view, FrameSharing> kSharings[] = {{"even", FrameSharing::kEven},
                                                                     {"pyramid", FrameSharing::kPyramid},
                                                                     {"across_heads", FrameSharing::kAcrossHeads},
                                                                     {"across_layers", FrameSharing::kAcrossLayers}};
  const std::string name = fields_.text("sharing", "even");
  const auto at = std::ranges::find(kSharings, name, &std::pair<std::string_view, FrameSharing>::first);
  if (at == std::end(kSharings)) {
    return error(Code::kInvalidArgument,
                 "Field 'sharing': must be \"even\", \"pyramid\", \"across_heads\" or \"across_layers\"");
  }
  const Json* const floor = fields_.find("floor");
  if (floor != nullptr && (!floor->is_number() || !(floor->get<double>() >= 0.0 && floor->get<double>() <= 1.0))) {
    return error(Code::kInvalidArgument, "Field 'floor': must be a number from 0 to 1");
  }
  return Shares{.sharing = at->second, .floor = floor == nullptr ? 0.0 : floor->get<double>()};
}

Status Question::read_policy() {
  if (!arrays_.has("scores")) {
    Result<std::unique_ptr<Policy>> made = make_policy(fields_.needed_text("policy"));
    EBB_RETURN_IF_ERROR(fields_.status());
    EBB_ASSIGN_OR_RETURN(policy_, std::move(made));
    return policy_->check_grain(shape_.grain);
  }
  if (fields_.find("policy") != nullptr) {
    return error(Code::kInvalidArgument, "a policy and scores of one's own; give one of them");
  }
  const Scope scope = read_scope(fields_);
  EBB_RETURN_IF_ERROR(fields_.status());
  EBB_ASSIGN_OR_RETURN(const Shares shares, read_shares());
  given_ = std::make_shared<GivenScores>(scope, shares);
  policy_ = given_;
  return {};
}

Status Question::read_blocks() {
  EBB_ASSIGN_OR_RETURN(const auto begins, arrays_.get_whole("begin", kMostPosition));
  if (begins.empty()) return error(Code::kInvalidArgument, "array 'begin' is missing; give where each block begins");
  if (begins.size() > to_size(kMostTokens)) {
    return error(Code::kInvalidArgument, "array 'begin': {} blocks; at most {} are taken", begins.size(), kMostTokens);
  }
  EBB_ASSIGN_OR_RETURN(const auto ends, arrays_.get_whole("end", begins.size(), "[blocks]", kMostPosition));
  std::int32_t before = 0;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    if (begins[i] < before || ends[i] <= begins[i] || ends[i] - begins[i] > shape_.grain) {
      return error(Code::kInvalidArgument,
                   "block {} from {} to {} behind {}: blocks have 1 to {} tokens and stand in order", i, begins[i],
                   ends[i], before, shape_.grain);
    }
    before = ends[i];
    evidence_.blocks.push_back(
        {.block = BlockIndex(static_cast<std::int32_t>(i)), .span = {Position(begins[i]), Position(ends[i])}});
  }
  evidence_.end = Position(static_cast<std::int32_t>(fields_.integer("end_position", before, before, kMostPosition)));
  return fields_.status();
}

Result<std::vector<double>> Question::block_numbers(std::string_view name, double otherwise, double most) const {
  const std::size_t n = evidence_.blocks.size();
  if (!arrays_.has(name)) return std::vector<double>(n, otherwise);
  EBB_ASSIGN_OR_RETURN(const Numbers numbers, arrays_.get(name, n, "[blocks]"));
  EBB_RETURN_IF_ERROR(check_numbers(name, numbers, 0.0, most));
  return std::vector<double>(numbers.begin(), numbers.end());
}

Status Question::read_block_columns() {
  EBB_ASSIGN_OR_RETURN(const auto holds, block_numbers("hold", 0.0, 3.0));
  EBB_ASSIGN_OR_RETURN(const auto sources, block_numbers("source", 1.0, 3.0));
  EBB_ASSIGN_OR_RETURN(const auto priorities, block_numbers("priority", 1.0, 1e6));
  EBB_ASSIGN_OR_RETURN(const auto accesses, block_numbers("last_access", 0.0, kMostAccess));
  EBB_ASSIGN_OR_RETURN(const auto attention, block_numbers("attention", 0.0, 1.0));
  EBB_ASSIGN_OR_RETURN(const auto focus, block_numbers("focus", 0.0, 1.0));
  EBB_ASSIGN_OR_RETURN(const auto recoveries, block_numbers("recovery", 0.0, 1.0));
  for (const std::string_view name : {"hold", "source"}) EBB_RETURN_IF_ERROR(arrays_.get_whole(name, 3).status());
  for (std::size_t i = 0; i < evidence_.blocks.size(); ++i) {
    BlockEvidence& block = evidence_.blocks[i];
    block.hold = static_cast<Hold>(static_cast<int>(holds[i]));
    block.source = static_cast<Source>(static_cast<int>(sources[i]));
    block.priority = priorities[i];
    block.last_access = static_cast<std::int64_t>(accesses[i]);
    if (arrays_.has("attention")) block.attention = attention[i];
    if (arrays_.has("focus")) block.focus = focus[i];
    block.recovery = recoveries[i];
  }
  return {};
}

// Which blocks each scope has: all, where nothing is said.
Status Question::read_rows() {
  const auto n_blocks = static_cast<std::int32_t>(evidence_.blocks.size());
  const std::int32_t n_frames = shape_.n_heads_of(policy_->asks().scope);
  std::vector<std::int32_t> counts(to_size(evidence_.n_scopes), n_blocks);
  std::vector<std::int32_t> rows;
  if (arrays_.has("n_rows")) {
    EBB_ASSIGN_OR_RETURN(counts, arrays_.get_whole("n_rows", counts.size(), "[scopes]", n_blocks));
    std::size_t n_all = 0;
    for (const std::int32_t n : counts) n_all += to_size(n);
    EBB_ASSIGN_OR_RETURN(rows, arrays_.get_whole("row_block", n_all, "the blocks of each scope", n_blocks - 1));
  } else if (arrays_.has("row_block")) {
    return error(Code::kInvalidArgument, "array 'row_block': needs 'n_rows', how many of them each scope has");
  }
  std::size_t at = 0;
  for (std::int32_t s = 0; s < evidence_.n_scopes; ++s) {
    ScopeEvidence& scope = evidence_.scopes.emplace_back();
    scope.index = s;
    for (std::int32_t i = 0; i < counts[to_size(s)]; ++i) {
      const std::int32_t block = rows.empty() ? i : rows[at++];
      if (!scope.rows.empty() && block <= scope.rows.back().block) {
        return error(Code::kInvalidArgument, "array 'row_block': block {} behind {} in scope {}; give them in order",
                     block, scope.rows.back().block, s);
      }
      scope.rows.push_back({.block = block, .n_frames = n_frames});
    }
  }
  return {};
}

Status Question::read_columns() {
  std::size_t n_rows = 0;
  for (const ScopeEvidence& scope : evidence_.scopes) n_rows += scope.rows.size();
  const Ask ask = policy_->asks();
  for (const Column& column : kColumns) {
    if (!column.is_asked(ask)) continue;
    EBB_ASSIGN_OR_RETURN(const Numbers numbers, arrays_.get(column.name, n_rows, "the rows of all scopes"));
    EBB_RETURN_IF_ERROR(check_numbers(column.name, numbers, 0.0, kMostValue));
    auto from = numbers.begin();
    for (ScopeEvidence& scope : evidence_.scopes) {
      const auto to = from + std::ssize(scope.rows);
      (scope.*column.values).assign(from, to);
      from = to;
    }
  }
  EBB_RETURN_IF_ERROR(read_slices(n_rows));
  EBB_RETURN_IF_ERROR(read_vectors(n_rows));
  return given_ != nullptr ? read_scores(n_rows) : Status();
}

Status Question::read_slices(std::size_t n_rows) {
  const Ask ask = policy_->asks();
  const std::size_t n_slices = to_size(ask.n_slices(shape_.grain));
  if (n_slices == 0) return {};
  for (ScopeEvidence& scope : evidence_.scopes) {
    scope.slices.n_slices = n_slices;
    scope.slices.n_tokens = ask.slice;
  }
  for (const SliceColumn& column : kSliceColumns) {
    if (!column.is_asked(ask)) continue;
    EBB_ASSIGN_OR_RETURN(const Numbers numbers,
                         arrays_.get(column.name, n_rows * n_slices, "the rows of all scopes, their slices each"));
    EBB_RETURN_IF_ERROR(check_numbers(column.name, numbers, 0.0, kMostValue));
    auto from = numbers.begin();
    for (ScopeEvidence& scope : evidence_.scopes) {
      const auto to = from + std::ssize(scope.rows) * static_cast<std::ptrdiff_t>(n_slices);
      (scope.slices.*column.values).assign(from, to);
      from = to;
    }
  }
  return {};
}

Status Question::read_vectors(std::size_t n_rows) {
  const auto n_key_dims = to_size(static_cast<std::int32_t>(fields_.integer("n_key_dims", 0, 0, 1 << 16)));
  const auto n_value_dims = to_size(static_cast<std::int32_t>(fields_.integer("n_value_dims", 0, 0, 1 << 16)));
  EBB_RETURN_IF_ERROR(fields_.status());
  const std::size_t n_key_heads = to_size(shape_.n_heads_of(policy_->asks().scope));
  if (policy_->asks().keys && n_key_dims % n_key_heads != 0) {
    return error(Code::kInvalidArgument, "Field 'n_key_dims': {} numbers of a row's keys, and scopes of {} heads",
                 n_key_dims, n_key_heads);
  }
  for (ScopeEvidence& scope : evidence_.scopes) {
    scope.is_read.assign(scope.rows.size(), true);
    scope.n_key_dims = scope.keys.n_dims = n_key_dims;
    scope.n_key_heads = n_key_heads;
    scope.values.n_dims = n_value_dims;
  }
  for (const VectorColumn& column : kVectorColumns) {
    if (!column.is_asked(policy_->asks())) continue;
    const std::size_t n_dims = column.is_of_values ? n_value_dims : n_key_dims;
    EBB_ASSIGN_OR_RETURN(const Numbers numbers,
                         arrays_.get(column.name, n_rows * n_dims, "the rows of all scopes, as many numbers each"));
    EBB_RETURN_IF_ERROR(check_numbers(column.name, numbers, -column.most, column.most));
    std::size_t at = 0;
    for (ScopeEvidence& scope : evidence_.scopes) {
      for (std::size_t i = 0; i < scope.rows.size() * n_dims; ++i) {
        column.values(scope).push_back(static_cast<float>(numbers[at++]));
      }
    }
  }
  return {};
}

// Infinite is what never leaves.
Status Question::read_scores(std::size_t n_rows) {
  EBB_ASSIGN_OR_RETURN(Numbers numbers, arrays_.get("scores", n_rows, "the rows of all scopes"));
  EBB_RETURN_IF_ERROR(check_numbers("scores", numbers, -std::numeric_limits<double>::max(), kNeverLeaves));
  for (const ScopeEvidence& scope : evidence_.scopes) {
    given_->set(scope.index, numbers.first(scope.rows.size()));
    numbers = numbers.subspan(scope.rows.size());
  }
  return {};
}

Json Question::scope_json(const ScopeEvidence& scope, std::span<const BlockIndex> victims) const {
  Json evicted = Json::array();
  std::vector<bool> leaves(evidence_.blocks.size(), false);
  for (const BlockIndex victim : victims) {
    evicted.push_back(victim.value());
    leaves[victim.index()] = true;
  }
  Json kept = Json::array();
  for (const ScopeRow& row : scope.rows) {
    if (!leaves[to_size(row.block)]) kept.push_back(row.block);
  }
  Json scores = Json::array();
  for (const double score : policy_->score(evidence_, scope)) {
    scores.push_back(score == kNeverLeaves ? Json(nullptr) : Json(score));
  }
  return {{"kept", std::move(kept)}, {"evicted", std::move(evicted)}, {"scores", std::move(scores)}};
}

Result<Json> Question::answer() const {
  std::int64_t n_hot = 0;
  for (const ScopeEvidence& scope : evidence_.scopes) {
    // Whatever the numbers were: what has no order is refused, as nothing else would say.
    for (const double score : policy_->score(evidence_, scope)) {
      if (std::isnan(score)) return error(Code::kInvalidArgument, "these numbers give a score that is none");
    }
    for (const ScopeRow& row : scope.rows) n_hot += row.n_frames;
  }
  if (n_hot > std::numeric_limits<std::int32_t>::max()) {
    return error(Code::kInvalidArgument, "{} frames are hot, more than can be counted", n_hot);
  }
  const auto n_frames = static_cast<std::int32_t>(n_hot);
  const auto n_stay = static_cast<std::int32_t>(fields_.integer("keep_frames", n_frames, 0, n_frames));
  EBB_RETURN_IF_ERROR(fields_.status());
  std::vector<std::vector<BlockIndex>> victims(evidence_.scopes.size());
  for (const Victim& victim : choose_victims(*policy_, evidence_, n_frames - n_stay, n_frames - n_stay)) {
    victims[to_size(victim.scope)].push_back(victim.block);
  }
  Json scopes = Json::array();
  for (const ScopeEvidence& scope : evidence_.scopes) {
    scopes.push_back(scope_json(scope, victims[to_size(scope.index)]));
  }
  return Json{{"policy", policy_->spec()},
              {"scope", scope_name(policy_->asks().scope)},
              {"hot_frames", n_frames},
              {"scopes", std::move(scopes)}};
}

}  // namespace

Result<Json> choose(JsonFields& fields, std::span<const Numbers> arrays) {
  EBB_ASSIGN_OR_RETURN(const NamedArrays named, NamedArrays::read(fields, arrays, kEvidenceArrays));
  Question question(fields, named);
  EBB_RETURN_IF_ERROR(question.read());
  return question.answer();
}

}  // namespace ebb
