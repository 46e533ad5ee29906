// Pins the order of every sum that attention.h promises: a plain scalar walk in that order must give the same bits.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include <gtest/gtest.h>

#include "model/attention.h"
#include "model/toy_attention.h"

namespace ebb {
namespace {

using toy::Layer;
using toy::Output;
using toy::Session;

constexpr float kNothingSeen = -std::numeric_limits<float>::infinity();

float exp2_of(float x) {
  if (x < -126.0F) return 0.0F;
  const float shifted = x + 12582912.0F;
  const float r = x - (shifted - 12582912.0F);
  float p = 0x1.44138ap-13F;
  for (const float c : {0x1.5f0890p-10F, 0x1.3b2a54p-7F, 0x1.c6af6cp-5F, 0x1.ebfbe0p-3F, 0x1.62e430p-1F, 1.0F}) {
    p = std::fma(p, r, c);
  }
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(shifted) << 23));
}

struct Sums {
  float m = kNothingSeen;
  float l = 0.0F;
  std::vector<float> o;
};

// One query head's walk over the table of its KV head.
class Walk {
 public:
  Walk(const Layer& layer, const AttentionShape& shape, const Session& session, std::int32_t token, std::int32_t head)
      : layer_(layer), shape_(shape), session_(session), token_(token), head_(head) {
    kv_head_ = head / (shape.n_heads / shape.n_kv_heads);
    split_.o = total_.o = std::vector<float>(to_size(shape.layout.head_dim_v), 0.0F);
  }

  std::vector<float> run() {
    std::int32_t split = -1;
    for (const TableEntry& entry : Layer::kept_entries(session_, kv_head_, session_.n_tokens)) {
      if (entry.split() != split) merge();
      split = entry.split();
      add_block(entry);
    }
    merge();
    const float inverse = total_.l == 0.0F ? 0.0F : 1.0F / total_.l;
    for (float& x : total_.o) x *= inverse;
    return total_.o;
  }

 private:
  float score(std::int32_t other) const {
    const std::int32_t n = shape_.layout.head_dim_k;
    const float* const q = &session_.q[to_size((token_ * shape_.n_heads + head_) * n)];
    const float* const k = layer_.key(session_, token_, other, kv_head_);
    float sum = 0.0F;
    for (std::int32_t d = 0; d < n; ++d) sum = std::fma(q[d], k[d], sum);
    return sum * (shape_.scale * std::numbers::log2e_v<float>);
  }

  void add_block(const TableEntry& entry) {
    const std::int32_t at = session_.first + token_ - entry.begin;
    const std::int32_t begin = shape_.window > 0 ? std::max(0, at - shape_.window + 1) : 0;
    const std::int32_t end = std::min(entry.n_tokens, at + 1);
    if (begin >= end) return;
    const std::int32_t first = entry.begin - session_.first;
    float m = split_.m;
    for (std::int32_t slot = begin; slot < end; ++slot) m = std::max(m, score(first + slot));
    const float shrink = exp2_of(split_.m - m);
    for (float& x : split_.o) x *= shrink;
    float sums[16] = {};
    for (std::int32_t slot = begin; slot < end; ++slot) {
      const float p = exp2_of(score(first + slot) - m);
      sums[slot % 16] += p;
      const float* const v = layer_.value(session_, token_, first + slot, kv_head_);
      for (std::size_t d = 0; d < split_.o.size(); ++d) split_.o[d] = std::fma(p, v[d], split_.o[d]);
    }
    for (int n = 8; n > 0; n /= 2) {
      for (int i = 0; i < n; ++i) sums[i] += sums[i + n];
    }
    split_.l = split_.l * shrink + sums[0];
    split_.m = m;
  }

  void merge() {
    if (split_.m != kNothingSeen) {
      const float m = std::max(total_.m, split_.m);
      const float a = exp2_of(total_.m - m);
      const float b = exp2_of(split_.m - m);
      total_.l = total_.l * a + split_.l * b;
      for (std::size_t d = 0; d < total_.o.size(); ++d) total_.o[d] = total_.o[d] * a + split_.o[d] * b;
      total_.m = m;
    }
    split_ = {.m = kNothingSeen, .l = 0.0F, .o = std::vector<float>(total_.o.size(), 0.0F)};
  }

  const Layer& layer_;
  const AttentionShape& shape_;
  const Session& session_;
  std::int32_t token_, head_, kv_head_;
  Sums split_, total_;
};

TEST(AttentionOrder, is_the_promised_one_bit_for_bit) {
  for (const std::int32_t window : {0, 70}) {
    for (const RowType type : {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0, RowType::kKivi4}) {
      AttentionShape shape;
      shape.layout = {.row_type = type, .block_size = 40, .head_dim_k = 64, .head_dim_v = 32};
      shape.n_heads = 6;
      shape.n_kv_heads = 2;
      shape.scale = 0.125F;
      shape.window = window;
      Layer layer(shape, 4);
      // Across a border of splits.
      const std::vector<Session> sessions = {layer.make_session(220, Position(kSplitTokens - 110), 0.2, false)};
      const std::vector<Output> outputs = layer.run(sessions, {{150, 70}}, {.n_threads = 2});
      for (std::int32_t token = 9; token < 220; token += 30) {
        for (std::int32_t head = 0; head < shape.n_heads; ++head) {
          const std::vector<float> expected = Walk(layer, shape, sessions[0], token, head).run();
          const float* const actual = &outputs[0].out[to_size((token * shape.n_heads + head) * 32)];
          ASSERT_EQ(std::memcmp(expected.data(), actual, 32 * sizeof(float)), 0)
              << row_type_name(type) << ", window " << window << ", token " << token << ", head " << head;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ebb
