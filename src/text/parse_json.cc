#include "text/parse_json.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

// Deeper nesting is nobody's request, and would cost stack.
constexpr int kMaxDepth = 128;

}  // namespace

Result<Json> parse_json(std::string_view text) {
  int depth = 0;
  bool too_deep = false;
  const auto watch = [&](int at, Json::parse_event_t event, Json&) {
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) depth = at;
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  const auto refuse_depth = [] {
    return error(Code::kInvalidArgument, "the JSON text is nested deeper than {} levels", kMaxDepth);
  };
  try {
    Json json = Json::parse(text, watch);
    if (too_deep) return refuse_depth();
    return json;
  } catch (const Json::parse_error& failure) {
    if (too_deep) return refuse_depth();
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
