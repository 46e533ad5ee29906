// Lane ids: which conversation a request belongs to, from what its client sends (docs/http_api.md).
//
// A client's own id comes first, in the order of the headers below; the root (tools and the opening of the system text)
// keeps side requests that share the id, such as those for a title, in lanes of their own. No id: empty, and the lane is
// found by its history. What comes out is safe in a URL. Thread rule: functions of their arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "json/json_fields.h"
#include "server/http_message.h"

namespace ebb {

[[nodiscard]] std::string client_session_id(const HttpRequest& request, const Json& body);
// Whether it can stand in a URL as it is; "" can.
[[nodiscard]] bool is_safe_id(std::string_view id);
// OpenAI's prompt_cache_key, which many conversations may share and which is no id; "" without one.
[[nodiscard]] std::string lane_hint(const Json& body);
// "" without an id.
[[nodiscard]] std::string chat_lane_id(const HttpRequest& request, const Json& body);
// Tells where a request without an id asks for reuse that only sessions with one have.
void warn_of_reuse(std::string_view lane_id, Reuse reuse, std::vector<std::string>& warnings);

}  // namespace ebb
