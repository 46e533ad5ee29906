#include "bench/llama_peer.h"

#include <algorithm>
#include <utility>

#include "llama.h"

#include "text/libllama.h"

namespace ebb {
namespace {

struct FreeModel {
  void operator()(llama_model* model) const { llama_model_free(model); }
};
struct FreeContext {
  void operator()(llama_context* context) const { llama_free(context); }
};

ggml_type kv_ggml_type(RowType type) {
  switch (type) {
    case RowType::kF32: return GGML_TYPE_F32;
    case RowType::kF16: return GGML_TYPE_F16;
    case RowType::kBF16: return GGML_TYPE_BF16;
    case RowType::kQ8_0: return GGML_TYPE_Q8_0;
    case RowType::kKivi4: break;  // load() refuses it
  }
  return GGML_TYPE_F16;
}

llama_flash_attn_type flash_attn_type(FlashAttention wanted) {
  switch (wanted) {
    case FlashAttention::kAuto: return LLAMA_FLASH_ATTN_TYPE_AUTO;
    case FlashAttention::kOff: return LLAMA_FLASH_ATTN_TYPE_DISABLED;
    case FlashAttention::kOn: return LLAMA_FLASH_ATTN_TYPE_ENABLED;
  }
  return LLAMA_FLASH_ATTN_TYPE_AUTO;
}

// libllama says what "auto" came to only in its log. While this lives, the log is searched for that line; everything
// goes on to whoever listened before.
class FlashAttentionListener {
 public:
  FlashAttentionListener() {
    llama_log_get(&next_, &next_data_);
    llama_log_set(&FlashAttentionListener::hear, this);
  }
  ~FlashAttentionListener() { llama_log_set(next_, next_data_); }
  FlashAttentionListener(const FlashAttentionListener&) = delete;
  FlashAttentionListener& operator=(const FlashAttentionListener&) = delete;

  [[nodiscard]] bool heard_enabled() const { return enabled_; }

 private:
  static void hear(ggml_log_level level, const char* text, void* data) {
    auto* self = static_cast<FlashAttentionListener*>(data);
    const std::string_view line = text == nullptr ? "" : text;
    if (line.find("Flash Attention enabled") != std::string_view::npos) self->enabled_ = true;
    if (self->next_ != nullptr) self->next_(level, text, self->next_data_);
  }

  ggml_log_callback next_ = nullptr;
  void* next_data_ = nullptr;
  bool enabled_ = false;
};

Status llama_error(Code code, const std::string& what) {
  const std::string why = take_libllama_errors();
  return error(code, "libllama: {}{}{}", what, why.empty() ? "" : ": ", why);
}

}  // namespace

std::string llama_version_text() { return fmt::format("libllama {}, ggml {}", llama_version(), ggml_version()); }

Token argmax(std::span<const float> logits) {
  return Token(static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
}

struct LlamaPeer::State {
  LlamaPeerOptions options;
  std::unique_ptr<llama_model, FreeModel> model;
  std::unique_ptr<llama_context, FreeContext> context;  // dies before its model
  bool flash_attention_is_on = false;
  std::int32_t n_resident = 0;
  // Resident tokens of the sequences beside the first, by index; [0] is not used.
  std::vector<std::int32_t> n_others;

  // The batch under way.
  std::vector<llama_token> tokens;
  std::vector<std::int8_t> wants_logits;
};

LlamaPeer::LlamaPeer(std::unique_ptr<State> state) : state_(std::move(state)) {}
LlamaPeer::~LlamaPeer() = default;

Result<std::unique_ptr<LlamaPeer>> LlamaPeer::load(const std::filesystem::path& gguf, const LlamaPeerOptions& options) {
  if (options.n_threads < 1 || options.n_ctx < 1 || options.n_ubatch < 1 || options.n_sequences < 1) {
    return error(Code::kInvalidArgument,
                 "a peer of {} threads, {} tokens, {} rows a pass, {} sequences: each must be at least 1",
                 options.n_threads, options.n_ctx, options.n_ubatch, options.n_sequences);
  }
  if (options.kv_type == RowType::kKivi4) {
    return error(Code::kUnsupported, "libllama has no kivi4 K and V to compare with; choose f16, bf16, f32 or q8_0");
  }
  start_libllama();
  std::unique_ptr<State> state(new State{.options = options});

  llama_model_params model_params = llama_model_default_params();
  model_params.n_gpu_layers = 0;
  model_params.use_extra_bufts = options.use_repacked;
  state->model.reset(llama_model_load_from_file(gguf.c_str(), model_params));
  if (state->model == nullptr) return llama_error(Code::kUnsupported, "cannot load " + gguf.string());

  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(options.n_ctx) * static_cast<std::uint32_t>(options.n_sequences);
  params.n_seq_max = static_cast<std::uint32_t>(options.n_sequences);
  params.kv_unified = options.unified_kv;
  params.n_batch = static_cast<std::uint32_t>(options.n_ubatch);
  params.n_ubatch = static_cast<std::uint32_t>(options.n_ubatch);
  params.n_threads = options.n_threads;
  params.n_threads_batch = options.n_threads;
  params.flash_attn_type = flash_attn_type(options.flash_attention);
  params.type_k = kv_ggml_type(options.kv_type);
  params.type_v = kv_ggml_type(options.kv_type);
  params.offload_kqv = false;
  params.op_offload = false;
  // Keeps every position of sliding layers, so that truncate() works with them too.
  params.swa_full = true;
  {
    const FlashAttentionListener listener;
    state->context.reset(llama_init_from_model(state->model.get(), params));
    state->flash_attention_is_on = options.flash_attention == FlashAttention::kOn || listener.heard_enabled();
  }
  if (state->context == nullptr) {
    return llama_error(Code::kOutOfBudget, fmt::format("no context of {} tokens for {}", options.n_ctx, gguf.string()));
  }
  state->n_others.assign(static_cast<std::size_t>(options.n_sequences), 0);
  (void)take_libllama_errors();  // what it could do without is not for the next failure's message
  return std::unique_ptr<LlamaPeer>(new LlamaPeer(std::move(state)));
}

std::string LlamaPeer::description() const {
  const char* flash_attention = state_->options.flash_attention == FlashAttention::kAuto
                                    ? (state_->flash_attention_is_on ? "auto (on)" : "auto (off)")
                                    : (state_->flash_attention_is_on ? "on" : "off");
  return fmt::format("{}, flash attention {}, {} KV, {} rows a pass, repacked weights {}", llama_version_text(),
                     flash_attention, row_type_name(state_->options.kv_type), state_->options.n_ubatch,
                     state_->options.use_repacked ? "on" : "off");
}

std::int32_t LlamaPeer::n_resident() const { return state_->n_resident; }
std::int32_t LlamaPeer::n_ctx() const { return static_cast<std::int32_t>(llama_n_ctx(state_->context.get())); }

std::int32_t LlamaPeer::n_vocab() const { return llama_vocab_n_tokens(llama_model_get_vocab(state_->model.get())); }

Status LlamaPeer::decode(std::span<const Token> tokens, bool all_logits) {
  State& s = *state_;
  // libllama aborts on more than fit.
  if (std::cmp_greater(tokens.size(), n_ctx() - s.n_resident)) {
    return error(Code::kOutOfBudget, "libllama: {} tokens behind {} do not fit into a context of {}", tokens.size(),
                 s.n_resident, n_ctx());
  }
  s.tokens.clear();
  for (const Token token : tokens) s.tokens.push_back(token.value());
  s.wants_logits.assign(tokens.size(), all_logits ? std::int8_t{1} : std::int8_t{0});
  s.wants_logits.back() = 1;
  llama_batch batch{};  // without positions and sequences, libllama goes on behind what sequence 0 holds
  batch.n_tokens = static_cast<std::int32_t>(tokens.size());
  batch.token = s.tokens.data();
  batch.logits = s.wants_logits.data();
  const std::int32_t code = llama_decode(s.context.get(), batch);
  if (code != 0) {
    return llama_error(Code::kInvalidArgument, fmt::format("{} tokens behind {} of {} were refused (llama_decode: {})",
                                                           tokens.size(), s.n_resident, n_ctx(), code));
  }
  s.n_resident += batch.n_tokens;
  return {};
}

Status LlamaPeer::append(std::span<const Token> tokens) {
  const std::size_t most = llama_n_batch(state_->context.get());  // at most the context
  while (!tokens.empty()) {
    const std::size_t n = std::min(tokens.size(), most);
    EBB_RETURN_IF_ERROR(decode(tokens.first(n), false));
    tokens = tokens.subspan(n);
  }
  return {};
}

std::span<const float> LlamaPeer::last_logits() const {
  const float* logits = llama_get_logits_ith(state_->context.get(), -1);
  EBB_CHECK(logits != nullptr, "no logits: nothing was appended");
  return {logits, static_cast<std::size_t>(n_vocab())};
}

Status LlamaPeer::truncate(std::int32_t n_tokens) {
  EBB_CHECK(n_tokens >= 0 && n_tokens <= n_resident(), "{} of {} tokens", n_tokens, n_resident());
  if (!llama_memory_seq_rm(llama_get_memory(state_->context.get()), 0, n_tokens, -1)) {
    return llama_error(Code::kUnsupported, "this model's memory cannot forget its last tokens");
  }
  state_->n_resident = n_tokens;
  return {};
}

// --- several sequences ---

Status LlamaPeer::append_to(std::int32_t index, std::span<const Token> tokens) {
  EBB_CHECK(index >= 0 && index < state_->options.n_sequences, "sequence {} of {}", index, state_->options.n_sequences);
  if (index == 0) return append(tokens);
  std::int32_t& n_resident = state_->n_others[static_cast<std::size_t>(index)];
  const std::size_t most = llama_n_batch(state_->context.get());
  while (!tokens.empty()) {
    const std::size_t n = std::min(tokens.size(), most);
    const std::vector<std::int32_t> sequences(n, index);
    std::vector<std::int32_t> positions;
    for (std::size_t i = 0; i < n; ++i) positions.push_back(n_resident + static_cast<std::int32_t>(i));
    EBB_RETURN_IF_ERROR(decode_at(tokens.first(n), sequences, positions));
    n_resident += static_cast<std::int32_t>(n);
    tokens = tokens.subspan(n);
  }
  return {};
}

Status LlamaPeer::copy_to_all(std::int32_t n_tokens) {
  EBB_CHECK(n_tokens == n_resident(), "{} of {} tokens: only a whole sequence is copied between buffers", n_tokens,
            n_resident());
  for (std::int32_t i = 1; i < state_->options.n_sequences; ++i) {
    EBB_CHECK(state_->n_others[static_cast<std::size_t>(i)] == 0, "sequence {} is not empty", i);
    llama_memory_seq_cp(llama_get_memory(state_->context.get()), 0, i, -1, -1);
    state_->n_others[static_cast<std::size_t>(i)] = n_tokens;
  }
  return {};
}

Status LlamaPeer::decode_together(std::span<const Token> tokens) {
  EBB_CHECK(std::cmp_less_equal(tokens.size(), state_->options.n_sequences), "{} tokens for {} sequences",
            tokens.size(), state_->options.n_sequences);
  std::vector<std::int32_t> sequences;
  std::vector<std::int32_t> positions;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    sequences.push_back(static_cast<std::int32_t>(i));
    positions.push_back(i == 0 ? state_->n_resident++ : state_->n_others[i]++);
  }
  return decode_at(tokens, sequences, positions);
}

// One row for each token, each with logits.
Status LlamaPeer::decode_at(std::span<const Token> tokens, std::span<const std::int32_t> sequences,
                            std::span<const std::int32_t> positions) {
  State& s = *state_;
  s.tokens.clear();
  for (const Token token : tokens) s.tokens.push_back(token.value());
  s.wants_logits.assign(tokens.size(), std::int8_t{1});
  std::vector<llama_pos> at(positions.begin(), positions.end());
  std::vector<llama_seq_id> ids(sequences.begin(), sequences.end());
  std::vector<std::int32_t> n_ids(tokens.size(), 1);
  std::vector<llama_seq_id*> id_lists;
  for (llama_seq_id& id : ids) id_lists.push_back(&id);
  llama_batch batch{};
  batch.n_tokens = static_cast<std::int32_t>(tokens.size());
  batch.token = s.tokens.data();
  batch.pos = at.data();
  batch.n_seq_id = n_ids.data();
  batch.seq_id = id_lists.data();
  batch.logits = s.wants_logits.data();
  const std::int32_t code = llama_decode(s.context.get(), batch);
  if (code == 0) return {};
  return llama_error(Code::kInvalidArgument,
                     fmt::format("a batch of {} tokens was refused (llama_decode: {})", tokens.size(), code));
}

Status LlamaPeer::truncate_all(std::int32_t n_tokens) {
  EBB_RETURN_IF_ERROR(truncate(std::min(n_tokens, n_resident())));
  for (std::int32_t i = 1; i < state_->options.n_sequences; ++i) {
    std::int32_t& n_resident = state_->n_others[static_cast<std::size_t>(i)];
    n_resident = std::min(n_resident, n_tokens);
    if (!llama_memory_seq_rm(llama_get_memory(state_->context.get()), i, n_resident, -1)) {
      return llama_error(Code::kUnsupported, "this model's memory cannot forget its last tokens");
    }
  }
  return {};
}

std::span<const float> LlamaPeer::logits_of(std::int32_t index) const {
  const float* logits = llama_get_logits_ith(state_->context.get(), index);
  EBB_CHECK(logits != nullptr, "no logits of sequence {}", index);
  return {logits, static_cast<std::size_t>(n_vocab())};
}

Result<LogitMatrix> LlamaPeer::logits(std::span<const Token> tokens) {
  EBB_RETURN_IF_ERROR(truncate(0));
  return append_logits(tokens);
}

Result<LogitMatrix> LlamaPeer::append_logits(std::span<const Token> tokens) {
  LogitMatrix matrix{.n_vocab = n_vocab()};
  matrix.values.reserve(tokens.size() * static_cast<std::size_t>(matrix.n_vocab));
  const std::size_t most = llama_n_batch(state_->context.get());  // at most the context
  while (!tokens.empty()) {
    const std::size_t n = std::min(tokens.size(), most);
    EBB_RETURN_IF_ERROR(decode(tokens.first(n), true));
    for (std::size_t i = 0; i < n; ++i) {
      const float* row = llama_get_logits_ith(state_->context.get(), static_cast<std::int32_t>(i));
      matrix.values.insert(matrix.values.end(), row, row + matrix.n_vocab);
    }
    matrix.n_rows += static_cast<std::int32_t>(n);
    tokens = tokens.subspan(n);
  }
  return matrix;
}

Result<std::vector<Token>> LlamaPeer::greedy(std::span<const Token> prompt, std::int32_t n_tokens) {
  EBB_RETURN_IF_ERROR(truncate(0));
  EBB_RETURN_IF_ERROR(append(prompt));
  std::vector<Token> generated;
  while (std::cmp_less(generated.size(), n_tokens)) {
    const Token next = argmax(last_logits());
    generated.push_back(next);
    if (std::cmp_less(generated.size(), n_tokens)) EBB_RETURN_IF_ERROR(append({&next, 1}));
  }
  return generated;
}

}  // namespace ebb
