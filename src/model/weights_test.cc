#include "model/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "ggml-cpp.h"
#include <gtest/gtest.h>

#include "device/backend.h"
#include "gguf/gguf_file.h"
#include "model/architecture.h"
#include "model/model.h"
#include "model/random_weights.h"
#include "model/tensor_plan.h"
#include "model/toy_gguf.h"

namespace ebb {
namespace {

std::unique_ptr<Backend> cpu(std::int32_t n_threads = 2) {
  Result<std::unique_ptr<Backend>> backend = Backend::open("cpu", n_threads);
  EBB_CHECK(backend.ok(), "{}", backend.status().message());
  return std::move(backend).value();
}

std::unique_ptr<Model> load(const std::filesystem::path& path, Backend& backend, const LoadOptions& options = {}) {
  Result<std::unique_ptr<Model>> model = Model::load(path, backend, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? std::move(model).value() : nullptr;
}

// What ggml makes of one op over a weight: `build` gets a context and returns the result.
template <class Build>
std::vector<float> compute(Backend& backend, std::span<const std::byte> input, Build build) {
  const ggml_context_ptr context(ggml_init({16 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true}));
  auto [in, out] = build(context.get());
  ggml_cgraph* graph = ggml_new_graph(context.get());
  ggml_build_forward_expand(graph, out);
  const ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors(context.get(), backend.handle()));
  ggml_backend_tensor_set(in, input.data(), 0, input.size());
  EXPECT_TRUE(backend.compute(graph).ok());
  std::vector<float> result(static_cast<std::size_t>(ggml_nelements(out)));
  ggml_backend_tensor_get(out, result.data(), 0, ggml_nbytes(out));
  return result;
}

std::vector<float> multiply(Backend& backend, const Weights& weights, ggml_tensor* weight,
                            const std::vector<float>& rows) {
  std::optional<ProductNodes> nodes;
  return compute(backend, std::as_bytes(std::span(rows)), [&](ggml_context* context) {
    ggml_tensor* in = ggml_new_tensor_2d(context, GGML_TYPE_F32, weight->ne[0],
                                         static_cast<std::int64_t>(rows.size()) / weight->ne[0]);
    return std::pair(in, nodes.emplace(context, weights.packed(), backend.team()).multiply(weight, in));
  });
}

std::vector<float> look_up(Backend& backend, ggml_tensor* weight, const std::vector<std::int32_t>& rows) {
  return compute(backend, std::as_bytes(std::span(rows)), [&](ggml_context* context) {
    ggml_tensor* in = ggml_new_tensor_1d(context, GGML_TYPE_I32, static_cast<std::int64_t>(rows.size()));
    return std::pair(in, ggml_get_rows(context, weight, in));
  });
}

std::vector<float> dequantised(const GgufFile& file, const std::string& name) {
  const TensorInfo* info = file.find_tensor(name);
  std::vector<float> values(static_cast<std::size_t>(info->n_elements()));
  const std::span<const std::byte> bytes = file.bytes_of(*info);
  if (info->type == GGML_TYPE_F32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
  } else {
    ggml_get_type_traits(info->type)->to_float(bytes.data(), values.data(), info->n_elements());
  }
  return values;
}

// Greatest difference to the product in double, in units of the product's spread.
double product_error(const std::vector<float>& product, const std::vector<float>& matrix,
                     const std::vector<float>& rows, std::size_t n_in) {
  const std::size_t n_out = matrix.size() / n_in;
  double worst = 0.0;
  double squares = 0.0;
  for (std::size_t i = 0; i < product.size(); ++i) {
    double sum = 0.0;
    for (std::size_t k = 0; k < n_in; ++k) {
      sum += static_cast<double>(matrix[i % n_out * n_in + k]) * static_cast<double>(rows[i / n_out * n_in + k]);
    }
    worst = std::max(worst, std::abs(sum - static_cast<double>(product[i])));
    squares += sum * sum;
  }
  return worst / std::sqrt(squares / static_cast<double>(product.size()));
}

std::vector<ggml_type> matrix_types() {
  std::vector<ggml_type> types;
  for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
    const auto type = static_cast<ggml_type>(i);
    if (ggml_type_size(type) > 0 && is_matrix_type(type)) types.push_back(type);
  }
  return types;
}

RandomModelSpec spec_of(ggml_type type) {
  return {
      .n_layers = 1, .n_embd = 256, .n_heads = 4, .n_kv_heads = 2, .head_dim = 64, .n_ff = 512, .weight_type = type};
}

// ggml prepares tables for seconds before it quantises to these. Any bytes are blocks of theirs, though.
bool is_slow_to_make(ggml_type type) {
  switch (type) {
    case GGML_TYPE_IQ1_S:
    case GGML_TYPE_IQ1_M:
    case GGML_TYPE_IQ2_XXS:
    case GGML_TYPE_IQ2_XS:
    case GGML_TYPE_IQ2_S:
    case GGML_TYPE_IQ3_XXS:
    case GGML_TYPE_IQ3_S: return true;
    default: return false;
  }
}

// Makes matrices of `type` out of random bytes. No byte has the top bit of an f16's exponent, so scales stay below 2.
void write_random_blocks(const ToyGguf& toy, ggml_type type) {
  const std::filesystem::path path = toy.write_with_tensors([&](ggml_tensor& tensor) {
    if (tensor.ne[1] > 1) tensor.type = type;
    return true;
  });
  std::ifstream in(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  Result<GgufFile> file = GgufFile::open(path);
  EBB_CHECK(file.ok(), "{}", file.status().message());
  RandomStream random(11);
  for (const TensorInfo& info : file->tensors()) {
    if (info.type != type) continue;
    for (std::size_t i = 0; i < info.n_bytes; ++i)
      bytes[info.file_offset + i] = static_cast<char>(random.next() & 0xBFU);
  }
  toy.write(bytes);
}

TEST(weights, of_every_type_are_multiplied_and_looked_up_mapped_and_repacked) {
  const std::unique_ptr<Backend> backend = cpu();
  EXPECT_GE(matrix_types().size(), 26U);
  RandomStream random(7);
  std::vector<float> rows(256 * 5);
  for (float& value : rows) value = random.next_normal();
  for (const ggml_type type : matrix_types()) {
    const ToyGguf toy(spec_of(is_slow_to_make(type) ? GGML_TYPE_F32 : type));
    if (is_slow_to_make(type)) write_random_blocks(toy, type);
    for (const bool use_repacked : {false, true}) {
      const std::unique_ptr<Model> model = load(toy.path(), *backend, {.use_repacked = use_repacked});
      ASSERT_NE(model, nullptr) << ggml_type_name(type);
      const std::vector<float> product = multiply(*backend, model->weights(), model->weights().layers[0].ffn_up, rows);
      const std::vector<float> matrix = dequantised(model->file(), "blk.0.ffn_up.weight");
      // ggml rounds the rows to 8 bits (1 % of their largest) or to bf16 before it multiplies; more is lost in random
      // bytes, where few large blocks decide.
      const double bound = type == GGML_TYPE_F32 ? 1e-4 : is_slow_to_make(type) ? 0.15 : 0.08;
      EXPECT_LT(product_error(product, matrix, rows, 256), bound) << ggml_type_name(type);

      const std::vector<float> embedding = dequantised(model->file(), "token_embd.weight");
      const std::vector<float> found = look_up(*backend, model->weights().token_embd, {3, 0, 319});
      EXPECT_TRUE(std::equal(found.begin(), found.begin() + 256, embedding.begin() + 3 * 256)) << ggml_type_name(type);
      EXPECT_TRUE(std::equal(found.begin() + 512, found.end(), embedding.begin() + 319 * 256)) << ggml_type_name(type);
    }
  }
}

TEST(weights, that_no_layout_speeds_up_stay_where_the_file_is_mapped) {
  const std::unique_ptr<Backend> backend = cpu();
  const ToyGguf toy(spec_of(GGML_TYPE_Q3_K));
  const std::unique_ptr<Model> model = load(toy.path(), *backend);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->bytes().copied, 0U);
  EXPECT_EQ(model->bytes().mapped, model->file().n_tensor_bytes());
  const TensorInfo* info = model->file().find_tensor("blk.0.attn_q.weight");
  EXPECT_EQ(model->weights().layers[0].wq->data, model->file().bytes_of(*info).data());
}

// Of types that are not ours, what ggml multiplies in tiles stays as it lies, and what it has no tiles for is repacked.
TEST(weights, of_other_types_are_repacked_only_where_that_is_faster) {
#if defined(__x86_64__)
  const std::unique_ptr<Backend> backend = cpu();
  const std::unique_ptr<Model> q2_k = load(ToyGguf(spec_of(GGML_TYPE_Q2_K)).path(), *backend);
  ASSERT_NE(q2_k, nullptr);
  EXPECT_EQ(q2_k->bytes().copied, 0U);
  const std::unique_ptr<Model> mxfp4 = load(ToyGguf(spec_of(GGML_TYPE_MXFP4)).path(), *backend);
  const std::unique_ptr<Model> q4_0 = load(ToyGguf(spec_of(GGML_TYPE_Q4_0)).path(), *backend);
  ASSERT_TRUE(mxfp4 != nullptr && q4_0 != nullptr);
  // Both ggml's layouts and ours come with AVX2 and only with it.
  EXPECT_EQ(mxfp4->bytes().copied > 0, q4_0->bytes().copied > 0);
  EXPECT_EQ(q4_0->weights().packed().empty(), q4_0->bytes().copied == 0);
#endif
}

TEST(weights, that_are_repacked_are_the_matrices_but_not_the_embeddings) {
  const std::unique_ptr<Backend> backend = cpu();
  for (const bool tied : {false, true}) {
    RandomModelSpec spec = spec_of(GGML_TYPE_Q4_0);
    spec.tied = tied;
    const ToyGguf toy(spec);
    const std::unique_ptr<Model> plain = load(toy.path(), *backend, {.use_repacked = false});
    const std::unique_ptr<Model> model = load(toy.path(), *backend);
    ASSERT_TRUE(plain != nullptr && model != nullptr);
    EXPECT_EQ(plain->bytes().copied, 0U);
    EXPECT_EQ(plain->bytes().mapped, plain->file().n_tensor_bytes());
    EXPECT_EQ(plain->weights().output == plain->weights().token_embd, tied);

    const Weights& weights = model->weights();
    const TensorInfo* embedding = model->file().find_tensor("token_embd.weight");
    EXPECT_EQ(weights.token_embd->data, model->file().bytes_of(*embedding).data());
    if (model->bytes().copied == 0) continue;  // a processor without repacked layouts
    EXPECT_NE(weights.output, weights.token_embd);
    EXPECT_GE(model->bytes().mapped + model->bytes().copied,
              model->file().n_tensor_bytes() + (tied ? embedding->n_bytes : 0));

    std::vector<float> rows(256, 0.5F);
    const std::vector<float> matrix = dequantised(model->file(), tied ? "token_embd.weight" : "output.weight");
    EXPECT_LT(product_error(multiply(*backend, weights, weights.output, rows), matrix, rows, 256), 0.08);
  }
}

TEST(weights, have_the_parts_of_their_architecture) {
  const std::unique_ptr<Backend> backend = cpu();
  const auto load_toy = [&](const RandomModelSpec& spec) { return load(ToyGguf(spec).path(), *backend); };

  std::unique_ptr<Model> model = load_toy({.architecture = "llama", .llama3_factors = true});
  ASSERT_NE(model, nullptr);
  const LayerWeights* layer = &model->weights().layers[1];
  EXPECT_TRUE(layer->wq && layer->wo && layer->ffn_down && layer->attn_norm && layer->ffn_norm);
  EXPECT_FALSE(layer->bq || layer->bo || layer->q_norm || layer->post_attn_norm);
  ASSERT_NE(layer->rope_factors, nullptr);
  EXPECT_EQ(layer->rope_factors, model->weights().layers[0].rope_factors);
  EXPECT_EQ(layer->rope_factors->ne[0], 8);
  EXPECT_EQ(static_cast<const float*>(layer->rope_factors->data)[0], 1.0F);
  EXPECT_EQ(static_cast<const float*>(layer->rope_factors->data)[7], 8.0F);

  model = load_toy({.architecture = "llama", .biases = true});
  layer = &model->weights().layers[0];
  EXPECT_TRUE(layer->bq && layer->bk && layer->bv && layer->bo);
  EXPECT_EQ(layer->rope_factors, nullptr);

  model = load_toy({.architecture = "qwen2"});
  layer = &model->weights().layers[0];
  EXPECT_TRUE(layer->bq && layer->bk && layer->bv);
  EXPECT_FALSE(layer->bo || layer->q_norm);

  model = load_toy({.architecture = "qwen3"});
  layer = &model->weights().layers[0];
  EXPECT_TRUE(layer->q_norm && layer->k_norm);
  EXPECT_FALSE(layer->bq || layer->post_ffn_norm);

  model = load_toy({.architecture = "gemma3", .tied = true});
  layer = &model->weights().layers[0];
  EXPECT_TRUE(layer->q_norm && layer->k_norm && layer->post_attn_norm && layer->post_ffn_norm);
}

TEST(weights, report_progress_up_to_one_and_stop_when_told) {
  const std::unique_ptr<Backend> backend = cpu(1);
  RandomModelSpec spec = spec_of(GGML_TYPE_Q4_0);
  spec.n_vocab = 120000;  // 17 MB of embeddings, and as much output matrix
  const ToyGguf toy(spec);
  std::vector<float> seen;
  const std::unique_ptr<Model> model = load(toy.path(), *backend, {.progress = [&](float share) {
                                              seen.push_back(share);
                                              return true;
                                            }});
  ASSERT_NE(model, nullptr);
  EXPECT_GE(seen.size(), 8U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), 1.0F);

  int n_calls = 0;
  const Result<std::unique_ptr<Model>> cancelled =
      Model::load(toy.path(), *backend, {.progress = [&](float) { return ++n_calls < 3; }});
  EXPECT_EQ(cancelled.status().code(), Code::kCancelled);
  EXPECT_EQ(n_calls, 3);
}

// Bytes of this process's memory now; 0 where the system does not say.
std::size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t n_all = 0, n_resident = 0;
  in >> n_all >> n_resident;
  return n_resident * 4096;
}

TEST(weights, are_in_memory_once_also_when_they_are_repacked_and_tied) {
  const std::unique_ptr<Backend> backend = cpu();
  RandomModelSpec spec = spec_of(GGML_TYPE_Q4_0);
  spec.n_vocab = 600000;  // 86 MB
  spec.tied = true;
  const ToyGguf toy(spec);
  const std::size_t before = resident_bytes();
  std::size_t peak = 0;
  const std::unique_ptr<Model> model = load(toy.path(), *backend, {.progress = [&](float) {
                                              peak = std::max(peak, resident_bytes());
                                              return true;
                                            }});
  ASSERT_NE(model, nullptr);
  const std::size_t after = resident_bytes() - before;
  if (before == 0 || model->bytes().copied == 0) return;
  // The vocabulary's names are in memory, too.
  const double bound = 1.15 * static_cast<double>(model->file().n_tensor_bytes()) + (64 << 20);
  EXPECT_LT(static_cast<double>(after), bound);
  EXPECT_LT(static_cast<double>(peak - before), bound);
}

TEST(weights, of_other_shapes_and_names_are_refused_in_one_line) {
  const std::unique_ptr<Backend> backend = cpu(1);
  const ToyGguf toy({});
  const auto refused = [&](const std::string& tensor, auto change) {
    const std::filesystem::path path =
        toy.write_with_tensors([&](ggml_tensor& t) { return ggml_get_name(&t) != tensor || change(t); });
    const Status status = Model::load(path, *backend, {}).status();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(tensor), std::string::npos) << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
    return status.code();
  };
  const auto dropped = [](ggml_tensor&) { return false; };
  for (const char* name : {"token_embd.weight", "output_norm.weight", "blk.0.attn_q.weight", "blk.1.ffn_down.weight"}) {
    EXPECT_EQ(refused(name, dropped), Code::kDamaged) << name;
  }
  const auto swapped = [](ggml_tensor& t) {
    std::swap(t.ne[0], t.ne[1]);
    return true;
  };
  EXPECT_EQ(refused("blk.0.attn_k.weight", swapped), Code::kDamaged);
  EXPECT_EQ(refused("blk.0.ffn_norm.weight", swapped), Code::kDamaged);
  const auto deeper = [](ggml_tensor& t) {
    t.ne[2] = 2;
    return true;
  };
  EXPECT_EQ(refused("blk.0.ffn_up.weight", deeper), Code::kDamaged);
  EXPECT_EQ(refused("token_embd.weight", deeper), Code::kDamaged);
  const auto typed = [](ggml_type type) {
    return [type](ggml_tensor& t) {
      t.type = type;
      return true;
    };
  };
  EXPECT_EQ(refused("blk.0.ffn_norm.weight", typed(GGML_TYPE_F16)), Code::kUnsupported);
  for (const ggml_type type : {GGML_TYPE_I8, GGML_TYPE_I32, GGML_TYPE_F64, GGML_TYPE_Q8_1}) {
    EXPECT_EQ(refused("blk.0.ffn_up.weight", typed(type)), Code::kUnsupported) << ggml_type_name(type);
    EXPECT_EQ(refused("token_embd.weight", typed(type)), Code::kUnsupported) << ggml_type_name(type);
  }
  const std::filesystem::path path = toy.write_with_tensors([](ggml_tensor& t) {
    if (std::string_view(ggml_get_name(&t)) == "output.weight") ggml_set_name(&t, "blk.0.ffn_gate_inp.weight");
    return true;
  });
  EXPECT_EQ(Model::load(path, *backend, {}).status().code(), Code::kUnsupported);
}

TEST(weights, rows_are_expanded_for_devices_that_cannot_look_them_up) {
  const ToyGguf toy(spec_of(GGML_TYPE_Q4_K));
  Result<GgufFile> file = GgufFile::open(toy.path());
  ASSERT_TRUE(file.ok());
  const std::vector<float> values = dequantised(*file, "token_embd.weight");
  const std::vector<std::byte> f16 =
      expand_to_f16(GGML_TYPE_Q4_K, file->bytes_of(*file->find_tensor("token_embd.weight")));
  ASSERT_EQ(f16.size(), values.size() * 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ggml_fp16_t half = 0;
    std::memcpy(&half, f16.data() + 2 * i, 2);
    ASSERT_NEAR(ggml_fp16_to_fp32(half), values[i], 1e-3 * std::abs(values[i]) + 1e-6);
  }
}

}  // namespace
}  // namespace ebb
