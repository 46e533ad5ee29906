#include "cache/frame_memory.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include <ggml-backend.h>
#include <ggml.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/toy_bytes.h"

namespace ebb::frame_memory_test {
namespace {

std::unique_ptr<Backend> open_cpu() { return std::move(Backend::open("cpu", 1)).value(); }

// Both key orders of every row type, with sizes that leave gaps before V and at the end.
std::vector<FrameLayout> layouts() {
  std::vector<FrameLayout> all;
  for (const KeyOrder order : {KeyOrder::kByDim, KeyOrder::kByRow}) {
    for (const RowType type : {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0}) {
      const bool grouped = type == RowType::kQ8_0;
      all.push_back({.row_type = type,
                     .key_order = order,
                     .block_size = 9,
                     .head_dim_k = grouped ? 64 : 10,
                     .head_dim_v = grouped ? 32 : 5});
    }
  }
  all.push_back({.row_type = RowType::kKivi4, .block_size = 9, .head_dim_k = 10, .head_dim_v = 5});
  return all;
}

// Zeroes what lies between and behind the rows of a kByRow frame.
Bytes without_gaps(Bytes bytes, const FrameLayout& layout, const FrameMemory& memory) {
  if (layout.key_order == KeyOrder::kByDim) return bytes;
  const auto n_slots = static_cast<std::size_t>(layout.block_size);
  const std::size_t k_end = memory.k_rows()->nb[1] * n_slots;
  const std::size_t v_end = layout.v_offset() + memory.v_rows()->nb[1] * n_slots;
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(k_end),
            bytes.begin() + static_cast<std::ptrdiff_t>(layout.v_offset()), std::byte{});
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(v_end), bytes.end(), std::byte{});
  return bytes;
}

TEST(FrameMemory, starts_as_zeros) {
  const auto backend = open_cpu();
  for (const FrameLayout& layout : layouts()) {
    const auto memory = std::move(FrameMemory::open(*backend, layout, 3)).value();
    Bytes bytes(memory->frame_bytes(), std::byte{1});
    memory->read(FrameIndex(2), bytes);
    EXPECT_THAT(bytes, testing::Each(std::byte{})) << row_type_name(layout.row_type);
  }
}

TEST(FrameMemory, gives_back_the_bytes_of_every_frame) {
  constexpr std::int32_t kFrames = 7;
  const auto backend = open_cpu();
  for (const FrameLayout& layout : layouts()) {
    SCOPED_TRACE(row_type_name(layout.row_type));
    const auto memory = std::move(FrameMemory::open(*backend, layout, kFrames)).value();
    EXPECT_EQ(memory->frame_bytes(), layout.frame_bytes());
    EXPECT_EQ(memory->reserved_bytes(), layout.frame_bytes() * kFrames);
    for (std::int32_t f = kFrames - 1; f >= 0; --f) {
      memory->write(FrameIndex(f), random_bytes(memory->frame_bytes(), static_cast<std::uint64_t>(f)));
    }
    for (std::int32_t f = 0; f < kFrames; ++f) {
      Bytes bytes(memory->frame_bytes(), std::byte{1});
      memory->read(FrameIndex(f), bytes);
      const Bytes written = random_bytes(memory->frame_bytes(), static_cast<std::uint64_t>(f));
      EXPECT_EQ(bytes, without_gaps(written, layout, *memory)) << "frame " << f;
    }
  }
}

TEST(FrameMemory, lays_frames_by_dimension_one_behind_the_other_on_the_host) {
  const auto backend = open_cpu();
  const FrameLayout layout = layouts().front();
  const auto memory = std::move(FrameMemory::open(*backend, layout, 3)).value();
  EXPECT_EQ(memory->k_rows(), nullptr);
  EXPECT_EQ(memory->v_rows(), nullptr);
  const Bytes bytes = random_bytes(layout.frame_bytes(), 1);
  memory->write(FrameIndex(2), bytes);
  EXPECT_EQ(std::memcmp(memory->host_bytes() + 2 * layout.frame_bytes(), bytes.data(), bytes.size()), 0);
}

TEST(FrameMemory, lays_frames_by_row_as_rows_of_two_tensors) {
  const auto backend = open_cpu();
  for (const FrameLayout& layout : layouts()) {
    if (layout.key_order == KeyOrder::kByDim) continue;
    const auto memory = std::move(FrameMemory::open(*backend, layout, 4)).value();
    EXPECT_EQ(memory->host_bytes(), nullptr);
    EXPECT_EQ(memory->k_rows()->ne[0], layout.head_dim_k);
    EXPECT_EQ(memory->v_rows()->ne[0], layout.head_dim_v);
    EXPECT_EQ(memory->k_rows()->ne[1], 4 * layout.block_size);
    const Bytes bytes = random_bytes(layout.frame_bytes(), 2);
    memory->write(FrameIndex(3), bytes);
    const auto first_row = static_cast<std::size_t>(3 * layout.block_size);
    for (const auto& [tensor, offset] :
         {std::pair{memory->k_rows(), std::size_t{0}}, std::pair{memory->v_rows(), layout.v_offset()}}) {
      Bytes rows(tensor->nb[1] * static_cast<std::size_t>(layout.block_size));
      ggml_backend_tensor_get(tensor, rows.data(), first_row * tensor->nb[1], rows.size());
      EXPECT_EQ(std::memcmp(rows.data(), bytes.data() + offset, rows.size()), 0) << row_type_name(layout.row_type);
    }
  }
}

TEST(FrameMemory, refuses_counts_and_layouts_that_make_no_sense) {
  const auto backend = open_cpu();
  for (const FrameLayout& layout : layouts()) {
    for (const std::int32_t n_frames : {0, -1, INT32_MIN}) {
      EXPECT_EQ(FrameMemory::open(*backend, layout, n_frames).status().code(), Code::kInvalidArgument);
    }
    FrameLayout broken = layout;
    broken.head_dim_k = 0;
    EXPECT_FALSE(FrameMemory::open(*backend, broken, 1).ok());
    broken = layout;
    broken.block_size = 1 << 30;
    EXPECT_FALSE(FrameMemory::open(*backend, broken, 1).ok());
  }
}

TEST(FrameMemory, refuses_more_than_the_machine_has) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer stops on allocations of this size instead of refusing them";
#endif
  const auto backend = open_cpu();
  for (const KeyOrder order : {KeyOrder::kByDim, KeyOrder::kByRow}) {
    const FrameLayout layout = {
        .row_type = RowType::kF32, .key_order = order, .block_size = 128, .head_dim_k = 1024, .head_dim_v = 1024};
    const auto memory = FrameMemory::open(*backend, layout, INT32_MAX);
    ASSERT_FALSE(memory.ok());
    EXPECT_EQ(memory.status().code(), Code::kOutOfBudget);
    EXPECT_THAT(memory.status().message(), testing::HasSubstr("2147483647 MB"));
  }
}

TEST(FrameMemoryDeathTest, stops_on_foreign_frames_and_wrong_sizes) {
  const auto backend = open_cpu();
  const auto memory = std::move(FrameMemory::open(*backend, layouts().front(), 2)).value();
  Bytes bytes(memory->frame_bytes());
  EXPECT_DEATH(memory->write(FrameIndex(2), bytes), "frame 2 of 2");
  EXPECT_DEATH(memory->read(FrameIndex(-1), bytes), "frame -1 of 2");
  EXPECT_DEATH(memory->write(FrameIndex(0), std::span(bytes).first(1)), "1 bytes for a frame");
}

TEST(FrameMemory, keeps_open_frames_apart_from_the_others_and_counts_them) {
  const auto backend = open_cpu();
  const FrameLayout layout = {.row_type = RowType::kKivi4, .head_dim_k = 64, .head_dim_v = 64};
  const auto memory = std::move(FrameMemory::open(*backend, layout, 3, 2)).value();
  EXPECT_EQ(memory->open_frame_bytes(), layout.open_layout().frame_bytes());
  EXPECT_EQ(memory->open_reserved_bytes(), 2 * memory->open_frame_bytes());
  EXPECT_EQ(memory->reserved_bytes(), 3 * layout.frame_bytes());
  const Bytes sealed = random_bytes(memory->frame_bytes(), 1);
  const Bytes open = random_bytes(memory->open_frame_bytes(), 2);
  memory->write(FrameIndex(1), sealed);
  memory->write_open(FrameIndex(1), open);
  Bytes read(memory->frame_bytes());
  memory->read(FrameIndex(1), read);
  EXPECT_EQ(read, sealed);
  read.resize(memory->open_frame_bytes());
  memory->read_open(FrameIndex(1), read);
  EXPECT_EQ(read, open);
  EXPECT_EQ(std::memcmp(memory->open_host_bytes() + memory->open_frame_bytes(), open.data(), open.size()), 0);
}

}  // namespace
}  // namespace ebb::frame_memory_test
