// A tool as a request declares it: what its calls are named and which arguments they take.
//
// It does not know what the tool does, nor how a model writes a call of it (calls/call_format.h).
//
// Thread rule: a value.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace ebb {

struct Tool {
  std::string name;
  // JSON Schema of the arguments object; null: any object.
  nlohmann::ordered_json parameters = nullptr;
  // Arguments of another shape are no use to the client.
  bool is_strict = false;
};

[[nodiscard]] inline const Tool* find_tool(const std::vector<Tool>& tools, std::string_view name) {
  const auto found = std::find_if(tools.begin(), tools.end(), [&](const Tool& tool) { return tool.name == name; });
  return found == tools.end() ? nullptr : &*found;
}

}  // namespace ebb
