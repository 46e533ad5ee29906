#include "engine/embedder.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "llama.h"

#include "gguf/mapped_file.h"
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
struct FreeBatch {
  void operator()(llama_batch* batch) const {
    llama_batch_free(*batch);
    delete batch;
  }
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
  std::shared_ptr<const Vocabulary> vocabulary;
  std::shared_ptr<llama_model> model;
  Hash128 fingerprint;
  std::unique_ptr<llama_context, FreeContext> context;  // dies before its model
  std::int32_t max_tokens = 0;
  // Tells whether the text under way is cancelled.
  const std::function<bool()>* is_cancelled = nullptr;

  Status open_context(const EmbedderOptions& options);
  [[nodiscard]] Status check(std::span<const Token> tokens) const;
  Status run(const llama_batch& batch, const std::function<bool()>& is_cancelled);
  [[nodiscard]] Result<std::vector<float>> vector(std::int32_t sequence) const;
};

Embedder::Embedder(std::unique_ptr<State> state) : state_(std::move(state)) {}
Embedder::~Embedder() = default;

Result<std::unique_ptr<Embedder>> Embedder::open(const EmbedderOptions& options) {
  start_libllama();
  auto state = std::make_unique<State>();
  // First, because it checks what libllama would stop the process for.
  EBB_ASSIGN_OR_RETURN(std::unique_ptr<Vocabulary> vocabulary, Vocabulary::load(options.model));
  state->vocabulary = std::move(vocabulary);
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = 0;
  state->model = std::shared_ptr<llama_model>(llama_model_load_from_file(options.model.c_str(), params), FreeModel());
  if (state->model == nullptr) {
    return llama_error(Code::kUnsupported, "cannot load " + options.model.filename().string());
  }
  EBB_RETURN_IF_ERROR(state->open_context(options));
  EBB_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(options.model));
  state->fingerprint = hash_bytes(file.bytes());
  return std::unique_ptr<Embedder>(new Embedder(std::move(state)));
}

Result<std::unique_ptr<Embedder>> Embedder::open_beside(const EmbedderOptions& options) const {
  auto state = std::make_unique<State>();
  state->vocabulary = state_->vocabulary;
  state->model = state_->model;
  state->fingerprint = state_->fingerprint;
  EBB_RETURN_IF_ERROR(state->open_context(options));
  return std::unique_ptr<Embedder>(new Embedder(std::move(state)));
}

Status Embedder::State::open_context(const EmbedderOptions& options) {
  max_tokens = std::clamp(llama_model_n_ctx_train(model.get()), 1, kMostTokens);
  if (options.most_tokens > 0) max_tokens = std::min(max_tokens, options.most_tokens);
  // libllama makes room for as many tokens of each text.
  const std::int32_t n_together = std::min(options.n_together, max_tokens);
  max_tokens -= max_tokens % n_together;
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(max_tokens);
  params.n_batch = params.n_ctx;
  params.n_ubatch = params.n_ctx;
  params.n_seq_max = static_cast<std::uint32_t>(n_together);
  params.kv_unified = true;
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

Status Embedder::State::check(std::span<const Token> tokens) const {
  if (tokens.empty() || std::cmp_greater(tokens.size(), max_tokens)) {
    return error(Code::kInvalidArgument, "a text of {} tokens; the embedding model takes 1 to {}", tokens.size(),
                 max_tokens);
  }
  for (const Token token : tokens) {
    if (vocabulary->contains(token)) continue;
    return error(Code::kInvalidArgument, "token {} is not one of the embedding model's {}", token.value(),
                 vocabulary->n_tokens());
  }
  return {};
}

Status Embedder::State::run(const llama_batch& batch, const std::function<bool()>& asked) {
  llama_memory_t memory = llama_get_memory(context.get());
  if (memory != nullptr) llama_memory_clear(memory, false);
  is_cancelled = &asked;
  const std::int32_t code = memory != nullptr ? llama_decode(context.get(), batch) : llama_encode(context.get(), batch);
  if (code == kAborted || (asked && asked())) return error(Code::kCancelled, "the client has left");
  if (code == 0) return {};
  return llama_error(Code::kOutOfBudget, fmt::format("no vector of {} tokens (code {})", batch.n_tokens, code));
}

Result<std::vector<float>> Embedder::State::vector(std::int32_t sequence) const {
  const float* const values = llama_get_embeddings_seq(context.get(), sequence);
  if (values == nullptr) return llama_error(Code::kUnsupported, "the model gave no vector");
  return normalised({values, static_cast<std::size_t>(llama_model_n_embd_out(model.get()))});
}

Result<std::vector<float>> Embedder::embed(std::span<const Token> tokens, const std::function<bool()>& is_cancelled) {
  EBB_RETURN_IF_ERROR(state_->check(tokens));
  std::vector<llama_token> ids;
  for (const Token token : tokens) ids.push_back(token.value());
  EBB_RETURN_IF_ERROR(
      state_->run(llama_batch_get_one(ids.data(), static_cast<std::int32_t>(ids.size())), is_cancelled));
  return state_->vector(0);
}

Result<std::vector<std::vector<float>>> Embedder::embed_together(std::span<const std::vector<Token>> texts,
                                                                 const std::function<bool()>& is_cancelled) {
  std::size_t n_tokens = 0;
  for (const std::vector<Token>& text : texts) {
    EBB_RETURN_IF_ERROR(state_->check(text));
    n_tokens += text.size();
  }
  const std::uint32_t most = llama_n_seq_max(state_->context.get());
  if (std::cmp_greater(texts.size(), most) || std::cmp_greater(n_tokens, max_tokens())) {
    return error(Code::kInvalidArgument, "{} texts of {} tokens together; give {} of {} at most", texts.size(),
                 n_tokens, most, max_tokens());
  }
  std::vector<std::vector<float>> vectors;
  if (texts.empty()) return vectors;
  const std::unique_ptr<llama_batch, FreeBatch> batch(
      new llama_batch(llama_batch_init(static_cast<std::int32_t>(n_tokens), 0, 1)));
  for (std::size_t s = 0; s < texts.size(); ++s) {
    for (std::size_t i = 0; i < texts[s].size(); ++i) {
      const std::int32_t at = batch->n_tokens++;
      batch->token[at] = texts[s][i].value();
      batch->pos[at] = static_cast<llama_pos>(i);
      batch->n_seq_id[at] = 1;
      batch->seq_id[at][0] = static_cast<llama_seq_id>(s);
      batch->logits[at] = 1;
    }
  }
  EBB_RETURN_IF_ERROR(state_->run(*batch, is_cancelled));
  for (std::size_t s = 0; s < texts.size(); ++s) {
    EBB_ASSIGN_OR_RETURN(vectors.emplace_back(), state_->vector(static_cast<std::int32_t>(s)));
  }
  return vectors;
}

Hash128 Embedder::fingerprint() const { return state_->fingerprint; }
std::int32_t Embedder::n_dimensions() const { return llama_model_n_embd_out(state_->model.get()); }
std::int32_t Embedder::max_tokens() const { return state_->max_tokens; }
std::int32_t Embedder::n_vocab() const { return state_->vocabulary->n_tokens(); }

}  // namespace ebb
