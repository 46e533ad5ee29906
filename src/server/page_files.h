// The files of the dashboard (src/server/page/), as they were when the program was built.
//
// Their bytes are part of the program (cmake/embed_page.cmake). Thread rule: constants.
#pragma once

#include <span>
#include <string_view>

namespace ebb {

struct PageFile {
  std::string_view name;  // "index.html"
  std::string_view content;
};

[[nodiscard]] std::span<const PageFile> page_files();

}  // namespace ebb
