#include "model/frame_digest.h"

#include <algorithm>
#include <cmath>

#include "model/frame_rows.h"
#include "model/output_lengths.h"

namespace ebb {
namespace {

double length_of(std::span<const float> row) {
  double sum = 0.0;
  for (const float x : row) sum += double{x} * double{x};
  return std::sqrt(sum);
}

std::vector<float> divided(const std::vector<double>& sums, std::size_t n) {
  std::vector<float> means;
  for (const double sum : sums) means.push_back(static_cast<float>(sum / static_cast<double>(n)));
  return means;
}

void digest_directions(const FrameRows& keys, FrameDigest& digest) {
  double norm = 0.0;
  std::vector<double> direction(keys.n_dims(), 0.0);
  for (std::size_t slot = 0; slot < keys.n_tokens(); ++slot) {
    const std::span<const float> key = keys.row(slot);
    const double length = length_of(key);
    norm += length;
    for (std::size_t d = 0; length > 0.0 && d < key.size(); ++d) direction[d] += double{key[d]} / length;
  }
  digest.key_norm = static_cast<float>(norm / static_cast<double>(keys.n_tokens()));
  digest.key_direction = divided(direction, keys.n_tokens());
}

std::vector<float> mean_of(const FrameRows& rows) {
  std::vector<double> sums(rows.n_dims(), 0.0);
  for (std::size_t slot = 0; slot < rows.n_tokens(); ++slot) {
    for (std::size_t d = 0; d < sums.size(); ++d) sums[d] += double{rows.row(slot)[d]};
  }
  return divided(sums, rows.n_tokens());
}

ChannelDigest ranges_of(const FrameRows& rows) {
  ChannelDigest digest{.least = {rows.row(0).begin(), rows.row(0).end()},
                       .greatest = {rows.row(0).begin(), rows.row(0).end()},
                       .mean = mean_of(rows)};
  for (std::size_t slot = 1; slot < rows.n_tokens(); ++slot) {
    for (std::size_t d = 0; d < rows.n_dims(); ++d) {
      digest.least[d] = std::min(digest.least[d], rows.row(slot)[d]);
      digest.greatest[d] = std::max(digest.greatest[d], rows.row(slot)[d]);
    }
  }
  return digest;
}

}  // namespace

FrameDigest digest_frame(const FrameLayout& layout, std::span<const std::byte> frame, std::int32_t n_tokens,
                         const DigestAsk& ask) {
  FrameDigest digest{.is_read = true};
  if (ask.directions || ask.ranges) {
    const FrameRows keys = FrameRows::keys_of(layout, frame, n_tokens);
    if (ask.directions) digest_directions(keys, digest);
    if (ask.ranges) digest.keys = ranges_of(keys);
  }
  if (!ask.ranges && !ask.value_means && ask.lengths == nullptr) return digest;
  const FrameRows values = FrameRows::values_of(layout, frame, n_tokens);
  if (ask.ranges) digest.values = ranges_of(values);
  if (ask.value_means && !ask.ranges) digest.values.mean = mean_of(values);
  if (ask.lengths != nullptr) {
    double sum = 0.0;
    for (const double length : ask.lengths->lengths(ask.head, values.rows())) sum += length;
    digest.output_length = static_cast<float>(sum / static_cast<double>(values.n_tokens()));
  }
  return digest;
}

}  // namespace ebb
