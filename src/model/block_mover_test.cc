// Blocks of a model that are moved in some of their heads; that a rotation is right is in key_rotation_test.cc.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "device/backend.h"
#include "model/key_rotation.h"
#include "model/model.h"
#include "model/toy_gguf.h"

namespace ebb {
namespace {

// Six layers of two KV heads; the last sees all, the others a window, and turn by other frequencies.
class BlockMoverTest : public testing::Test {
 protected:
  static constexpr std::int32_t kLayers = 6;
  static constexpr std::int32_t kKvHeads = 2;
  static constexpr std::size_t kHeads = kLayers * kKvHeads;
  static constexpr std::int32_t kTokens = 13;

  BlockMoverTest()
      : backend_(std::move(Backend::open("cpu", 1)).value()),
        toy_({.architecture = "gemma3", .n_layers = kLayers, .rope_freq_base = 1e6F, .sliding_window = 32}),
        model_(std::move(Model::load(toy_.path(), *backend_, {})).value()) {}

  [[nodiscard]] FrameLayout layout(RowType type) const {
    return {.row_type = type,
            .block_size = 16,
            .head_dim_k = model_->hparams().head_dim_k,
            .head_dim_v = model_->hparams().head_dim_v};
  }
  // Finite values in every row type: halves of 1.0 and above, and codes of any kind.
  static std::vector<std::byte> any_frames(std::size_t n_bytes) {
    std::mt19937 random(9);
    std::vector<std::byte> frames(n_bytes);
    for (std::byte& byte : frames) byte = static_cast<std::byte>(random() % 0x3C);
    return frames;
  }
  static HeadSet heads(std::initializer_list<std::size_t> of) {
    HeadSet heads(kHeads);
    for (const std::size_t head : of) heads.add(head);
    return heads;
  }
  // The frames of those heads out of the frames of all.
  static std::vector<std::byte> picked(const std::vector<std::byte>& all, const HeadSet& heads) {
    const std::size_t frame_bytes = all.size() / kHeads;
    std::vector<std::byte> some;
    heads.for_each([&](std::size_t head) {
      const auto frame = std::span(all).subspan(head * frame_bytes, frame_bytes);
      some.insert(some.end(), frame.begin(), frame.end());
    });
    return some;
  }

  std::unique_ptr<Backend> backend_;
  ToyGguf toy_;
  std::unique_ptr<Model> model_;
};

using BlockMoverDeathTest = BlockMoverTest;

TEST_F(BlockMoverTest, frames_of_some_heads_are_turned_as_among_all) {
  for (const RowType type : {RowType::kF32, RowType::kF16, RowType::kKivi4}) {
    const BlockMover mover(*model_, layout(type));
    const std::vector<std::byte> before = any_frames(kHeads * layout(type).frame_bytes());
    std::vector<std::byte> all = before;
    mover.move(all, HeadSet::all(kHeads), kTokens, 77);
    EXPECT_NE(all, before);
    for (const HeadSet& some : {heads({0}), heads({9, 10}), heads({1, 4, 11}), HeadSet::all(kHeads), heads({})}) {
      std::vector<std::byte> frames = picked(before, some);
      mover.move(frames, some, kTokens, 77);
      EXPECT_EQ(frames, picked(all, some)) << row_type_name(type) << ", " << some.count() << " heads";
    }
  }
}

TEST_F(BlockMoverTest, each_layer_turns_by_its_own_frequencies_whichever_heads_are_there) {
  const BlockMover mover(*model_, layout(RowType::kF32));
  const std::vector<std::byte> one = any_frames(layout(RowType::kF32).frame_bytes());
  const auto moved = [&](std::size_t head) {
    std::vector<std::byte> frame = one;
    mover.move(frame, heads({head}), kTokens, 77);
    return frame;
  };
  EXPECT_EQ(moved(0), moved(1)) << "heads of a layer";
  EXPECT_EQ(moved(0), moved(9)) << "layers that slide";
  EXPECT_NE(moved(9), moved(10)) << "the layer that sees all";
  EXPECT_EQ(moved(10), moved(11));
}

TEST_F(BlockMoverTest, open_frames_of_some_heads_are_turned_as_among_all) {
  const FrameLayout sealing = layout(RowType::kKivi4);
  const BlockMover mover(*model_, sealing);
  const std::vector<std::byte> before = any_frames(kHeads * sealing.open_layout().frame_bytes());
  std::vector<std::byte> all = before;
  mover.move_open(all, HeadSet::all(kHeads), kTokens, -5);
  const HeadSet some = heads({2, 3, 10});
  std::vector<std::byte> frames = picked(before, some);
  mover.move_open(frames, some, kTokens, -5);
  EXPECT_EQ(frames, picked(all, some));
}

TEST_F(BlockMoverDeathTest, bytes_of_other_heads_than_were_said_are_refused) {
  const BlockMover mover(*model_, layout(RowType::kF16));
  const std::size_t frame_bytes = layout(RowType::kF16).frame_bytes();
  std::vector<std::byte> two(2 * frame_bytes);
  EXPECT_DEATH(mover.move(two, heads({0, 1, 2}), kTokens, 1), "for 3 of 12 frames");
  EXPECT_DEATH(mover.move(two, HeadSet::all(2), kTokens, 1), "for 2 of 2 frames");
  mover.move(two, heads({3, 8}), kTokens, 0);
  EXPECT_EQ(two, std::vector<std::byte>(2 * frame_bytes)) << "by no anchors";
}

}  // namespace
}  // namespace ebb
