// The dashboard: a page that talks to this server's own API.
#include <algorithm>
#include <array>

#include "base/hash.h"
#include "server/api_state.h"
#include "server/page_files.h"

namespace ebb {
namespace {

// Nothing from elsewhere, nothing inline, no frame around it: text of a model or a client cannot become a script.
constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

constexpr std::array<std::pair<std::string_view, const char*>, 4> kContentTypes = {
    {{".html", "text/html; charset=utf-8"},
     {".css", "text/css; charset=utf-8"},
     {".js", "text/javascript; charset=utf-8"},
     {".svg", "image/svg+xml"}}};

const char* content_type(std::string_view name) {
  const auto* found = std::ranges::find_if(kContentTypes, [&](const auto& type) { return name.ends_with(type.first); });
  return found != kContentTypes.end() ? found->second : "application/octet-stream";
}

}  // namespace

void answer_page(ApiState& /*state*/, const ApiCall& call) {
  const std::string_view name = call.id.empty() ? "index.html" : std::string_view(call.id);
  const std::span<const PageFile> files = page_files();
  const auto file = std::ranges::find(files, name, &PageFile::name);
  if (file == files.end()) {
    return call.send(to_answer({.status = 404, .type = "not_found_error", .message = "no such file of the page"}));
  }
  const std::string tag = '"' + hash_bytes(std::as_bytes(std::span(file->content))).hex() + '"';
  HttpAnswer answer{.headers = {{"Content-Type", content_type(name)},
                                {"Content-Security-Policy", kContentPolicy},
                                {"X-Content-Type-Options", "nosniff"},
                                {"Referrer-Policy", "no-referrer"},
                                {"Cache-Control", "no-cache"},
                                {"ETag", tag}}};
  const std::string* const known = call.request.find_header("if-none-match");
  if (known != nullptr && *known == tag) {
    answer.status = 304;
  } else {
    answer.body = file->content;
  }
  call.send(std::move(answer));
}

}  // namespace ebb
