// Fields: the typed members of a JSON object that a client sent.
//
// A member that is null counts as absent; one of the wrong type, or outside its range, makes the first error, which names
// the member and what is expected, and the default is given. It never throws. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/status.h"

namespace ebb {

using Json = nlohmann::ordered_json;

class Fields {
 public:
  // `object` must outlive it. An error when it is not an object. `path`: where it stands in the body; "" is the body.
  explicit Fields(const Json& object, std::string path = {});

  // Null when absent.
  [[nodiscard]] const Json* find(std::string_view name) const;
  [[nodiscard]] bool boolean(std::string_view name, bool otherwise);
  [[nodiscard]] std::string text(std::string_view name, std::string otherwise = {});
  // An array of at most `most` strings; empty when absent.
  [[nodiscard]] std::vector<std::string> texts(std::string_view name, std::size_t most);
  // Refused outside [least, most].
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t otherwise, std::int64_t least,
                                     std::int64_t most);
  // Clamped to [least, most].
  [[nodiscard]] float number(std::string_view name, float otherwise, float least, float most);
  // Of an error found elsewhere; the first one stays.
  void refuse(std::string message);
  // Of an error of an object inside.
  void refuse_as(const Fields& inner);

  [[nodiscard]] const Status& status() const { return status_; }

 private:
  [[nodiscard]] std::string path_of(std::string_view name) const;

  const Json& object_;
  std::string path_;
  Status status_;
};

// The member's text; "" where it is absent or no string, or `json` no object.
[[nodiscard]] std::string text_member(const Json& json, std::string_view name);

}  // namespace ebb
