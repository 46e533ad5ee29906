#include "server/text_shape.h"

#include <map>
#include <utility>

#include "server/replies.h"
#include "server/sse.h"
#include "text/utf8_stream.h"

namespace ebb {
namespace {

// Where in a choice's text its tokens begin, in characters. A token that begins inside a character begins where that
// does.
class TextOffsets {
 public:
  // Where a token with these bytes begins, behind all before it.
  std::int64_t next(std::string_view bytes) {
    const std::int64_t begin = n_characters_;
    for (const char byte : utf8_.push(bytes)) n_characters_ += is_first_of_character(byte) ? 1 : 0;
    return begin;
  }

 private:
  static bool is_first_of_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

  Utf8Stream utf8_;
  std::int64_t n_characters_ = 0;
};

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
    if (head_.tells_timings) json["timings"] = timings_so_far_json(choice);
    return sse_event(json);
  }

  std::string deltas(Choice& choice, std::span<const ReplyDelta> deltas) override {
    std::string bytes;
    for (const ReplyDelta& delta : deltas) {
      Json json = part(choice, delta.text, nullptr);
      if (head_.tells_timings) json["timings"] = timings_so_far_json(choice);
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
    Json offsets = Json::array();
    for (const TokenChances& chances : std::exchange(choice.chances, {})) {
      tokens.push_back(token_bytes(vocabulary_, chances.kept.token));
      const Result<std::string> shown = vocabulary_.piece(chances.kept.token, SpecialTokens::kHide);
      offsets.push_back(offsets_[choice.index].next(shown.ok() ? *shown : std::string()));
      logprobs.push_back(chances.kept.logprob);
      Json likeliest = Json::object();
      for (const TokenChance& chance : chances.likeliest) {
        likeliest[token_bytes(vocabulary_, chance.token)] = chance.logprob;
      }
      top.push_back(std::move(likeliest));
    }
    return {{"tokens", tokens}, {"token_logprobs", logprobs}, {"top_logprobs", top}, {"text_offset", offsets}};
  }

  void add_counters(Json& json, std::span<const Choice> choices) const {
    json["usage"] = usage_json(choices);
    json["timings"] = timings_json(choices);
    json["ebb"] = ebb_json(head_, choices);
  }

  const Vocabulary& vocabulary_;
  ReplyHead head_;
  bool include_usage_;
  std::map<std::int32_t, TextOffsets> offsets_;  // by choice
};

}  // namespace

std::unique_ptr<ReplyShape> make_text_shape(const Vocabulary& vocabulary, ReplyHead head, bool include_usage) {
  return std::make_unique<TextShape>(vocabulary, std::move(head), include_usage);
}

}  // namespace ebb
