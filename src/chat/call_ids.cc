#include "chat/call_ids.h"

#include <algorithm>
#include <span>

#include "base/hash.h"

namespace ebb {
namespace {

constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

}  // namespace

std::uint64_t CallIds::random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

bool CallIds::is_id(std::string_view text) {
  return text.size() == kIdBytes && text.find_first_not_of(kLetters) == std::string_view::npos;
}

std::string CallIds::short_id(std::string_view text) {
  if (is_id(text)) return std::string(text);
  std::uint64_t rest = hash_bytes(std::as_bytes(std::span(text))).low;
  std::string id(kIdBytes, '0');
  for (char& letter : id) {
    letter = kLetters[rest % kLetters.size()];
    rest /= kLetters.size();
  }
  return id;
}

std::string CallIds::next() {
  std::uniform_int_distribution<std::size_t> pick(0, kLetters.size() - 1);
  std::string id(kIdBytes, '0');
  do {
    std::generate(id.begin(), id.end(), [&] { return kLetters[pick(random_)]; });
  } while (!reserve(id));
  return id;
}

}  // namespace ebb
