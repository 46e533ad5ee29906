#include "model/representative_keys.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "base/to_size.h"
#include "model/toy_keys.h"

namespace ebb::representative_keys_test {
namespace {

constexpr std::int32_t kDims = 32;
constexpr std::int32_t kBlockSize = 16;
constexpr std::int32_t kLayers = 2;

using Key = std::vector<float>;

FrameLayout frame_layout() {
  return {.row_type = RowType::kF32, .block_size = kBlockSize, .head_dim_k = kDims, .head_dim_v = kDims};
}

QuerySetup setup_of_layers() {
  RopeFrequencies frequencies{.kind = RopeKind::kNeoX, .per_anchor = {}};
  for (int i = 0; i < kDims / 2; ++i) frequencies.per_anchor.push_back(std::pow(1e4, -2.0 * i / kDims));
  QuerySetup setup{.shape = {.n_layers = kLayers, .n_heads = 2, .n_dims = kDims}, .n_kv_heads = 1, .layers = {}};
  for (int l = 0; l < kLayers; ++l) setup.layers.push_back({.frequencies = frequencies});
  return setup;
}

// Keys as they were before they were rotated, in a block that begins at the anchor; the same in every layer.
std::vector<std::byte> digests_of(const std::vector<Key>& keys, Position anchor) {
  const FrameLayout layout = frame_layout();
  std::vector<std::byte> frame(layout.frame_bytes());
  for (std::size_t slot = 0; slot < keys.size(); ++slot) {
    Key key = keys[slot];
    const std::int32_t at = anchor.value() + static_cast<std::int32_t>(slot);
    rotate_row(make_key_rotation(setup_of_layers().layers[0].frequencies, at), key);
    const std::vector<double> row(key.begin(), key.end());
    toy::put_row(layout, frame, static_cast<std::int32_t>(slot), row, toy::key_byte_at);
  }
  const KeyDigestLayout digest = KeyDigestLayout::of(layout);
  std::vector<std::byte> one(digest.bytes());
  write_key_digest(digest, FrameRows::keys_of(layout, frame, kBlockSize), one);
  std::vector<std::byte> all;
  for (int l = 0; l < kLayers; ++l) all.insert(all.end(), one.begin(), one.end());
  return all;
}

class RepresentativeKeys : public ::testing::Test {
 protected:
  RepresentativeKeys() : queries_(setup_of_layers().shape, 4) {
    for (float& x : query_) x = draw();
    std::vector<float> rows;
    for (int i = 0; i < 4 * 2; ++i) rows.insert(rows.end(), query_.begin(), query_.end());
    for (int layer = 0; layer < kLayers; ++layer) {
      queries_.add(LayerIndex(layer),
                   {.q = rows.data(),
                    .row_stride = to_size(2 * kDims),
                    .head_stride = to_size(kDims),
                    .first = Position(20000),
                    .n_rows = 4},
                   0, 1);
    }
    queries_.end_step(Position(20000), Position(20000), 4);
  }

  float draw() { return normal_(random_); }
  std::vector<Key> draw_keys() {
    std::vector<Key> keys(to_size(kBlockSize), Key(to_size(kDims)));
    for (Key& key : keys) {
      for (float& x : key) x = 0.2F * draw();
    }
    return keys;
  }
  // A key that the query matches at the one distance at which all blocks stand.
  [[nodiscard]] Key matching(std::size_t slot) const {
    Key key = query_;
    const std::int32_t distance = kRepresentativeDistance - static_cast<std::int32_t>(slot);
    rotate_row(make_key_rotation(setup_of_layers().layers[0].frequencies, distance), key);
    return key;
  }
  [[nodiscard]] std::vector<float> score(const std::vector<std::vector<std::byte>>& digests,
                                         const std::vector<Position>& anchors) const {
    std::vector<KeyScorer::Block> blocks;
    for (std::size_t b = 0; b < digests.size(); ++b) blocks.push_back({.digests = digests[b], .anchor = anchors[b]});
    return KeyScorer(setup_of_layers())
        .score(queries_, queries_.rows(), blocks, KeyDigestLayout::of(frame_layout()), KeyEstimate::kRepresentative);
  }

  std::mt19937 random_{3};
  std::normal_distribution<float> normal_;
  Key query_ = Key(to_size(kDims));
  TailQueries queries_;
};

TEST_F(RepresentativeKeys, a_block_is_worth_what_its_best_few_keys_are_and_shares_add_up) {
  const std::vector<Position> anchors = {Position(0), Position(512), Position(9008)};
  std::vector<std::vector<Key>> keys = {draw_keys(), draw_keys(), draw_keys()};
  for (const std::size_t slot : {2U, 5U, 7U, 11U}) keys[1][slot] = matching(slot);
  std::vector<std::vector<std::byte>> digests;
  for (std::size_t b = 0; b < keys.size(); ++b) digests.push_back(digests_of(keys[b], anchors[b]));
  const std::vector<float> shares = score(digests, anchors);
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    const float best = shares[1 * kLayers + layer];
    EXPECT_GT(best, 0.9F);
    EXPECT_NEAR(shares[layer] + best + shares[2 * kLayers + layer], 1.0F, 1e-5F);
  }
}

// Wherever it lies: that is what lets InfLLM read far more than its model was trained for.
TEST_F(RepresentativeKeys, the_same_keys_are_worth_the_same_at_any_distance) {
  const std::vector<Key> keys = draw_keys();
  const std::vector<Position> anchors = {Position(16), Position(15008)};
  const std::vector<float> shares = score({digests_of(keys, anchors[0]), digests_of(keys, anchors[1])}, anchors);
  // Two bits a channel tell rotated keys apart a little.
  EXPECT_NEAR(shares[0], 0.5F, 0.15F);
}

TEST_F(RepresentativeKeys, of_nothing_nothing_is_told) { EXPECT_TRUE(score({}, {}).empty()); }

}  // namespace
}  // namespace ebb::representative_keys_test
