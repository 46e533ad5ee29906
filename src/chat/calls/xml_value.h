// Values of XML-like calls: untyped text, made JSON by the tool's schema.
//
// It does not know the tags around the values (form_reader.h).
//
// Thread rule: functions without state; an XmlArguments belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chat/calls/call_reader.h"
#include "chat/calls/tool.h"

namespace ebb {

// A set of JSON types, one bit each.
using JsonTypes = std::uint32_t;
struct JsonType {
  static constexpr JsonTypes kString = 1;
  static constexpr JsonTypes kNumber = 2;  // integers too
  static constexpr JsonTypes kBoolean = 4;
  static constexpr JsonTypes kNull = 8;
  static constexpr JsonTypes kObject = 16;
  static constexpr JsonTypes kArray = 32;
  static constexpr JsonTypes kAny = 63;
};

// One of them.
[[nodiscard]] JsonTypes json_type_of(const nlohmann::ordered_json& value);

// The types that a property's schema allows; of an unknown tool or property, a string.
[[nodiscard]] JsonTypes find_argument_types(const Tool* tool, std::string_view key);

// The text as JSON of one of the types: as it stands if that is JSON, else read as Python writes it ('a', True, None,
// (1, 2)), else as a string, so that no text is lost. Where a string is allowed beside other types, they come first.
[[nodiscard]] std::string xml_text_to_json(std::string_view text, JsonTypes types);

// The text as JSON if it is one Python literal, else empty.
[[nodiscard]] std::string python_to_json(std::string_view text);

// Writes an arguments object from keys and pieces of values. Strings go out as they come; other types are collected until
// they are whole.
class XmlArguments {
 public:
  void open(const Tool* tool, CallEvents& events);
  void begin_value(std::string_view key, CallEvents& events);
  // Where the text says the value's type.
  void begin_value(std::string_view key, CallEvents& events, JsonTypes types);
  void value(std::string_view text, CallEvents& events);
  void end_value(CallEvents& events);
  void close(CallEvents& events);
  // The text ends inside a value: what was collected goes out as it is.
  void finish(CallEvents& events);
  [[nodiscard]] std::size_t n_held() const { return collected_.size(); }

 private:
  void add_string(std::string_view text, CallEvents& events);

  const Tool* tool_ = nullptr;
  bool first_ = true;
  bool is_string_ = true;
  JsonTypes types_ = JsonType::kString;
  std::string collected_;
};

}  // namespace ebb
