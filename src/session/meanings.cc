#include "session/meanings.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace ebb {
namespace {

constexpr float kMostValue = 127.0F;

std::int32_t dot(const std::byte* a, const std::byte* b, std::size_t n) {
  const auto* const left = reinterpret_cast<const std::int8_t*>(a);
  const auto* const right = reinterpret_cast<const std::int8_t*>(b);
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::int32_t{left[i]} * right[i];
  return sum;
}

float scale_of(std::span<const std::byte> vector) {
  float scale = 0.0F;
  std::memcpy(&scale, vector.data(), sizeof scale);
  return scale;
}

}  // namespace

MeaningVectors::MeaningVectors(std::size_t n_dimensions, std::vector<std::byte> bytes)
    : n_dimensions_(n_dimensions), bytes_(std::move(bytes)) {
  for (std::size_t at = 0; at + bytes_of(n_dimensions_) <= bytes_.size(); at += bytes_of(n_dimensions_)) {
    if (!std::isfinite(scale_of(std::span(bytes_).subspan(at)))) std::memset(&bytes_[at], 0, sizeof(float));
  }
}

void MeaningVectors::add(std::span<const float> vector) {
  n_dimensions_ = vector.size();
  float most = 0.0F;
  for (const float x : vector) most = std::max(most, std::abs(x));
  const float scale = most / kMostValue;
  const std::size_t at = bytes_.size();
  bytes_.resize(at + bytes_of(n_dimensions_));
  std::memcpy(&bytes_[at], &scale, sizeof scale);
  for (std::size_t i = 0; i < vector.size() && scale > 0.0F; ++i) {
    bytes_[at + sizeof scale + i] = static_cast<std::byte>(static_cast<std::int8_t>(std::lround(vector[i] / scale)));
  }
}

double MeaningVectors::cosine(std::size_t i, const MeaningVectors& other, std::size_t j) const {
  const std::size_t n = bytes_of(n_dimensions_);
  const std::span<const std::byte> own = std::span(bytes_).subspan(i * n, n);
  const std::span<const std::byte> its = std::span(other.bytes_).subspan(j * n, n);
  return double{scale_of(own)} * double{scale_of(its)} *
         dot(own.data() + sizeof(float), its.data() + sizeof(float), n_dimensions_);
}

Meaning::Meaning(const Hash128& name, Passages passages) : name_(name), passages_(std::move(passages)) {}

Meaning::~Meaning() {
  if (room_ != nullptr) room_->give_back(vectors_.bytes().size());
}

void Meaning::set(MeaningVectors vectors, ByteRoom* room) {
  vectors_ = std::move(vectors);
  room_ = room;
  passages_.texts = {};
  is_done_.store(true, std::memory_order_release);
}

bool MeaningWait::is_ready() const {
  const std::scoped_lock lock(mutex_);
  return is_ready_;
}

void MeaningWait::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_ready_; });
}

double MeaningWait::ms() const {
  const std::scoped_lock lock(mutex_);
  return ms_;
}

void MeaningWait::finish() {
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(is_ready_, true)) return;
    ms_ = since_.elapsed_ms();
  }
  changed_.notify_all();
  if (notify_) notify_();
}

}  // namespace ebb
