#include "model/random_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

#include "ggml-cpp.h"
#include "gguf.h"

#include "gguf/gguf_file.h"
#include "model/architecture.h"
#include "model/random_weights.h"
#include "model/tensor_plan.h"

namespace ebb {

namespace {

constexpr std::int32_t kBytes = 256;
constexpr std::array<const char*, 3> kMarks{"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
// Pairs that a tokeniser merges, so that it has something to do. "\u0120" stands for a space.
constexpr std::array<const char*, 5> kMerges{"t h", "i n", "a n", "e r", "\u0120 t"};
constexpr std::int32_t kMinVocabulary = kBytes + static_cast<std::int32_t>(kMarks.size() + kMerges.size());

constexpr std::string_view kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

void append_utf8(std::string& text, std::uint32_t code_point) {  // below U+0800
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
  } else {
    text += static_cast<char>(0xC0U | (code_point >> 6U));
    text += static_cast<char>(0x80U | (code_point & 0x3FU));
  }
}

// Byte-level BPE writes each byte as a visible character: itself if it is one in Latin-1, else the next from U+0100 on.
std::vector<std::string> byte_tokens() {
  std::vector<std::string> tokens;
  std::uint32_t next_stand_in = 0x100;
  for (std::uint32_t byte = 0; byte < kBytes; ++byte) {
    const bool visible = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    tokens.emplace_back();
    append_utf8(tokens.back(), visible ? byte : next_stand_in++);
  }
  return tokens;
}

void add_vocabulary(gguf_context* gguf, std::int32_t n_vocab) {
  constexpr std::int32_t kNormal = 1;
  constexpr std::int32_t kControl = 3;
  std::vector<std::string> tokens = byte_tokens();
  std::vector<std::int32_t> types(static_cast<std::size_t>(n_vocab), kNormal);
  for (const char* mark : kMarks) {
    types[tokens.size()] = kControl;
    tokens.emplace_back(mark);
  }
  for (std::string merge : kMerges) {
    std::erase(merge, ' ');
    tokens.push_back(std::move(merge));
  }
  while (tokens.size() < static_cast<std::size_t>(n_vocab)) tokens.push_back("[" + std::to_string(tokens.size()) + "]");
  std::vector<const char*> pointers(tokens.size());
  std::transform(tokens.begin(), tokens.end(), pointers.begin(),
                 [](const std::string& token) { return token.c_str(); });

  gguf_set_val_str(gguf, "tokenizer.ggml.model", "gpt2");
  gguf_set_val_str(gguf, "tokenizer.ggml.pre", "qwen2");
  gguf_set_arr_str(gguf, "tokenizer.ggml.tokens", pointers.data(), pointers.size());
  gguf_set_arr_data(gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(), types.size());
  std::array<const char*, kMerges.size()> merges = kMerges;
  gguf_set_arr_str(gguf, "tokenizer.ggml.merges", merges.data(), merges.size());
  gguf_set_val_u32(gguf, "tokenizer.ggml.bos_token_id", kBytes);
  gguf_set_val_u32(gguf, "tokenizer.ggml.eos_token_id", kBytes + 2);
  gguf_set_val_u32(gguf, "tokenizer.ggml.padding_token_id", kBytes);
  gguf_set_val_bool(gguf, "tokenizer.ggml.add_bos_token", false);
  gguf_set_val_str(gguf, "tokenizer.chat_template", std::string(kChatMl).c_str());
}

void add_rope_keys(gguf_context* gguf, const RandomModelSpec& spec) {
  const auto key = [&](const char* suffix) { return spec.architecture + ".rope." + suffix; };
  gguf_set_val_f32(gguf, key("freq_base").c_str(), spec.rope_freq_base);
  gguf_set_val_u32(gguf, key("dimension_count").c_str(), static_cast<std::uint32_t>(spec.head_dim));
  if (spec.rope_scaling == RopeScaling::kNone) return;
  gguf_set_val_str(gguf, key("scaling.type").c_str(), spec.rope_scaling == RopeScaling::kYarn ? "yarn" : "linear");
  gguf_set_val_f32(gguf, key("scaling.factor").c_str(), spec.rope_factor);
  if (spec.rope_orig_ctx > 0) {
    gguf_set_val_u32(gguf, key("scaling.original_context_length").c_str(),
                     static_cast<std::uint32_t>(spec.rope_orig_ctx));
  }
}

void add_keys(gguf_context* gguf, const RandomModelSpec& spec) {
  const auto set = [&](const char* suffix, std::int32_t value) {
    gguf_set_val_u32(gguf, (spec.architecture + "." + suffix).c_str(), static_cast<std::uint32_t>(value));
  };
  gguf_set_val_str(gguf, "general.architecture", spec.architecture.c_str());
  gguf_set_val_str(gguf, "general.name", ("random " + spec.architecture).c_str());
  set("vocab_size", spec.n_vocab);
  set("context_length", spec.n_ctx_train);
  set("embedding_length", spec.n_embd);
  set("block_count", spec.n_layers);
  set("feed_forward_length", spec.n_ff);
  set("attention.head_count", spec.n_heads);
  set("attention.head_count_kv", spec.n_kv_heads);
  set("attention.key_length", spec.head_dim);
  set("attention.value_length", spec.head_dim);
  if (spec.sliding_window > 0) {
    set("attention.sliding_window", spec.sliding_window);
    set("attention.sliding_window_pattern", spec.sliding_period);
  }
  gguf_set_val_f32(gguf, (spec.architecture + ".attention.layer_norm_rms_epsilon").c_str(), 1e-5F);
  add_rope_keys(gguf, spec);
}

// The other file's keys about its vocabulary, and no other.
Status copy_vocabulary(gguf_context* gguf, const std::filesystem::path& path, std::int32_t n_vocab) {
  constexpr std::string_view kOf = "tokenizer.";
  EBB_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(path));
  const std::size_t n_tokens = file.find_array_length("tokenizer.ggml.tokens").value_or(0);
  if (std::cmp_not_equal(n_tokens, n_vocab)) {
    return error(Code::kInvalidArgument, "{} has {} tokens, and the model is to have {}", path.string(), n_tokens,
                 n_vocab);
  }
  const gguf_context_ptr other(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
  if (other == nullptr) return error(Code::kDamaged, "{}: no GGUF file", path.string());
  std::vector<std::string> not_copied;
  for (std::int64_t i = 0; i < gguf_get_n_kv(other.get()); ++i) {
    const std::string_view key = gguf_get_key(other.get(), i);
    if (!key.starts_with(kOf)) not_copied.emplace_back(key);
  }
  for (const std::string& key : not_copied) gguf_remove_key(other.get(), key.c_str());
  gguf_set_kv(gguf, other.get());
  return {};
}

Status check_type(ggml_type type) {
  if (is_matrix_type(type) && RandomWeights::can_make(type, ggml_blck_size(type))) return {};
  return error(Code::kInvalidArgument, "weights cannot have type {}", ggml_type_name(type));
}

Status check_spec(const RandomModelSpec& spec) {
  const Architecture* architecture = find_architecture(spec.architecture);
  if (architecture == nullptr) {
    return error(Code::kInvalidArgument, "no architecture '{}' ({} are)", spec.architecture, architecture_names());
  }
  for (const std::int32_t size :
       {spec.n_layers, spec.n_embd, spec.n_heads, spec.n_kv_heads, spec.n_ff, spec.n_ctx_train}) {
    if (size < 1) return error(Code::kInvalidArgument, "a random model needs sizes of at least 1, not {}", size);
  }
  if (spec.n_heads % spec.n_kv_heads != 0 || spec.head_dim < 2 || spec.head_dim % 2 != 0) {
    return error(Code::kInvalidArgument, "a random model cannot have {} heads over {} KV heads of {}", spec.n_heads,
                 spec.n_kv_heads, spec.head_dim);
  }
  if (spec.n_vocab < kMinVocabulary) {
    return error(Code::kInvalidArgument, "a random model needs {} tokens, not {}", kMinVocabulary, spec.n_vocab);
  }
  if (spec.llama3_factors && architecture->rope_factors == Presence::kAbsent) {
    return error(Code::kInvalidArgument, "'{}' has no rope factors", spec.architecture);
  }
  EBB_RETURN_IF_ERROR(check_type(spec.weight_type));
  for (const auto& [tensor, type] : spec.tensor_types) EBB_RETURN_IF_ERROR(check_type(type));
  return {};
}

// What plan_tensors() reads.
Hparams sizes_of(const RandomModelSpec& spec) {
  Hparams h;
  h.n_vocab = spec.n_vocab;
  h.n_embd = spec.n_embd;
  h.n_layers = spec.n_layers;
  h.n_heads = spec.n_heads;
  h.n_kv_heads = spec.n_kv_heads;
  h.head_dim_k = h.head_dim_v = h.n_rot = spec.head_dim;
  h.n_ff = spec.n_ff;
  return h;
}

bool is_written(const RandomModelSpec& spec, const PlannedTensor& planned) {
  if (planned.presence == Presence::kRequired) return true;
  if (planned.name == "output.weight") return !spec.tied;
  if (planned.name == "rope_freqs.weight") return spec.llama3_factors;
  return spec.biases || spec.architecture == "qwen2";
}

// Standard deviation of a matrix, so that what it gives has about the size of what it takes.
float spread_of(const RandomModelSpec& spec, const PlannedTensor& planned) {
  const float even = 1.0F / std::sqrt(static_cast<float>(planned.n_in));
  if (planned.name == "output.weight") return spec.logit_scale * even;
  if (planned.name == "token_embd.weight") {
    if (spec.tied) return spec.logit_scale * even;
    return spec.architecture == "gemma3" ? even : 1.0F;  // gemma3 multiplies by sqrt(n_embd)
  }
  // Larger scores make attention look at few tokens instead of averaging over all.
  const bool scores = planned.name.ends_with("attn_q.weight") || planned.name.ends_with("attn_k.weight");
  return scores ? 1.5F * even : even;
}

// Llama 3.1's rule: high frequencies stay, low ones are divided by 8, those between change over smoothly.
std::vector<float> llama3_factors(const RandomModelSpec& spec) {
  constexpr double kFactor = 8.0;
  constexpr double kLow = 1.0;
  constexpr double kHigh = 4.0;
  const double n_orig = spec.rope_orig_ctx > 0 ? spec.rope_orig_ctx : spec.n_ctx_train;
  std::vector<float> factors;
  for (std::int32_t i = 0; i < spec.head_dim; i += 2) {
    const double frequency =
        std::pow(static_cast<double>(spec.rope_freq_base), -static_cast<double>(i) / spec.head_dim);
    const double turns = n_orig * frequency / (2.0 * std::numbers::pi);
    const double kept = std::clamp((turns - kLow) / (kHigh - kLow), 0.0, 1.0);
    factors.push_back(static_cast<float>(1.0 / ((1.0 - kept) / kFactor + kept)));
  }
  return factors;
}

std::vector<float> vector_values(const RandomModelSpec& spec, const PlannedTensor& planned, RandomStream& random) {
  if (planned.name == "rope_freqs.weight") return llama3_factors(spec);
  const bool bias = planned.name.ends_with(".bias");
  const bool head_norm = planned.name.ends_with("_q_norm.weight") || planned.name.ends_with("_k_norm.weight");
  const float mean = bias ? 0.0F : head_norm ? 1.5F : 1.0F;
  const float spread = bias ? 0.3F : 0.1F;
  std::vector<float> values(static_cast<std::size_t>(planned.n_in));
  for (float& value : values) value = mean + spread * random.next_normal();
  return values;
}

// A file that removes itself unless it was finished.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "wb")) {
    ok_ = file_ != nullptr;
  }
  ~OutputFile() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes) {
    ok_ = ok_ && std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size();
    n_written_ += bytes.size();
  }
  void pad_to(std::size_t alignment) {
    constexpr std::array<std::byte, 64> kZeros{};
    while (n_written_ % alignment != 0)
      write(std::span(kZeros).first(std::min(kZeros.size(), alignment - n_written_ % alignment)));
  }
  Status finish() {
    const bool closed = file_ != nullptr && std::fclose(std::exchange(file_, nullptr)) == 0;
    if (closed && ok_) return {};
    std::error_code ignored;
    if (closed) std::filesystem::remove(path_, ignored);
    return error(Code::kIo, "{}: cannot be written; check the path and the free space", path_.string());
  }

 private:
  std::filesystem::path path_;
  std::FILE* file_;
  bool ok_;
  std::size_t n_written_ = 0;
};

// Writes the data of tensors one after the other.
class TensorWriter {
 public:
  TensorWriter(const RandomModelSpec& spec, OutputFile& out)
      : spec_(spec),
        out_(out),
        random_(spec.seed),
        main_(spec.weight_type, random_.next()),
        fallback_(GGML_TYPE_F16, random_.next()) {
    // Behind those that every spec has, so that one without other types has the bytes that it always had.
    for (const auto& [tensor, type] : spec.tensor_types) {
      if (type != main_.type() && !others_.contains(type)) others_.try_emplace(type, type, random_.next());
    }
  }

  [[nodiscard]] ggml_type type_of(const PlannedTensor& planned) const {
    if (planned.use == TensorUse::kVector) return GGML_TYPE_F32;
    const auto other = std::ranges::find(spec_.tensor_types, planned.name, &TensorType::tensor);
    const ggml_type type = other == spec_.tensor_types.end() ? main_.type() : other->type;
    return RandomWeights::can_make(type, planned.n_in) ? type : fallback_.type();
  }

  void write(const PlannedTensor& planned) {
    if (planned.use == TensorUse::kVector) {
      const std::vector<float> values = vector_values(spec_, planned, random_);
      out_.write(std::as_bytes(std::span(values)));
    } else {
      write_matrix(planned, weights_of(type_of(planned)));
    }
    out_.pad_to(GGUF_DEFAULT_ALIGNMENT);
  }

 private:
  RandomWeights& weights_of(ggml_type type) {
    if (type == main_.type()) return main_;
    const auto other = others_.find(type);
    return other == others_.end() ? fallback_ : other->second;
  }

  void write_matrix(const PlannedTensor& planned, RandomWeights& weights) {
    constexpr std::size_t kChunkBytes = 4U << 20U;
    weights.begin_tensor(planned.n_in, spread_of(spec_, planned));
    const std::size_t n_row_bytes = ggml_row_size(weights.type(), planned.n_in);
    const auto n_step = static_cast<std::int64_t>(std::max<std::size_t>(1, kChunkBytes / n_row_bytes));
    std::vector<std::byte> chunk;
    for (std::int64_t row = 0; row < planned.n_out; row += n_step) {
      chunk.resize(n_row_bytes * static_cast<std::size_t>(std::min(n_step, planned.n_out - row)));
      weights.write_rows(chunk);
      out_.write(chunk);
    }
  }

  const RandomModelSpec& spec_;
  OutputFile& out_;
  RandomStream random_;
  RandomWeights main_;
  RandomWeights fallback_;
  std::map<ggml_type, RandomWeights> others_;
};

}  // namespace

Status write_random_model(const RandomModelSpec& spec, const std::filesystem::path& path) {
  EBB_RETURN_IF_ERROR(check_spec(spec));
  WeightTensors places;
  std::vector<PlannedTensor> planned_tensors =
      plan_tensors(sizes_of(spec), *find_architecture(spec.architecture), places);
  std::erase_if(planned_tensors, [&](const PlannedTensor& planned) { return !is_written(spec, planned); });
  for (const auto& [tensor, type] : spec.tensor_types) {
    if (std::ranges::find(planned_tensors, tensor, &PlannedTensor::name) != planned_tensors.end()) continue;
    return error(Code::kInvalidArgument, "no tensor '{}' in this model, which was to be of type {}", tensor,
                 ggml_type_name(type));
  }

  const gguf_context_ptr gguf(gguf_init_empty());
  const ggml_context_ptr tensors(ggml_init({planned_tensors.size() * ggml_tensor_overhead(), nullptr, true}));
  add_keys(gguf.get(), spec);
  if (spec.vocabulary_of.empty()) {
    add_vocabulary(gguf.get(), spec.n_vocab);
  } else {
    EBB_RETURN_IF_ERROR(copy_vocabulary(gguf.get(), spec.vocabulary_of, spec.n_vocab));
  }
  OutputFile out(path);
  TensorWriter writer(spec, out);
  for (const PlannedTensor& planned : planned_tensors) {
    const bool vector = planned.use == TensorUse::kVector;
    ggml_tensor* tensor = vector
                              ? ggml_new_tensor_1d(tensors.get(), writer.type_of(planned), planned.n_in)
                              : ggml_new_tensor_2d(tensors.get(), writer.type_of(planned), planned.n_in, planned.n_out);
    ggml_set_name(tensor, planned.name.c_str());
    gguf_add_tensor(gguf.get(), tensor);
  }
  std::vector<std::byte> header(gguf_get_meta_size(gguf.get()));
  gguf_get_meta_data(gguf.get(), header.data());
  out.write(header);
  for (const PlannedTensor& planned : planned_tensors) writer.write(planned);
  return out.finish();
}

}  // namespace ebb
