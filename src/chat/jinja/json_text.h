// JSON and values: what a request brings, and the tojson and from_json filters.
//
// Thread rule: that of the run.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "chat/jinja/run.h"
#include "chat/jinja/value.h"

namespace ebb::jinja {

// Strings, keys included, carry `source`. Fails the run on nesting that is too deep.
Value from_json(Run& run, const nlohmann::ordered_json& json, Source source);
// A text that is JSON. Fails the run otherwise.
Value parse_json(Run& run, const MarkedText& text);

// As Python's json.dumps.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent = std::nullopt;  // one level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
MarkedText to_json_text(Run& run, const Value& value, const JsonStyle& style);

}  // namespace ebb::jinja
