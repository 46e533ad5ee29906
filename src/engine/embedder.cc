#include "engine/embedder.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "llama.h"

#include "text/libllama.h"
#include "text/vocabulary.h"

namespace ebb {
namespace {

// A text goes through the model in one pass. More: buffers of a pass take gigabytes with models of a long context.
constexpr std::int32_t kMostTokens = 8192;
// What llama_decode and llama_encode say after the abort callback did.
constexpr std::int32_t kAborted = 2;

struct FreeModel {
  void operator()(llama_model* model) const { llama_model_free(model); }
};
struct FreeContext {
  void operator()(llama_context* context) const { llama_free(context); }
};

Status llama_error(Code code, std::string_view what) {
  const std::string why = take_libllama_errors();
  return error(code, "libllama: {}{}{}", what, why.empty() ? "" : ": ", why);
}

bool is_cancelled_now(void* asked) {
  const auto& is_cancelled = **static_cast<const std::function<bool()>**>(asked);
  return is_cancelled && is_cancelled();
}

Result<std::vector<float>> normalised(std::span<const float> vector) {
  const double squares = std::transform_reduce(vector.begin(), vector.end(), 0.0, std::plus<>(),
                                               [](float x) { return static_cast<double>(x) * x; });
  if (!std::isfinite(squares) || squares <= 0.0) {
    return error(Code::kDamaged, "the embedding model gave a vector that is no direction; is its file damaged?");
  }
  const double scale = 1.0 / std::sqrt(squares);
  std::vector<float> unit;
  for (const float x : vector) unit.push_back(static_cast<float>(x * scale));
  return unit;
}

}  // namespace

struct Embedder::State {
  std::unique_ptr<Vocabulary> vocabulary;
  std::unique_ptr<llama_model, FreeModel> model;
  std::unique_ptr<llama_context, FreeContext> context;  // dies before its model
  std::int32_t max_tokens = 0;
  // Tells whether the text under way is cancelled.
  const std::function<bool()>* is_cancelled = nullptr;

  Status open_context(const EmbedderOptions& options);
};

Embedder::Embedder(std::unique_ptr<State> state) : state_(std::move(state)) {}
Embedder::~Embedder() = default;

Result<std::unique_ptr<Embedder>> Embedder::open(const EmbedderOptions& options) {
  start_libllama();
  auto state = std::make_unique<State>();
  // First, because it checks what libllama would stop the process for.
  EBB_ASSIGN_OR_RETURN(state->vocabulary, Vocabulary::load(options.model));
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = 0;
  state->model.reset(llama_model_load_from_file(options.model.c_str(), params));
  if (state->model == nullptr) {
    return llama_error(Code::kUnsupported, "cannot load " + options.model.filename().string());
  }
  EBB_RETURN_IF_ERROR(state->open_context(options));
  return std::unique_ptr<Embedder>(new Embedder(std::move(state)));
}

Status Embedder::State::open_context(const EmbedderOptions& options) {
  max_tokens = std::clamp(llama_model_n_ctx_train(model.get()), 1, kMostTokens);
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(max_tokens);
  params.n_batch = params.n_ctx;
  params.n_ubatch = params.n_ctx;
  params.n_threads = options.n_threads;
  params.n_threads_batch = options.n_threads;
  params.embeddings = true;
  params.abort_callback = is_cancelled_now;
  params.abort_callback_data = &is_cancelled;
  context.reset(llama_init_from_model(model.get(), params));
  if (context == nullptr) {
    return llama_error(Code::kOutOfBudget, fmt::format("no room to embed texts of {} tokens", max_tokens));
  }
  (void)take_libllama_errors();  // what it could do without is not for the next failure's message
  const auto pooling = llama_pooling_type(context.get());
  if (pooling == LLAMA_POOLING_TYPE_NONE || pooling == LLAMA_POOLING_TYPE_RANK) {
    return error(Code::kUnsupported,
                 "{} makes no vector of a whole text: its file names no pooling, or it ranks texts; give an embedding "
                 "model",
                 options.model.filename().string());
  }
  return {};
}

Result<std::vector<Token>> Embedder::tokenize(std::string_view text) const {
  EBB_ASSIGN_OR_RETURN(std::vector<Token> tokens, state_->vocabulary->tokenize(text));
  const llama_vocab* vocab = state_->vocabulary->llama();
  if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_WPM) {
    tokens.emplace_back(llama_vocab_sep(vocab));
  } else if (llama_vocab_get_add_eos(vocab)) {
    tokens.emplace_back(llama_vocab_eos(vocab));
  }
  return tokens;
}

Result<std::vector<float>> Embedder::embed(std::span<const Token> tokens, const std::function<bool()>& is_cancelled) {
  if (tokens.empty() || std::cmp_greater(tokens.size(), max_tokens())) {
    return error(Code::kInvalidArgument, "a text of {} tokens; the embedding model takes 1 to {}", tokens.size(),
                 max_tokens());
  }
  std::vector<llama_token> ids;
  for (const Token token : tokens) {
    if (!state_->vocabulary->contains(token)) {
      return error(Code::kInvalidArgument, "token {} is not one of the embedding model's {}", token.value(), n_vocab());
    }
    ids.push_back(token.value());
  }
  llama_context* const context = state_->context.get();
  llama_memory_t memory = llama_get_memory(context);
  if (memory != nullptr) llama_memory_clear(memory, false);
  state_->is_cancelled = &is_cancelled;
  const llama_batch batch = llama_batch_get_one(ids.data(), static_cast<std::int32_t>(ids.size()));
  const std::int32_t code = memory != nullptr ? llama_decode(context, batch) : llama_encode(context, batch);
  if (code == kAborted || (is_cancelled && is_cancelled())) return error(Code::kCancelled, "the client has left");
  if (code != 0) {
    return llama_error(Code::kOutOfBudget, fmt::format("no vector of {} tokens (code {})", ids.size(), code));
  }
  const float* const vector = llama_get_embeddings_seq(context, 0);
  if (vector == nullptr) return llama_error(Code::kUnsupported, "the model gave no vector");
  return normalised({vector, static_cast<std::size_t>(n_dimensions())});
}

std::int32_t Embedder::n_dimensions() const { return llama_model_n_embd_out(state_->model.get()); }
std::int32_t Embedder::max_tokens() const { return state_->max_tokens; }
std::int32_t Embedder::n_vocab() const { return state_->vocabulary->n_tokens(); }

}  // namespace ebb
