#include "server/api_keys.h"

#include <algorithm>
#include <span>

#include "base/hash.h"

namespace ebb {
namespace {

std::string owner_of(std::string_view key) { return hash_bytes(std::as_bytes(std::span(key))).hex(); }

// As long for a wrong one as for the right one; both are hashes, of one length.
bool same_owner(std::string_view a, std::string_view b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference |= static_cast<unsigned>(a[i] ^ b[i]);
  }
  return difference == 0;
}

std::string_view given_key(const HttpRequest& request) {
  constexpr std::string_view kBearer = "Bearer ";
  if (const std::string* header = request.find_header("authorization"); header != nullptr) {
    if (header->starts_with(kBearer)) return std::string_view(*header).substr(kBearer.size());
  }
  const std::string* header = request.find_header("x-api-key");
  return header != nullptr ? std::string_view(*header) : std::string_view();
}

}  // namespace

ApiKeys::ApiKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) owners_.push_back(owner_of(key));
}

std::vector<std::string> ApiKeys::parse_lines(std::string_view text) {
  std::vector<std::string> keys;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    constexpr std::string_view kBlanks = " \t\r";
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
    if (!line.empty() && line.front() != '#') keys.emplace_back(line);
  }
  return keys;
}

std::optional<std::string> ApiKeys::find_owner(const HttpRequest& request) const {
  if (owners_.empty()) return std::string();
  const std::string_view key = given_key(request);
  if (key.empty()) return std::nullopt;
  const std::string given = owner_of(key);
  bool is_known = false;
  for (const std::string& owner : owners_) is_known |= same_owner(given, owner);
  return is_known ? std::optional(given) : std::nullopt;
}

bool ApiKeys::is_owner(std::string_view owner) const {
  return owners_.empty() ? owner.empty() : std::ranges::find(owners_, owner) != owners_.end();
}

}  // namespace ebb
