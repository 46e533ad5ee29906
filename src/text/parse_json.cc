#include "text/parse_json.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

// Deeper nesting is nobody's request, and would cost stack.
constexpr int kMaxDepth = 128;

// Values and names of members, some 100 bytes each. Fewer: a prompt of a million tokens as an array is refused. More: a small
// body becomes a large value, one for each thread that reads them.
constexpr std::size_t kMaxValues = std::size_t{1} << 20;

}  // namespace

Result<Json> parse_json(std::string_view text) {
  int depth = 0;
  bool too_deep = false;
  std::size_t n_values = 0;
  const auto watch = [&](int at, Json::parse_event_t event, Json&) {
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) depth = at;
    if (event != Json::parse_event_t::object_end && event != Json::parse_event_t::array_end) ++n_values;
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep && n_values <= kMaxValues;
  };
  const auto check_size = [&]() -> Status {
    if (too_deep) return error(Code::kInvalidArgument, "the JSON text is nested deeper than {} levels", kMaxDepth);
    if (n_values <= kMaxValues) return {};
    return error(Code::kInvalidArgument, "the JSON text has {} or more values and names; at most {} are taken",
                 n_values, kMaxValues);
  };
  try {
    Json json = Json::parse(text, watch);
    EBB_RETURN_IF_ERROR(check_size());
    return json;
  } catch (const Json::parse_error& failure) {
    EBB_RETURN_IF_ERROR(check_size());
    if (failure.byte > text.size()) {
      return error(Code::kInvalidArgument, "the text is not JSON: it ends too early, after {} bytes", text.size());
    }
    return error(Code::kInvalidArgument, "the text is not JSON: it stops being so at byte {} of {}", failure.byte,
                 text.size());
  } catch (const Json::out_of_range&) {
    return error(Code::kInvalidArgument, "the JSON text has a number that is too large for 64 bits");
  }
}

}  // namespace ebb
