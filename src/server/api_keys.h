// API keys: who may ask, and whose a request is.
//
// Only the SHA-256 of a key is kept, and compared in a time that does not depend on what was given. It hides long
// random keys, not ones that somebody could guess. A key's owner is named by its hash, whether the key or the hash was
// configured, so that sessions on disk stay that owner's. Thread rule: immutable once it is filled; then any thread.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/http_message.h"

namespace ebb {

class ApiKeys {
 public:
  // None: everybody may ask, and all are one owner, "".
  ApiKeys() = default;
  // The keys themselves.
  explicit ApiKeys(const std::vector<std::string>& keys);
  // From the system's random source; kIo when it has none to give.
  [[nodiscard]] static Result<std::string> make_key();

  // A key file's: one key, or "sha256:" and a key's hash in 64 hexadecimal digits, to a line; empty lines and those
  // that begin with '#' are none. An error names the line by its number and tells nothing of it.
  Status add_lines(std::string_view text);
  // What may stand for the keys in a key file, in the order in which they were given.
  [[nodiscard]] std::vector<std::string> hashed_lines() const;

  [[nodiscard]] std::size_t size() const { return hashes_.size(); }
  [[nodiscard]] bool empty() const { return hashes_.empty(); }
  // Whose request it is, by "Authorization: Bearer KEY" or "X-Api-Key: KEY"; nothing for a stranger's, and an empty key
  // is always a stranger's.
  [[nodiscard]] std::optional<std::string> find_owner(const HttpRequest& request) const;
  // Whether somebody with a key is called that.
  [[nodiscard]] bool is_owner(std::string_view owner) const;

 private:
  using Hash = std::array<unsigned char, 32>;

  static Hash hash_of(std::string_view key);
  static std::optional<Hash> parse_hash(std::string_view digits);
  void add(const Hash& hash);

  std::vector<Hash> hashes_;
};

}  // namespace ebb
