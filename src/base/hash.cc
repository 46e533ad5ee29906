#include "base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#ifdef EBB_XXHASH_DISPATCHES
#include <xxh_x86dispatch.h>  // makes XXH3_128bits and its like choose by the CPU
#endif

#include "base/check.h"

namespace ebb {

struct Hasher::State {
  XXH3_state_t xxh;
};

std::string Hash128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Hash128 hash_bytes(std::span<const std::byte> bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.low64, h.high64};
}

Hash128 hash_words(std::initializer_list<std::uint64_t> words) {
  return hash_bytes(std::as_bytes(std::span(words.begin(), words.size())));
}

Hasher::Hasher() : state_(new State) { XXH3_128bits_reset(&state_->xxh); }
Hasher::~Hasher() { delete state_; }

Hasher& Hasher::add(std::uint64_t value) {
  XXH3_128bits_update(&state_->xxh, &value, sizeof value);
  return *this;
}

Hasher& Hasher::add(const Hash128& value) { return add(value.low).add(value.high); }

Hasher& Hasher::add_bytes(std::span<const std::byte> bytes) {
  add(bytes.size());
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
  return *this;
}

Hasher& Hasher::add_raw_bytes(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
  return *this;
}

Hasher& Hasher::add_text(std::string_view text) { return add_bytes(std::as_bytes(std::span(text))); }

Hash128 Hasher::finish() const {
  const XXH128_hash_t h = XXH3_128bits_digest(&state_->xxh);
  return {h.low64, h.high64};
}

}  // namespace ebb
