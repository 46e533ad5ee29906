#include "plain/question.h"

#include <array>
#include <limits>
#include <random>
#include <vector>

#include "plain/asked_shape.h"
#include "plain/choice.h"
#include "plain/observation.h"
#include "policy/kvcrush.h"

namespace ebb {
namespace {

constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();

Json parameter_json(const Parameter& parameter) {
  return {{"name", parameter.name},   {"summary", parameter.summary}, {"default", parameter.value},
          {"least", parameter.least}, {"most", parameter.most},       {"whole", parameter.is_whole},
          {"odd", parameter.is_odd}};
}

const char* sharing_name(FrameSharing sharing) {
  switch (sharing) {
    case FrameSharing::kEven: return "even";
    case FrameSharing::kPyramid: return "pyramid";
    case FrameSharing::kAcrossHeads: return "across_heads";
    case FrameSharing::kAcrossLayers: return "across_layers";
  }
  return "";
}

Json policy_json(const PolicyEntry& entry, const Policy& policy) {
  const Ask ask = policy.asks();
  Json parameters = Json::array();
  for (const Parameter& parameter : entry.parameters) parameters.push_back(parameter_json(parameter));
  return {{"name", entry.name},
          {"spec", policy.spec()},
          {"summary", entry.summary},
          {"source", entry.source},
          {"scope", scope_name(ask.scope)},
          {"sharing", sharing_name(policy.shares().sharing)},
          {"floor", policy.shares().floor},
          {"asks",
           {{"totals", ask.totals},
            {"window", ask.window},
            {"last", ask.last},
            {"shares", ask.shares},
            {"keys", ask.keys},
            {"focus", ask.focus},
            {"reread", ask.reread},
            {"ranges", ask.ranges},
            {"value_means", ask.value_means},
            {"output_lengths", ask.output_lengths},
            {"expected", ask.expected},
            {"sinks", ask.sinks},
            {"slice", ask.slice}}},
          {"parameters", std::move(parameters)}};
}

Result<Json> list(JsonFields&, std::span<const Numbers>) {
  Json all = Json::array();
  for (const PolicyEntry& entry : policies()) {
    all.push_back(policy_json(entry, *entry.make(ParameterValues(entry.parameters))));
  }
  return all;
}

Result<Json> show(JsonFields& fields, std::span<const Numbers>) {
  const std::string spec = fields.needed_text("policy");
  EBB_RETURN_IF_ERROR(fields.status());
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Policy> policy, make_policy(spec));
  for (const PolicyEntry& entry : policies()) {
    if (entry.name == policy->name()) return policy_json(entry, *policy);
  }
  return error(Code::kNotFound, "policy {} is in no list", policy->name());
}

Result<CrushConfig> read_crush(JsonFields& fields) {
  CrushConfig config{.budget_blocks = static_cast<std::int32_t>(fields.integer("budget", 0, 0, kMost))};
  config.rng_seed =
      static_cast<std::uint32_t>(fields.integer("rng_seed", 0, 0, std::numeric_limits<std::uint32_t>::max()));
  const std::string anchor = fields.text("anchor_point_mode", "RANDOM");
  EBB_RETURN_IF_ERROR(fields.status());
  EBB_ASSIGN_OR_RETURN(config.anchor, find_crush_anchor(anchor.substr(0, 64)));
  return config;
}

// KVCrush's choice; `earlier` ones of the same generator took its numbers before.
Result<Json> rescue(JsonFields& fields, std::span<const Numbers> arrays) {
  constexpr std::array<std::string_view, 2> kArrays = {"sums", "victims"};
  constexpr std::int64_t kMostEarlier = 1 << 20;
  const auto block_size = static_cast<std::int32_t>(fields.integer("block_size", 1, 1, kMostGrain));
  const std::int64_t n_earlier = fields.integer("earlier", 0, 0, kMostEarlier);
  EBB_ASSIGN_OR_RETURN(const CrushConfig config, read_crush(fields));
  EBB_ASSIGN_OR_RETURN(const NamedArrays named, NamedArrays::read(fields, arrays, kArrays));
  EBB_ASSIGN_OR_RETURN(const std::vector<std::int32_t> victims, named.get_whole("victims", kMost));
  const Numbers* const sums = named.find("sums");
  const CrushChoice choice{.sums = sums == nullptr ? Numbers() : *sums, .block_size = block_size, .victims = victims};
  EBB_RETURN_IF_ERROR(check_crush(choice, config));
  std::mt19937 random(config.rng_seed);
  if (config.anchor == CrushAnchor::kRandom) {
    random.discard(static_cast<unsigned long long>(n_earlier) * static_cast<unsigned long long>(block_size));
  }
  return Json{{"rescued", rescue_blocks(choice, config, random)}};
}

Result<Json> shifts(JsonFields& fields, std::span<const Numbers> arrays) {
  constexpr std::array<std::string_view, 1> kArrays = {"victims"};
  const auto n_blocks = static_cast<std::int32_t>(fields.integer("n_blocks", 0, 0, kMostTokens));
  const auto block_size = static_cast<std::int32_t>(fields.integer("block_size", 1, 1, kMostGrain));
  const auto n_rows = static_cast<std::int32_t>(fields.integer("n_rows", kMost, 1, kMost));
  EBB_RETURN_IF_ERROR(fields.status());
  EBB_ASSIGN_OR_RETURN(const NamedArrays named, NamedArrays::read(fields, arrays, kArrays));
  EBB_ASSIGN_OR_RETURN(const std::vector<std::int32_t> victims, named.get_whole("victims", kMost));
  EBB_ASSIGN_OR_RETURN(const std::vector<BlockShift> found, find_shifts(n_blocks, victims, block_size, n_rows));
  return shifts_json(found);
}

Result<Json> rotation_table(JsonFields& fields, std::span<const Numbers>) {
  // As text, each number takes some twenty bytes.
  constexpr std::int64_t kMostRotations = std::int64_t{1} << 22;
  const auto n_rows = static_cast<std::int32_t>(fields.integer("n_rows", 1, 1, kMost));
  const auto block_size = static_cast<std::int32_t>(fields.integer("block_size", 1, 1, kMostGrain));
  const auto head_dim = static_cast<std::int32_t>(fields.integer("head_dim", 0, 0, 1 << 16));
  const Json* const theta = fields.find("theta");
  if (theta != nullptr && !theta->is_number()) fields.refuse_type("theta", "a number");
  EBB_RETURN_IF_ERROR(fields.status());
  if (std::int64_t{n_rows} * head_dim > kMostRotations) {
    return error(Code::kInvalidArgument, "a rotation table of {} rows and heads of {}; at most {} numbers are told",
                 n_rows, head_dim, kMostRotations);
  }
  EBB_ASSIGN_OR_RETURN(
      const RotationTable table,
      RotationTable::make(n_rows, block_size, head_dim, theta == nullptr ? 10000.0 : theta->get<double>()));
  return Json{
      {"n_rows", table.n_rows}, {"half_dim", table.half_dim}, {"cos", table.cos}, {"negative_sin", table.negative_sin}};
}

struct Asked {
  std::string_view name;
  Result<Json> (*answer)(JsonFields& fields, std::span<const Numbers> arrays);
  std::vector<std::string_view> fields;
};

const std::vector<Asked>& all_asked() {
  static const std::vector<Asked> all = {
      {"list", list, {"ask"}},
      {"show", show, {"ask", "policy"}},
      {"observe",
       observe,
       {"ask", "arrays", "policy", "scope", "n_layers", "n_kv_heads", "grain", "head_dim", "totals", "window", "last",
        "shares", "keys", "slice"}},
      {"choose",
       choose,
       {"ask", "arrays", "policy", "scope", "sharing", "floor", "n_layers", "n_kv_heads", "grain", "end_position",
        "keep_frames", "n_key_dims", "n_value_dims"}},
      {"rescue", rescue, {"ask", "arrays", "block_size", "budget", "anchor_point_mode", "rng_seed", "earlier"}},
      {"shifts", shifts, {"ask", "arrays", "n_blocks", "block_size", "n_rows"}},
      {"rotation_table", rotation_table, {"ask", "n_rows", "block_size", "head_dim", "theta"}}};
  return all;
}

}  // namespace

Json shifts_json(std::span<const BlockShift> shifts) {
  Json json = Json::array();
  for (const BlockShift& shift : shifts) {
    json.push_back({{"from", shift.from}, {"to", shift.to}, {"tokens", shift.n_tokens}});
  }
  return json;
}

Result<Json> answer_question(std::string_view question, std::span<const Numbers> arrays) {
  EBB_ASSIGN_OR_RETURN(const Json json, parse_json(question, kMostQuestionValues));
  JsonFields fields(json);
  const std::string ask = fields.needed_text("ask");
  EBB_RETURN_IF_ERROR(fields.status());
  std::vector<std::string_view> names;
  for (const Asked& asked : all_asked()) {
    names.push_back(asked.name);
    if (asked.name != ask) continue;
    fields.refuse_others(asked.fields);
    EBB_RETURN_IF_ERROR(fields.status());
    return asked.answer(fields, arrays);
  }
  return error(Code::kNotFound, "Field 'ask': '{}' is nothing that can be asked; there are {}", ask.substr(0, 64),
               fmt::join(names, ", "));
}

}  // namespace ebb
