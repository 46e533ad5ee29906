// Embeddings: texts to vectors. They are computed on a thread of their own, beside the scheduler's, in the order in
// which they came; those of clients that left are not computed to the end.
#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <utility>

#include "engine/embedder.h"
#include "json/parse_json.h"
#include "server/api_state.h"

namespace ebb {
namespace {

// OpenAI's own limit.
constexpr std::size_t kMostInputs = 2048;

using Texts = std::vector<std::vector<Token>>;

Status wrong_input() {
  return error(Code::kInvalidArgument,
               "Field 'input': must be a string, an array of strings, an array of token ids or an array of those");
}

// Of ids, and of strings among them. Ids of other vocabularies are refused by the embedder.
Result<std::vector<Token>> tokens_of(const Json& ids, const Embedder& embedder) {
  std::vector<Token> tokens;
  for (const Json& id : ids) {
    if (id.is_string()) {
      EBB_ASSIGN_OR_RETURN(const std::vector<Token> more, embedder.tokenize(id.get_ref<const std::string&>()));
      tokens.insert(tokens.end(), more.begin(), more.end());
      continue;
    }
    const auto token = integer_between(id, 0, std::numeric_limits<std::int32_t>::max());
    if (!token) return wrong_input();
    tokens.emplace_back(static_cast<std::int32_t>(*token));
  }
  return tokens;
}

Result<std::vector<Token>> text_of(const Json& one, const Embedder& embedder) {
  if (one.is_string()) return embedder.tokenize(one.get_ref<const std::string&>());
  return one.is_array() ? tokens_of(one, embedder) : wrong_input();
}

Result<Texts> texts_of(const Json& input, const Embedder& embedder) {
  Texts texts;
  if (!input.is_array() || (!input.empty() && input.front().is_number())) {
    EBB_ASSIGN_OR_RETURN(texts.emplace_back(), text_of(input, embedder));
    return texts;
  }
  if (input.empty() || input.size() > kMostInputs) {
    return error(Code::kInvalidArgument, "Field 'input': {} texts; send 1 to {} in one request", input.size(),
                 kMostInputs);
  }
  for (const Json& one : input) {
    EBB_ASSIGN_OR_RETURN(texts.emplace_back(), text_of(one, embedder));
  }
  return texts;
}

// Before any work: a client learns at once which of its texts cannot be.
Status check_texts(const Texts& texts, const Embedder& embedder) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty() || std::cmp_greater(texts[i].size(), embedder.max_tokens())) {
      return error(Code::kInvalidArgument, "Field 'input': text {} has {} tokens; the embedding model takes 1 to {}", i,
                   texts[i].size(), embedder.max_tokens());
    }
    const auto is_foreign = [&](Token token) { return token.value() >= embedder.n_vocab(); };
    if (const auto found = std::ranges::find_if(texts[i], is_foreign); found != texts[i].end()) {
      return error(Code::kInvalidArgument, "Field 'input': text {} has token {}; the embedding model has {}", i,
                   found->value(), embedder.n_vocab());
    }
  }
  return {};
}

struct EmbeddingRequest {
  Texts texts;
  bool as_base64 = false;
};

Result<EmbeddingRequest> parse(const std::string& text, const Embedder& embedder) {
  EBB_ASSIGN_OR_RETURN(const Json body, parse_json(text));
  JsonFields fields(body);
  EBB_RETURN_IF_ERROR(fields.status());
  (void)fields.text("model");
  const std::string format = fields.text("encoding_format", "float");
  if (format != "float" && format != "base64") fields.refuse("encoding_format", "must be \"float\" or \"base64\"");
  const std::int64_t n = embedder.n_dimensions();
  if (fields.integer("dimensions", n, 1, std::numeric_limits<std::int32_t>::max()) != n) {
    fields.refuse("dimensions", fmt::format("this model's vectors have {}; leave the field out", n));
  }
  EBB_RETURN_IF_ERROR(fields.status());
  // llama.cpp's name, too.
  const Json* const input = fields.find("input") != nullptr ? fields.find("input") : fields.find("content");
  if (input == nullptr) return wrong_input();
  EmbeddingRequest request{.as_base64 = format == "base64"};
  EBB_ASSIGN_OR_RETURN(request.texts, texts_of(*input, embedder));
  EBB_RETURN_IF_ERROR(check_texts(request.texts, embedder));
  return request;
}

// Base64 of little-endian 32-bit floats (RFC 4648 §4).
std::string base64(std::span<const float> vector) {
  static constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  for (const float x : vector) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((bits >> shift) & 0xFFU);
  }
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = (group << 8U) | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) text += k <= n ? kLetters[(group >> (18 - 6 * k)) & 63U] : '=';
  }
  return text;
}

Result<Json> embed(ApiState& state, const EmbeddingRequest& request, const std::function<bool()>& has_left) {
  Json data = Json::array();
  std::size_t n_tokens = 0;
  for (const std::vector<Token>& text : request.texts) {
    EBB_ASSIGN_OR_RETURN(const std::vector<float> vector, state.options.embedder->embed(text, has_left));
    data.push_back({{"object", "embedding"},
                    {"index", data.size()},
                    {"embedding", request.as_base64 ? Json(base64(vector)) : Json(vector)}});
    n_tokens += text.size();
  }
  return Json{{"object", "list"},
              {"data", std::move(data)},
              {"model", state.options.embedding_model_name},
              {"usage", {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}}}};
}

void answer(ApiState& state, const ApiCall& call, Json (*shape)(const Json&)) {
  if (state.options.embedder == nullptr) {
    return call.send(to_answer({.status = 501,
                                .type = "not_supported_error",
                                .message = "this server has no embedding model; start it with --embedding-model"}));
  }
  Result<EmbeddingRequest> request = parse(call.request.body, *state.options.embedder);
  if (!request.ok()) return refuse(call, request.status());
  auto has_left = std::make_shared<std::atomic<bool>>(false);
  if (!call.responder->on_close([has_left] { *has_left = true; })) return;
  const Workers::Room room = state.embedding_worker.post(
      call.owner, call.request.body.size(),
      [&state, has_left, shape, request = *std::move(request),
       reply = ApiCall{.responder = call.responder, .headers = call.headers}] {
        answer_guarded(reply, [&] {
          const Result<Json> answer = embed(state, request, [&] { return has_left->load(); });
          reply.send(answer.ok() ? json_answer(shape(*answer)) : to_answer(to_api_error(answer.status())));
        });
      },
      state.most_waiting());
  if (room == Workers::Room::kTaken) return;
  call.send(to_answer({.status = 429,
                       .type = "rate_limit_error",
                       .message = "too many texts are waiting to be embedded; try again later",
                       .retry_after_s = 1}));
}

Json as_it_is(const Json& answer) { return answer; }

// llama.cpp's own: the texts alone, and of each a list of vectors, of which there is one.
Json as_native(const Json& answer) {
  Json list = Json::array();
  for (const Json& one : answer["data"]) {
    list.push_back({{"index", one["index"]}, {"embedding", Json::array({one["embedding"]})}});
  }
  return list;
}

}  // namespace

void answer_embeddings(ApiState& state, const ApiCall& call) { answer(state, call, as_it_is); }

void answer_native_embedding(ApiState& state, const ApiCall& call) { answer(state, call, as_native); }

}  // namespace ebb
