#include "policy/rotation.h"

#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/to_size.h"

namespace ebb {
namespace {

// Tables beyond this are nobody's: a million rows of a head of 256 are 1 GB.
constexpr std::int64_t kMostEntries = std::int64_t{1} << 28;

Status check_victims(std::int32_t n_blocks, std::span<const std::int32_t> victims) {
  std::int32_t before = -1;
  for (const std::int32_t victim : victims) {
    if (victim < 0 || victim >= n_blocks) {
      return error(Code::kInvalidArgument, "block {} is to leave a table of {} blocks; there is no such block", victim,
                   n_blocks);
    }
    if (victim <= before) {
      return error(Code::kInvalidArgument, "block {} is to leave behind block {}: name each once, in ascending order",
                   victim, before);
    }
    before = victim;
  }
  return {};
}

}  // namespace

Result<std::vector<BlockShift>> find_shifts(std::int32_t n_blocks, std::span<const std::int32_t> victims,
                                            std::int32_t block_size, std::int32_t n_rows) {
  if (block_size < 1 || std::int64_t{n_blocks} * block_size > std::numeric_limits<std::int32_t>::max()) {
    return error(Code::kInvalidArgument, "a table of {} blocks of {} tokens", n_blocks, block_size);
  }
  EBB_RETURN_IF_ERROR(check_victims(n_blocks, victims));
  std::vector<BlockShift> shifts;
  if (victims.empty()) return shifts;
  std::size_t n_gone = 1;
  for (std::int32_t block = victims.front() + 1; block < n_blocks; ++block) {
    if (n_gone < victims.size() && victims[n_gone] == block) {
      ++n_gone;
      continue;
    }
    const auto shift = static_cast<std::int32_t>(n_gone);
    if (shift >= n_rows) {
      return error(
          Code::kInvalidArgument,
          "block {} moves by {} blocks, and the rotation table has {} rows, for 0 to {} blocks; make it larger", block,
          shift, n_rows, n_rows - 1);
    }
    shifts.push_back({.from = block, .to = block - shift, .n_tokens = shift * block_size});
  }
  return shifts;
}

Result<RotationTable> RotationTable::make(std::int32_t n_rows, std::int32_t block_size, std::int32_t head_dim,
                                          double theta) {
  if (!std::isfinite(theta) || theta <= 0.0) {
    return error(Code::kInvalidArgument,
                 "a rotary base of {}: frequencies are its negative powers, so give more than 0", theta);
  }
  if (head_dim < 2 || head_dim % 2 != 0) {
    return error(Code::kInvalidArgument, "a head of {}: rotary pairs need an even number of dimensions", head_dim);
  }
  if (n_rows < 1 || block_size < 1 || std::int64_t{n_rows} * head_dim > kMostEntries) {
    return error(Code::kInvalidArgument, "a rotation table of {} rows for blocks of {} tokens and heads of {}", n_rows,
                 block_size, head_dim);
  }
  RotationTable table{.n_rows = n_rows, .half_dim = head_dim / 2};
  table.cos.reserve(to_size(n_rows) * to_size(table.half_dim));
  table.negative_sin.reserve(table.cos.capacity());
  for (std::int32_t i = 0; i < n_rows; ++i) {
    for (std::int32_t j = 0; j < table.half_dim; ++j) {
      const double n_positions = static_cast<double>(i) * block_size;
      const double angle = n_positions * std::pow(theta, -2.0 * j / head_dim);
      table.cos.push_back(static_cast<float>(std::cos(angle)));
      table.negative_sin.push_back(static_cast<float>(-std::sin(angle)));
    }
  }
  return table;
}

void turn_back(std::span<float> key, const RotationTable& table, std::int32_t row) {
  EBB_CHECK(0 <= row && row < table.n_rows && key.size() == 2 * to_size(table.half_dim), "row {} of {}, key of {}", row,
            table.n_rows, key.size());
  const std::size_t half = to_size(table.half_dim);
  for (std::size_t j = 0; j < half; ++j) {
    const float c = table.cos[to_size(row) * half + j];
    const float s = table.negative_sin[to_size(row) * half + j];
    const float x = key[j];
    const float y = key[j + half];
    key[j] = x * c - y * s;
    key[j + half] = x * s + y * c;
  }
}

}  // namespace ebb
