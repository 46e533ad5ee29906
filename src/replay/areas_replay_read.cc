// The recording's text as a value: types and bounds are checked here, what numbers mean together by the scheme.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "base/to_size.h"
#include "json/json_fields.h"
#include "replay/areas_replay.h"

namespace ebb {
namespace {

// A value takes 16 bytes, so that a text of the largest size becomes one of some 130 MB.
constexpr std::size_t kMostReplayValues = std::size_t{1} << 23;
// Tokens of one pass in all layers, and of all passes; those of skipped blocks count, although the text does not hold them.
constexpr std::int64_t kMostPassEntries = std::int64_t{1} << 24;
constexpr std::int64_t kMostEntries = std::int64_t{1} << 25;

constexpr std::int64_t kLeast = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

std::int32_t int32_of(JsonFields& fields, std::string_view name, std::int32_t otherwise, std::int64_t least = kLeast,
                      std::int64_t most = kMost) {
  return static_cast<std::int32_t>(fields.integer(name, otherwise, least, most));
}

std::optional<std::int32_t> optional_int32(JsonFields& fields, std::string_view name) {
  if (fields.find(name) == nullptr) return std::nullopt;
  return int32_of(fields, name, 0);
}

double double_of(JsonFields& fields, std::string_view name, double otherwise) {
  const Json* value = fields.find(name);
  if (value == nullptr) return otherwise;
  if (value->is_number()) return value->get<double>();
  fields.refuse_type(name, "a number");
  return otherwise;
}

// The named value of an enumeration, by the function that finds it.
template <class T>
T named(JsonFields& fields, std::string_view name, T otherwise, Result<T> (*find)(std::string_view)) {
  const std::string text = fields.text(name);
  if (fields.find(name) == nullptr || !fields.status().ok()) return otherwise;
  const Result<T> found = find(text.substr(0, 64));
  if (found.ok()) return *found;
  fields.refuse(name, found.status().message());
  return otherwise;
}

AreasConfig read_config(JsonFields fields) {
  fields.refuse_others({"start_size", "recent_size", "max_cache_size", "aggregation_mode", "apply_rotation",
                        "snapkv_window_size", "kvcrush_config", "adaptive_rkv_config"});
  AreasConfig config;
  config.start_tokens = int32_of(fields, "start_size", config.start_tokens);
  config.recent_tokens = int32_of(fields, "recent_size", config.recent_tokens);
  config.max_tokens = int32_of(fields, "max_cache_size", config.max_tokens);
  config.aggregation = named(fields, "aggregation_mode", config.aggregation, find_aggregation);
  config.applies_rotation = fields.boolean("apply_rotation", false);
  config.n_window_queries = int32_of(fields, "snapkv_window_size", config.n_window_queries);
  if (auto crush = fields.object("kvcrush_config")) {
    crush->refuse_others({"budget", "anchor_point_mode", "rng_seed"});
    config.crush.budget_blocks = int32_of(*crush, "budget", 0);
    config.crush.anchor = named(*crush, "anchor_point_mode", config.crush.anchor, find_crush_anchor);
    config.crush.rng_seed =
        static_cast<std::uint32_t>(crush->integer("rng_seed", 0, 0, std::numeric_limits<std::uint32_t>::max()));
  }
  if (auto adaptive = fields.object("adaptive_rkv_config")) {
    adaptive->refuse_others({"attention_mass", "window_size"});
    config.adaptive.attention_mass = double_of(*adaptive, "attention_mass", config.adaptive.attention_mass);
    config.adaptive.n_passes = int32_of(*adaptive, "window_size", config.adaptive.n_passes);
  }
  return config;
}

// Adds numbers, those of arrays inside too, one level deep; false where there is anything else, or no room in a float.
bool add_floats(const Json& value, std::vector<float>& floats, bool is_inside = false) {
  if (value.is_number()) {
    const auto number = value.get<double>();
    if (std::abs(number) > FLT_MAX) return false;
    floats.push_back(static_cast<float>(number));
    return true;
  }
  return !is_inside && value.is_array() &&
         std::ranges::all_of(value, [&](const Json& one) { return add_floats(one, floats, true); });
}

std::vector<std::vector<float>> read_layers(JsonFields& fields, std::string_view name, bool has_rows) {
  const Json* value = fields.find(name);
  if (value == nullptr) return {};
  std::vector<std::vector<float>> layers;
  if (!value->is_array()) {
    fields.refuse_type(name, "an array with one array of numbers for each layer");
    return layers;
  }
  for (const Json& of_layer : *value) {
    std::vector<float>& floats = layers.emplace_back();
    const bool fits = of_layer.is_array() && std::ranges::all_of(of_layer, [&](const Json& one) {
                        return add_floats(one, floats, !has_rows);
                      });
    if (fits) continue;
    fields.refuse(name, fmt::format("layer {} must be an array of numbers{}, none above {:.3g}", layers.size() - 1,
                                    has_rows ? " or of rows of them" : "", FLT_MAX));
    return layers;
  }
  return layers;
}

std::vector<std::int32_t> read_skipped(JsonFields& fields) {
  std::vector<std::int32_t> blocks;
  const Json* value = fields.find("skipped");
  if (value == nullptr) return blocks;
  if (!value->is_array()) {
    fields.refuse_type("skipped", "an array of block numbers");
    return blocks;
  }
  for (const Json& one : *value) {
    const auto block = integer_between(one, 0, kMost);
    if (!block) {
      fields.refuse("skipped", "must be an array of block numbers, 0 or more");
      return blocks;
    }
    blocks.push_back(static_cast<std::int32_t>(*block));
  }
  return blocks;
}

std::int64_t n_tokens_of(const AreasReplayStep& step, std::int32_t block_size) {
  const std::size_t n_scores = step.scores.empty() ? 0 : step.scores.front().size();
  return static_cast<std::int64_t>(n_scores) + static_cast<std::int64_t>(step.skipped.size()) * block_size;
}

AreasReplayStep read_step(JsonFields& fields) {
  fields.refuse_others({"prompt", "scheduled", "processed", "scores", "skipped", "diversity"});
  if (fields.find("scores") == nullptr)
    fields.refuse_type("scores", "an array with one array of numbers for each layer");
  return {.n_scheduled = optional_int32(fields, "scheduled"),
          .n_processed = optional_int32(fields, "processed"),
          .scores = read_layers(fields, "scores", false),
          .skipped = read_skipped(fields),
          .diversity = read_layers(fields, "diversity", true)};
}

// Steps, and how many tokens those have that say they are of the prompt.
std::int64_t read_steps(JsonFields& fields, AreasReplay& replay) {
  if (fields.find("steps") == nullptr) fields.refuse_type("steps", "an array of objects");
  std::int64_t n_prompt = 0;
  std::int64_t n_entries = 0;
  bool is_over = false;
  for (JsonFields& one : fields.objects("steps")) {
    AreasReplayStep& step = replay.steps.emplace_back(read_step(one));
    const std::int64_t n_tokens = n_tokens_of(step, replay.shape.block_size);
    const std::int64_t n_pass_entries = n_tokens * std::max(replay.shape.n_layers, 1);
    n_entries += n_pass_entries;
    if (n_pass_entries > kMostPassEntries || n_entries > kMostEntries) {
      one.refuse("scores",
                 fmt::format("{} tokens in all layers, {} with the steps before; at most {} and {} are replayed",
                             n_pass_entries, n_entries, kMostPassEntries, kMostEntries));
      return 0;
    }
    const bool is_prompt = one.boolean("prompt", false);
    if (is_prompt && is_over) one.refuse("prompt", "the prompt's steps come first");
    is_over = is_over || !is_prompt;
    // Nothing leaves while the prompt is read, so what is cached is what was scheduled.
    if (is_prompt) n_prompt = step.n_scheduled ? n_prompt + *step.n_scheduled : n_tokens;
    if (!fields.status().ok()) return 0;
  }
  return n_prompt;
}

void read_prompt(JsonFields& fields, std::int64_t n_told, AreasReplay& replay) {
  const std::int64_t n_given = fields.integer("prompt_tokens", n_told, 1, 1 << 28);
  if (!fields.status().ok()) return;
  if (n_given < 1 || n_given > 1 << 28) {
    fields.refuse("prompt_tokens",
                  "is needed where no step says \"prompt\": true: the pass that ends the prompt never evicts");
  } else if (n_told > 0 && n_told != n_given) {
    fields.refuse("prompt_tokens", fmt::format("is {}, and the steps of the prompt have {} tokens", n_given, n_told));
  }
  replay.n_prompt = static_cast<std::int32_t>(n_given);
}

}  // namespace

Result<AreasReplay> read_areas_replay(std::string_view text) {
  if (text.size() > kMostReplayBytes) {
    return error(Code::kInvalidArgument, "a recording of {} bytes; at most {} are read", text.size(), kMostReplayBytes);
  }
  EBB_ASSIGN_OR_RETURN(const Json json, parse_json(text, kMostReplayValues));
  if (!json.is_object()) return error(Code::kInvalidArgument, "the recording must be a JSON object");
  JsonFields fields(json);
  fields.refuse_others({"block_size", "n_layers", "prompt_tokens", "num_kv_blocks", "max_num_batched_tokens",
                        "upstream", "cache_eviction_config", "steps"});
  AreasReplay replay;
  for (const char* name : {"block_size", "n_layers"}) {
    if (fields.find(name) == nullptr) fields.refuse_type(name, "an integer");
  }
  replay.shape.block_size = int32_of(fields, "block_size", 1, 1, 4096);
  replay.shape.n_layers = int32_of(fields, "n_layers", 1, 0, 1024);
  replay.n_pool_blocks = int32_of(fields, "num_kv_blocks", 0, 0);
  replay.n_batched_tokens = int32_of(fields, "max_num_batched_tokens", replay.n_batched_tokens, 1, 1 << 28);
  if (auto config = fields.needed_object("cache_eviction_config")) replay.config = read_config(*config);
  replay.config.upstream = fields.boolean("upstream", false);
  EBB_RETURN_IF_ERROR(fields.status());
  EBB_RETURN_IF_ERROR(replay.config.validate());
  const std::int64_t n_told = read_steps(fields, replay);
  EBB_RETURN_IF_ERROR(fields.status());
  read_prompt(fields, n_told, replay);
  EBB_RETURN_IF_ERROR(fields.status());
  return replay;
}

}  // namespace ebb
