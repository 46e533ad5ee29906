// JsonFields: the typed members of a JSON object that somebody else wrote.
//
// The one way from JSON to what a request means. A member that is null counts as absent; one of the wrong type, or outside
// its range, makes the first error, which names the field by its path, says what is expected and what came, and the default
// is given. Readers of the objects inside share that error with the reader they came from, so it is asked for once, at the
// end. It never throws.
//
//   JsonFields fields(body);
//   for (JsonFields& tool : fields.objects("tools")) names.push_back(tool.needed_text("name"));
//   EBB_RETURN_IF_ERROR(fields.status());             // Field 'tools[3].name': must be a string, but got a number
//
// Thread rule: one thread at a time, the readers of objects inside included.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json/parse_json.h"

namespace ebb {

class JsonFields {
 public:
  // `object` must outlive it. An error when it is not an object. `path`: where it stands in the body; "" is the body.
  explicit JsonFields(const Json& object, std::string path = {});

  // Null when absent.
  [[nodiscard]] const Json* find(std::string_view name) const;
  [[nodiscard]] bool boolean(std::string_view name, bool otherwise);
  [[nodiscard]] std::string text(std::string_view name, std::string otherwise = {});
  // An error when absent.
  [[nodiscard]] std::string needed_text(std::string_view name);
  // An array of at most `most` strings; empty when absent.
  [[nodiscard]] std::vector<std::string> texts(std::string_view name, std::size_t most);
  // Refused outside [least, most].
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t otherwise, std::int64_t least,
                                     std::int64_t most);
  // Clamped to [least, most].
  [[nodiscard]] float number(std::string_view name, float otherwise, float least, float most);

  // The object inside; nothing when absent.
  [[nodiscard]] std::optional<JsonFields> object(std::string_view name);
  // An error when absent.
  [[nodiscard]] std::optional<JsonFields> needed_object(std::string_view name);
  // An array of objects; empty when absent.
  [[nodiscard]] std::vector<JsonFields> objects(std::string_view name);

  // Errors that only the caller sees; the first one stays. "Field 'PATH.name': what"
  void refuse(std::string_view name, std::string_view what);
  // "Field 'PATH.name': must be EXPECTED, but got TYPE", or without the last where it is absent.
  void refuse_type(std::string_view name, std::string_view expected);

  // A member of another name: nobody reads it, it is most likely a misspelt one, and its default would be taken in silence.
  void refuse_others(std::span<const std::string_view> names);
  void refuse_others(std::initializer_list<std::string_view> names) {
    refuse_others(std::span(names.begin(), names.size()));
  }

  [[nodiscard]] const Json& json() const { return *object_; }
  [[nodiscard]] const Status& status() const { return *status_; }

 private:
  JsonFields(const Json& object, std::string path, std::shared_ptr<Status> status);
  [[nodiscard]] std::string path_of(std::string_view name) const;
  void refuse_whole(std::string message);

  const Json* object_;
  std::string path_;
  std::shared_ptr<Status> status_;
};

// A whole number in [least, most], 5.0 included; nothing for all else.
[[nodiscard]] std::optional<std::int64_t> integer_between(const Json& value, std::int64_t least, std::int64_t most);

// The member's text; "" where it is absent or no string, or `json` no object. For what is looked at and never refused.
[[nodiscard]] std::string text_member(const Json& json, std::string_view name);

}  // namespace ebb
