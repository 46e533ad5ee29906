#include "server/native_shape.h"

#include <utility>

#include "server/replies.h"

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

class NativeShape final : public ReplyShape {
 public:
  NativeShape(const Vocabulary& vocabulary, NativeShapeOptions options)
      : vocabulary_(vocabulary), options_(std::move(options)) {}

  std::string begin() override { return {}; }

  std::string progress(const Choice& choice) override {
    if (!options_.head.tells_progress) return {};
    Json json = part(choice, "");
    json["tokens"] = Json::array();
    json["prompt_progress"] = progress_json(*choice.progress);
    return sse_event(json);
  }

  std::string deltas(Choice& choice, std::span<const ReplyDelta> deltas) override {
    std::string bytes;
    for (const ReplyDelta& delta : deltas) {
      Json json = part(choice, delta.text);
      add_tokens(json, choice);
      add_timings_so_far(json, options_.head, choice);
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
    return {{"index", choice.index}, {"content", content}, {"stop", false}};
  }

  Json last(Choice& choice, std::string_view content) const {
    const RequestEnd& end = *choice.end;
    Json json = {{"index", choice.index}, {"content", content}, {"stop", true}};
    add_tokens(json, choice);
    json["model"] = options_.head.model;
    json["tokens_predicted"] = end.stats.n_generated;
    json["tokens_evaluated"] = choice.n_prompt;
    json["tokens_cached"] = usage_totals({&choice, 1}).n_cached;
    json["prompt"] = options_.prompts.at(static_cast<std::size_t>(choice.index));
    json["has_new_line"] = choice.reply.content.find('\n') != std::string::npos;
    json["truncated"] = false;
    json["stop_type"] = stop_type(end.reason);
    json["timings"] = timings_json({&choice, 1});
    json["ebb"] = ebb_json(options_.head, {&choice, 1});
    return json;
  }

  void add_tokens(Json& json, Choice& choice) const {
    json["tokens"] = Json::array();
    const Json chances = take_logprobs(choice, vocabulary_);
    if (chances.is_null()) return;
    if (options_.returns_chances) json["completion_probabilities"] = chances["content"];
    if (!options_.returns_tokens) return;
    for (const Json& token : chances["content"]) json["tokens"].push_back(token["id"]);
  }

  const Vocabulary& vocabulary_;
  NativeShapeOptions options_;
};

}  // namespace

std::unique_ptr<ReplyShape> make_native_shape(const Vocabulary& vocabulary, NativeShapeOptions options) {
  return std::make_unique<NativeShape>(vocabulary, std::move(options));
}

}  // namespace ebb
