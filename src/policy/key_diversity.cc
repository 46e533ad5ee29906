#include "policy/key_diversity.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/to_size.h"

namespace ebb {
namespace {

// Keeps a key of zeros from being divided by nothing.
constexpr double kSmallest = 1.19e-7;
// Cosines of all pairs of tokens, which take a second or so for each head.
constexpr std::int32_t kMostKeyTokens = 1 << 14;

Status check_keys(std::span<const float> keys, const KeyShape& shape) {
  const bool is_shape = shape.block_size >= 1 && shape.n_kv_heads >= 1 && shape.head_dim >= 1 && shape.n_tokens >= 0 &&
                        shape.n_tokens <= kMostKeyTokens && shape.n_tokens % shape.block_size == 0;
  if (!is_shape) {
    return error(Code::kInvalidArgument,
                 "keys of {} tokens, {} heads of {}, in blocks of {}: give whole blocks of at most {} tokens",
                 shape.n_tokens, shape.n_kv_heads, shape.head_dim, shape.block_size, kMostKeyTokens);
  }
  const std::size_t n_expected = to_size(shape.n_tokens) * to_size(shape.n_kv_heads) * to_size(shape.head_dim);
  if (keys.size() != n_expected)
    return error(Code::kInvalidArgument, "{} numbers of keys, expected {}", keys.size(), n_expected);
  if (std::ranges::all_of(keys, [](float key) { return std::isfinite(key); })) return {};
  return error(Code::kInvalidArgument, "a key has a value that is no finite number");
}

// One head's keys, each of length 1: [n_tokens, head_dim].
std::vector<double> unit_keys(std::span<const float> keys, const KeyShape& shape, std::int32_t head) {
  const std::size_t dim = to_size(shape.head_dim);
  std::vector<double> units;
  units.reserve(to_size(shape.n_tokens) * dim);
  for (std::int32_t token = 0; token < shape.n_tokens; ++token) {
    const auto key = keys.subspan((to_size(token) * to_size(shape.n_kv_heads) + to_size(head)) * dim, dim);
    double squares = kSmallest;
    for (const float value : key) squares += static_cast<double>(value) * value;
    for (const float value : key) units.push_back(value / std::sqrt(squares));
  }
  return units;
}

// What is less alike than the mean says nothing.
double alike(double cosine, double mean) { return cosine < mean ? 0.0 : cosine; }

// Cosines of a token and all others, its own 0, and those below the row's mean 0 too.
std::vector<double> likeness_row(std::span<const double> units, std::size_t token, std::size_t dim) {
  const std::size_t n_tokens = units.size() / dim;
  std::vector<double> row(n_tokens);
  for (std::size_t other = 0; other < n_tokens; ++other) {
    if (other == token) continue;
    row[other] = std::inner_product(units.begin() + static_cast<std::ptrdiff_t>(token * dim),
                                    units.begin() + static_cast<std::ptrdiff_t>((token + 1) * dim),
                                    units.begin() + static_cast<std::ptrdiff_t>(other * dim), 0.0);
  }
  const double mean = std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(n_tokens);
  for (double& value : row) value = alike(value, mean);
  return row;
}

// One head's directions.
class HeadDirections {
 public:
  HeadDirections(const RowDirections& all, std::size_t head, std::span<const std::int32_t> rows)
      : n_all_(static_cast<double>(all.n_rows())), n_(rows.size()), sums_(all.head_dim), planes_(all.head_dim * n_) {
    const auto of_row = [&](std::size_t row) {
      return all.directions.subspan((row * all.n_heads + head) * all.head_dim, all.head_dim);
    };
    for (std::size_t row = 0; row < all.n_rows(); ++row) {
      for (std::size_t d = 0; d < sums_.size(); ++d) sums_[d] += double{of_row(row)[d]};
    }
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t d = 0; d < sums_.size(); ++d) planes_[d * n_ + i] = double{of_row(to_size(rows[i]))[d]};
    }
  }

  // Adds to each row's sum its cosines with all of the rows, as far as they are alike.
  void add_alike(std::int32_t n_tokens, std::span<double> sums) const {
    std::vector<double> cosines(n_);
    for (std::size_t i = 0; i < n_; ++i) {
      std::ranges::fill(cosines, 0.0);
      double with_all = 0.0;
      for (std::size_t d = 0; d < sums_.size(); ++d) {
        const double* const plane = planes_.data() + d * n_;
        with_all += plane[i] * sums_[d];
        for (std::size_t j = 0; j < n_; ++j) cosines[j] += plane[i] * plane[j];
      }
      // Each token of the row is like itself, which is not counted.
      const double square = cosines[i];
      cosines[i] = n_tokens == 1 || square == 0.0 ? 0.0 : square - 1.0 / n_tokens;
      const double mean = (with_all - square + cosines[i]) / n_all_;
      for (const double cosine : cosines) sums[i] += alike(cosine, mean);
    }
  }

 private:
  double n_all_;
  std::size_t n_;
  std::vector<double> sums_;    // of all rows, [dims]
  std::vector<double> planes_;  // [dims][rows], so that one row's cosines with all others are found side by side
};

}  // namespace

Result<std::vector<float>> key_diversity(std::span<const float> keys, const KeyShape& shape) {
  EBB_RETURN_IF_ERROR(check_keys(keys, shape));
  const std::size_t n_tokens = to_size(shape.n_tokens);
  const std::size_t block_size = to_size(shape.block_size);
  std::vector<double> likeness(n_tokens / block_size * n_tokens);
  for (std::int32_t head = 0; head < shape.n_kv_heads; ++head) {
    const std::vector<double> units = unit_keys(keys, shape, head);
    for (std::size_t token = 0; token < n_tokens; ++token) {
      const std::vector<double> row = likeness_row(units, token, to_size(shape.head_dim));
      const auto of_block = std::span(likeness).subspan(token / block_size * n_tokens, n_tokens);
      for (std::size_t i = 0; i < n_tokens; ++i) of_block[i] += row[i];
    }
  }
  std::vector<float> diversity;
  diversity.reserve(likeness.size());
  for (const double value : likeness) diversity.push_back(static_cast<float>(-value / shape.n_kv_heads));
  return diversity;
}

std::vector<double> direction_diversity(const RowDirections& all, std::span<const std::int32_t> rows) {
  std::vector<double> diversity(rows.size(), 0.0);
  if (all.n_rows() == 0 || rows.empty()) return diversity;
  for (std::size_t head = 0; head < all.n_heads; ++head) {
    HeadDirections(all, head, rows).add_alike(all.n_tokens, diversity);
  }
  for (double& value : diversity) value = -value;
  return diversity;
}

}  // namespace ebb
