#include "server/lane_id.h"

#include <array>

#include <fmt/format.h>

#include "base/hash.h"
#include "json/parse_json.h"

namespace ebb {
namespace {

// Agents put date and folder into the system text, behind its opening; the longest opening that never changes is not
// known. Shorter: different side requests share a lane. Longer: a new day opens a new one.
constexpr std::size_t kOpeningBytes = 256;
// Ids stand in URLs and headers; others are known by their hash.
constexpr std::size_t kMostIdBytes = 256;
constexpr std::string_view kSafeBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

constexpr std::array<std::string_view, 6> kHeaders = {
    "x-session-id", "x-session-affinity", "x-opencode-session", "x-claude-code-session-id", "session-id", "session_id"};

std::string text_of(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (!content.is_array()) return text;
  for (const Json& part : content) text += text_member(part, "text");
  return text;
}

// Claude Code writes its id into a JSON text inside the metadata.
std::string id_in_metadata(const Json& body) {
  if (!body.is_object() || !body.contains("metadata")) return {};
  const Result<Json> user = parse_json(text_member(body["metadata"], "user_id"));
  return user.ok() ? text_member(*user, "session_id") : std::string();
}

}  // namespace

bool is_safe_id(std::string_view id) {
  return id.size() <= kMostIdBytes && id.find_first_not_of(kSafeBytes) == std::string_view::npos;
}

std::string client_session_id(const HttpRequest& request, const Json& body) {
  std::string id;
  for (const std::string_view header : kHeaders) {
    if (const std::string* value = request.find_header(header); value != nullptr && id.empty()) id = *value;
  }
  if (id.empty()) id = id_in_metadata(body);
  return is_safe_id(id) ? id : hash_bytes(std::as_bytes(std::span(id))).hex();
}

std::string lane_hint(const Json& body) {
  // A session keeps it, and each of a request's prompts has a copy: what is long is known by its hash.
  const std::string hint = text_member(body, "prompt_cache_key");
  return is_safe_id(hint) ? hint : hash_bytes(std::as_bytes(std::span(hint))).hex();
}

std::string chat_lane_id(const HttpRequest& request, const Json& body) {
  const std::string id = client_session_id(request, body);
  if (id.empty()) return id;
  Hasher root;
  if (body.contains("tools")) root.add_text(body["tools"].dump(-1, ' ', false, Json::error_handler_t::replace));
  if (body.contains("messages") && body["messages"].is_array() && !body["messages"].empty()) {
    const Json& first = body["messages"].front();
    const std::string role = text_member(first, "role");
    if ((role == "system" || role == "developer") && first.contains("content")) {
      root.add_text(text_of(first["content"]).substr(0, kOpeningBytes));
    }
  }
  return id + "~" + root.finish().hex().substr(0, 8);
}

void warn_of_reuse(std::string_view lane_id, Reuse reuse, std::vector<std::string>& warnings) {
  if (!lane_id.empty() || reuse == Reuse::kExact) return;
  warnings.push_back(fmt::format(
      "kv_reuse {}: has no effect without a session's id (the header x-session-id, or another)", name_of(reuse)));
}

}  // namespace ebb
