#include "server/text_shape.h"

#include <utility>

#include "server/replies.h"
#include "server/sse.h"

namespace ebb {
namespace {

class TextShape final : public ReplyShape {
 public:
  TextShape(const Vocabulary& vocabulary, ReplyHead head, bool include_usage)
      : vocabulary_(vocabulary), head_(std::move(head)), include_usage_(include_usage) {}

  std::string begin() override { return {}; }

  std::string progress(const Choice& choice) override {
    if (!head_.tells_progress) return {};
    Json json = reply_shell(head_, "text_completion");
    json["choices"].push_back(
        {{"index", choice.index}, {"text", ""}, {"logprobs", nullptr}, {"finish_reason", nullptr}});
    json["prompt_progress"] = progress_json(*choice.progress);
    return sse_event(json);
  }

  std::string deltas(Choice& choice, std::span<const ReplyDelta> deltas) override {
    std::string bytes;
    for (const ReplyDelta& delta : deltas) {
      Json json = part(choice, delta.text, nullptr);
      add_timings_so_far(json, head_, choice);
      bytes += sse_event(json);
    }
    return bytes;
  }

  std::string end(Choice& choice) override { return sse_event(part(choice, "", finish_name(choice))); }

  std::string end_all(std::span<const Choice> choices) override {
    Json json = reply_shell(head_, "text_completion");
    if (!include_usage_) return std::string(kSseDone);
    add_counters(json, choices);
    return sse_event(json) += kSseDone;
  }

  Json whole(std::span<Choice> choices) override {
    Json json = reply_shell(head_, "text_completion");
    for (Choice& choice : choices) {
      json["choices"].push_back(choice_json(choice, choice.reply.content, finish_name(choice)));
    }
    add_counters(json, choices);
    return json;
  }

 private:
  Json part(Choice& choice, std::string_view text, const Json& reason) {
    Json json = reply_shell(head_, "text_completion");
    json["choices"].push_back(choice_json(choice, text, reason));
    return json;
  }

  Json choice_json(Choice& choice, std::string_view text, const Json& reason) {
    return {{"index", choice.index}, {"text", text}, {"logprobs", take_legacy(choice)}, {"finish_reason", reason}};
  }

  // OpenAI's older shape: lists side by side.
  Json take_legacy(Choice& choice) {
    if (choice.chances.empty()) return nullptr;
    Json tokens = Json::array();
    Json logprobs = Json::array();
    Json top = Json::array();
    for (const TokenChances& chances : std::exchange(choice.chances, {})) {
      tokens.push_back(token_bytes(vocabulary_, chances.kept.token));
      logprobs.push_back(chances.kept.logprob);
      Json likeliest = Json::object();
      for (const TokenChance& chance : chances.likeliest) {
        likeliest[token_bytes(vocabulary_, chance.token)] = chance.logprob;
      }
      top.push_back(std::move(likeliest));
    }
    return {{"tokens", tokens}, {"token_logprobs", logprobs}, {"top_logprobs", top}};
  }

  void add_counters(Json& json, std::span<const Choice> choices) const {
    json["usage"] = usage_json(choices);
    json["timings"] = timings_json(choices);
    json["ebb"] = ebb_json(head_, choices);
  }

  const Vocabulary& vocabulary_;
  ReplyHead head_;
  bool include_usage_;
};

}  // namespace

std::unique_ptr<ReplyShape> make_text_shape(const Vocabulary& vocabulary, ReplyHead head, bool include_usage) {
  return std::make_unique<TextShape>(vocabulary, std::move(head), include_usage);
}

}  // namespace ebb
