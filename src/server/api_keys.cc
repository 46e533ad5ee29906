#include "server/api_keys.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <unistd.h>

#include "base/check.h"
#include "server/http_wire.h"

namespace ebb {
namespace {

constexpr std::string_view kHashMark = "sha256:";

template <std::size_t kSize>
std::string hex_of(const std::array<unsigned char, kSize>& bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

std::string_view given_key(const HttpRequest& request) {
  constexpr std::string_view kBearer = "Bearer ";
  if (const std::string* header = request.find_header("authorization"); header != nullptr) {
    const std::string_view given = *header;
    if (equal_ignoring_case(given.substr(0, kBearer.size()), kBearer)) return given.substr(kBearer.size());
  }
  const std::string* header = request.find_header("x-api-key");
  return header != nullptr ? std::string_view(*header) : std::string_view();
}

// The next line without the blanks around it; takes it off `text`.
std::string_view take_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  constexpr std::string_view kBlanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  return line.substr(0, line.find_last_not_of(kBlanks) + 1);
}

}  // namespace

ApiKeys::ApiKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) add(hash_of(key));
}

// Shares are dealt out by owners: who is listed twice is one.
void ApiKeys::add(const Hash& hash) {
  if (std::ranges::find(hashes_, hash) == hashes_.end()) hashes_.push_back(hash);
}

Result<std::string> ApiKeys::make_key() {
  std::array<unsigned char, 32> bytes{};
  if (::getentropy(bytes.data(), bytes.size()) != 0) {
    return error(Code::kIo, "no random bytes for a key: {}", std::strerror(errno));
  }
  return "ebb-" + hex_of(bytes);
}

ApiKeys::Hash ApiKeys::hash_of(std::string_view key) {
  Hash hash{};
  const auto* bytes = reinterpret_cast<const unsigned char*>(key.data());
  EBB_CHECK(::SHA256(bytes, key.size(), hash.data()) != nullptr, "libcrypto has SHA-256");
  return hash;
}

std::optional<ApiKeys::Hash> ApiKeys::parse_hash(std::string_view digits) {
  Hash hash{};
  if (digits.size() != 2 * hash.size()) return std::nullopt;
  for (unsigned char& byte : hash) {
    const char* const end = digits.data() + 2;
    if (const auto [rest, failed] = std::from_chars(digits.data(), end, byte, 16); rest != end) return std::nullopt;
    digits.remove_prefix(2);
  }
  return hash;
}

Status ApiKeys::add_lines(std::string_view text) {
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = take_line(text);
    if (line.empty() || line.front() == '#') continue;
    const bool is_hashed = line.starts_with(kHashMark);
    const std::optional<Hash> hash = is_hashed ? parse_hash(line.substr(kHashMark.size())) : hash_of(line);
    if (!hash) {
      return error(
          Code::kInvalidArgument,
          "line {}: behind '{}' there must be 64 hexadecimal digits; `ebb key --hash` prints such a line for a key",
          number, kHashMark);
    }
    add(*hash);
  }
  return {};
}

std::vector<std::string> ApiKeys::hashed_lines() const {
  std::vector<std::string> lines;
  for (const Hash& hash : hashes_) lines.push_back(std::string(kHashMark) + hex_of(hash));
  return lines;
}

std::optional<std::string> ApiKeys::find_owner(const HttpRequest& request) const {
  if (hashes_.empty()) return std::string();
  const std::string_view key = given_key(request);
  if (key.empty()) return std::nullopt;
  const Hash given = hash_of(key);
  bool is_known = false;
  for (const Hash& hash : hashes_) is_known |= CRYPTO_memcmp(given.data(), hash.data(), hash.size()) == 0;
  return is_known ? std::optional(hex_of(given)) : std::nullopt;
}

bool ApiKeys::is_owner(std::string_view owner) const {
  if (hashes_.empty()) return owner.empty();
  return std::ranges::any_of(hashes_, [&](const Hash& hash) { return hex_of(hash) == owner; });
}

}  // namespace ebb
