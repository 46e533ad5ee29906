#include "bench/json_lines.h"

#include <algorithm>
#include <cstdint>

namespace ebb {
namespace {

Status take_line(std::string_view line, const std::function<Status(JsonFields&)>& take) {
  EBB_ASSIGN_OR_RETURN(const Json json, parse_json(line));
  JsonFields fields(json);
  const Status taken = take(fields);
  // A field that was not what was asked for is the cause of what else is wrong.
  EBB_RETURN_IF_ERROR(fields.status());
  return taken;
}

}  // namespace

Status read_json_lines(std::string_view text, const std::function<Status(JsonFields&)>& take) {
  std::int64_t n_line = 0;
  std::int64_t n_taken = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++n_line;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (const Status status = take_line(line, take); !status.ok()) {
      return error(status.code(), "line {}: {}", n_line, status.message());
    }
    ++n_taken;
  }
  if (n_taken > 0) return {};
  return error(Code::kInvalidArgument, "the file is empty; give one with a JSON object on each line");
}

}  // namespace ebb
