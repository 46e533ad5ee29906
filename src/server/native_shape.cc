#include "server/native_shape.h"

#include <ranges>
#include <utility>

#include "server/replies.h"
#include "server/sampling_fields.h"

namespace ebb {
namespace {

std::string_view stop_type(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndOfGeneration: return "eos";
    case FinishReason::kStopString: return "word";
    case FinishReason::kLength: return "limit";
    case FinishReason::kCancelled: return "none";
  }
  return "none";
}

// What `path` leads to, member by member; null where there is no such.
const Json* find_path(const Json& json, std::string_view path) {
  const Json* at = &json;
  for (const auto& part : std::views::split(path, '/')) {
    const std::string name(part.begin(), part.end());
    if (!at->is_object() || !at->contains(name)) return nullptr;
    at = &(*at)[name];
  }
  return at;
}

class NativeShape final : public ReplyShape {
 public:
  NativeShape(const Vocabulary& vocabulary, NativeShapeOptions options)
      : vocabulary_(vocabulary), options_(std::move(options)) {}

  std::string begin() override { return {}; }

  std::string progress(const Choice& choice) override {
    if (!options_.head.tells_progress) return {};
    Json json = part(choice, "");
    json["prompt_progress"] = progress_json(*choice.progress);
    if (options_.head.tells_timings) json["timings"] = timings_so_far_json(choice);
    return sse_event(json);
  }

  std::string deltas(Choice& choice, std::span<const ReplyDelta> deltas) override {
    std::string bytes;
    for (const ReplyDelta& delta : deltas) {
      Json json = part(choice, delta.text);
      add_tokens(json, choice);
      if (options_.head.tells_timings) json["timings"] = timings_so_far_json(choice);
      bytes += sse_event(json);
    }
    return bytes;
  }

  std::string end(Choice& choice) override { return sse_event(last(choice, "")); }

  // No [DONE]: the last event says "stop".
  std::string end_all(std::span<const Choice> /*choices*/) override { return {}; }

  Json whole(std::span<Choice> choices) override {
    Json all = Json::array();
    for (Choice& choice : choices) all.push_back(last(choice, choice.reply.content));
    return all.size() == 1 ? Json(all.front()) : all;
  }

 private:
  static Json part(const Choice& choice, std::string_view content) {
    return {{"index", choice.index},
            {"content", content},
            {"tokens", Json::array()},
            {"stop", false},
            {"id_slot", choice.progress->seat},
            {"tokens_predicted", choice.progress->stats.n_generated},
            {"tokens_evaluated", choice.n_prompt}};
  }

  Json last(Choice& choice, std::string_view content) const {
    const RequestEnd& end = *choice.end;
    Json json = part(choice, content);
    add_tokens(json, choice);
    json["stop"] = true;
    json["model"] = options_.head.model;
    json["generation_settings"] = generation_settings_json(options_.generation, choice.seed);
    json["tokens_cached"] = choice.progress->n_cached;
    json["prompt"] = options_.prompts.at(static_cast<std::size_t>(choice.index));
    json["has_new_line"] = choice.reply.content.find('\n') != std::string::npos;
    // Of a reply; a prompt that does not fit is refused, never cut.
    json["truncated"] = is_ended_by_context(choice, options_.generation.options.max_tokens);
    json["stop_type"] = stop_type(end.reason);
    json["stopping_word"] = end.stop_string;
    json["timings"] = timings_so_far_json(choice);
    json["ebb"] = ebb_json(options_.head, {&choice, 1});
    return options_.response_fields.empty() ? json : picked(json);
  }

  [[nodiscard]] Json picked(const Json& json) const {
    Json picked = Json::object();
    for (const std::string& path : options_.response_fields) {
      if (const Json* found = find_path(json, path); found != nullptr) picked[path] = *found;
    }
    return picked;
  }

  void add_tokens(Json& json, Choice& choice) const {
    const Json chances = take_logprobs(choice, vocabulary_);
    if (chances.is_null()) return;
    if (options_.generation.options.n_chances) json["completion_probabilities"] = chances["content"];
    if (!options_.generation.returns_tokens && !options_.generation.stream) return;
    for (const Json& token : chances["content"]) json["tokens"].push_back(token["id"]);
  }

  const Vocabulary& vocabulary_;
  NativeShapeOptions options_;
};

}  // namespace

Json generation_settings_json(const GenerationRequest& request, std::optional<std::uint32_t> seed) {
  const GenerationOptions& options = request.options;
  SamplingOptions sampling = options.sampling;
  sampling.seed = seed;
  Json json = sampling_json(sampling);
  json.update({{"stop", options.stop_strings},
               {"max_tokens", options.max_tokens},
               {"n_predict", options.max_tokens},
               {"n_probs", options.n_chances.value_or(0)},
               {"post_sampling_probs", options.tells_drawn_chances},
               {"stream", request.stream},
               {"timings_per_token", request.tells_timings}});
  return json;
}

std::unique_ptr<ReplyShape> make_native_shape(const Vocabulary& vocabulary, NativeShapeOptions options) {
  return std::make_unique<NativeShape>(vocabulary, std::move(options));
}

}  // namespace ebb
