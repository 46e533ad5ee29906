#include "plain/areas_acts.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <utility>

#include "base/to_size.h"
#include "plain/question.h"
#include "replay/areas_replay.h"

namespace ebb {
namespace {

constexpr std::int32_t kMostScheduled = 1 << 28;

Json state_json(const PlainAreas& areas, std::int32_t n_scheduled) {
  const AreasSequence& sequence = areas.sequence;
  return {{"processed", sequence.n_processed()},
          {"cached", sequence.n_cached()},
          {"max_after_eviction", sequence.config().max_tokens_after_eviction(sequence.shape().block_size)},
          {"queries", sequence.count_next_queries(n_scheduled)},
          {"wanted_diversity", sequence.wanted_diversity(n_scheduled)}};
}

Result<std::vector<float>> to_floats(std::string_view name, Numbers numbers) {
  EBB_RETURN_IF_ERROR(check_numbers(name, numbers, -double{FLT_MAX}, FLT_MAX));
  return std::vector<float>(numbers.begin(), numbers.end());
}

// "scores" is [n_layers, tokens] without those of skipped blocks.
Status register_scores(PlainAreas& areas, JsonFields& fields, const NamedArrays& named) {
  const auto n_scheduled = static_cast<std::int32_t>(fields.integer("scheduled", 1, 1, kMostScheduled));
  EBB_RETURN_IF_ERROR(fields.status());
  EBB_ASSIGN_OR_RETURN(const std::vector<std::int32_t> skipped, named.get_whole("skipped", kMostScheduled));
  const Numbers* const numbers = named.find("scores");
  if (numbers == nullptr) return error(Code::kInvalidArgument, "array 'scores' is missing; give [n_layers, tokens]");
  const std::size_t n_layers = to_size(areas.sequence.shape().n_layers);
  if (n_layers == 0 || numbers->size() % n_layers != 0) {
    return error(Code::kInvalidArgument, "array 'scores' has {} numbers, which are no [{}, tokens]", numbers->size(),
                 n_layers);
  }
  EBB_ASSIGN_OR_RETURN(const std::vector<float> all, to_floats("scores", *numbers));
  const auto n_tokens = static_cast<std::ptrdiff_t>(all.size() / n_layers);
  std::vector<std::vector<float>> scores;
  for (auto from = all.begin(); std::cmp_less(scores.size(), n_layers); from += n_tokens) {
    scores.emplace_back(from, from + n_tokens);
  }
  return areas.sequence.register_scores({.n_scheduled = n_scheduled, .scores = scores, .skipped = skipped});
}

Status register_diversity(PlainAreas& areas, JsonFields& fields, const NamedArrays& named) {
  const auto layer = static_cast<std::int32_t>(fields.integer("layer", 0, 0, areas.sequence.shape().n_layers - 1));
  EBB_RETURN_IF_ERROR(fields.status());
  const Numbers* const numbers = named.find("diversity");
  if (numbers == nullptr)
    return error(Code::kInvalidArgument, "array 'diversity' is missing; give [n / block_size, n]");
  EBB_ASSIGN_OR_RETURN(const std::vector<float> diversity, to_floats("diversity", *numbers));
  return areas.sequence.register_diversity(LayerIndex(layer), diversity);
}

// As areas_replay does after each step.
Result<Json> evict(PlainAreas& areas) {
  const std::int32_t block_size = areas.sequence.shape().block_size;
  const std::int32_t n_blocks = (areas.sequence.n_cached() + block_size - 1) / block_size;
  const bool rotates = areas.sequence.config().applies_rotation;
  const std::int32_t n_rows = areas.upstream ? areas.n_batched_tokens / block_size + 1 : std::max(n_blocks, 1);
  const AreasSequence before = areas.sequence;
  EBB_ASSIGN_OR_RETURN(const std::vector<AreasEviction> evictions, areas.sequence.evict());
  Json layers = Json::array();
  for (const AreasEviction& eviction : evictions) {
    Json layer = {{"evicted", eviction.victims}, {"rescued", eviction.rescued}, {"rotation", Json::array()}};
    if (rotates) {
      const auto shifts = find_shifts(n_blocks, eviction.victims, block_size, n_rows);
      if (!shifts.ok()) areas.sequence = before;
      EBB_RETURN_IF_ERROR(shifts.status());
      layer["rotation"] = shifts_json(*shifts);
    }
    layers.push_back(std::move(layer));
  }
  return Json{{"layers", std::move(layers)}};
}

}  // namespace

Result<PlainAreas> make_areas(std::string_view recording) {
  EBB_ASSIGN_OR_RETURN(const AreasReplay replay, read_areas_replay(recording));
  EBB_ASSIGN_OR_RETURN(AreasSequence sequence, AreasSequence::make(replay.config, replay.shape, replay.n_prompt));
  EBB_RETURN_IF_ERROR(replay.config.check_first_use(replay.shape.block_size, replay.shape.n_layers));
  return PlainAreas{
      .sequence = std::move(sequence), .upstream = replay.config.upstream, .n_batched_tokens = replay.n_batched_tokens};
}

Result<Json> act_on_areas(PlainAreas& areas, std::string_view act, std::span<const Numbers> arrays) {
  constexpr std::array<std::string_view, 3> kArrays = {"scores", "skipped", "diversity"};
  constexpr std::array<std::string_view, 5> kFields = {"act", "arrays", "scheduled", "layer", "prompt_tokens"};
  EBB_ASSIGN_OR_RETURN(const Json json, parse_json(act, kMostQuestionValues));
  JsonFields fields(json);
  const std::string name = fields.needed_text("act");
  fields.refuse_others(kFields);
  EBB_RETURN_IF_ERROR(fields.status());
  EBB_ASSIGN_OR_RETURN(const NamedArrays named, NamedArrays::read(fields, arrays, kArrays));
  const auto n_scheduled = static_cast<std::int32_t>(fields.integer("scheduled", 1, 1, kMostScheduled));
  if (name == "evict") return evict(areas);
  if (name == "register_scores") {
    EBB_RETURN_IF_ERROR(register_scores(areas, fields, named));
  } else if (name == "register_diversity") {
    EBB_RETURN_IF_ERROR(register_diversity(areas, fields, named));
  } else if (name == "reset") {
    const auto n_prompt = static_cast<std::int32_t>(fields.integer("prompt_tokens", 0, 0, kMostScheduled));
    EBB_RETURN_IF_ERROR(fields.status());
    EBB_RETURN_IF_ERROR(areas.sequence.reset(n_prompt));
  } else if (name != "state") {
    return error(Code::kNotFound,
                 "Field 'act': '{}' is none; there are register_scores, register_diversity, evict, reset, state",
                 name.substr(0, 64));
  }
  EBB_RETURN_IF_ERROR(fields.status());
  return state_json(areas, n_scheduled);
}

}  // namespace ebb
