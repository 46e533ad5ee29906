// API keys: who may ask, and whose a request is.
//
// Of keys only hashes are kept, and compared in a time that does not depend on what was given. The hash is XXH3-128, which
// is not made for secrets: it names owners and keeps keys out of memory dumps and files, and does not protect a short key
// from somebody who reads that memory. Thread rule: immutable; any thread.
#pragma once

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
  explicit ApiKeys(const std::vector<std::string>& keys);
  // One key to a line; empty lines and those that begin with '#' are none.
  static std::vector<std::string> parse_lines(std::string_view text);

  [[nodiscard]] std::size_t size() const { return owners_.size(); }
  [[nodiscard]] bool empty() const { return owners_.empty(); }
  // Whose request it is, by "Authorization: Bearer KEY" or "X-Api-Key: KEY"; nothing for a stranger's, and
  // an empty key is always a stranger's.
  [[nodiscard]] std::optional<std::string> find_owner(const HttpRequest& request) const;
  // Whether somebody with a key is called that.
  [[nodiscard]] bool is_owner(std::string_view owner) const;

 private:
  std::vector<std::string> owners_;
};

}  // namespace ebb
