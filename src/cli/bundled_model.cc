#include "cli/bundled_model.h"

#include <source_location>
#include <system_error>
#include <vector>

namespace ebb {
namespace {

constexpr const char* kName = "ebb-recall.gguf";

std::vector<std::filesystem::path> places() {
  std::vector<std::filesystem::path> places;
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (!failed) {
    places.push_back(program.parent_path().parent_path() / "share" / "ebb" / kName);
    // build/release/bin/ebb of a source tree: three folders up.
    std::filesystem::path folder = program.parent_path();
    for (int i = 0; i < 3; ++i) {
      folder = folder.parent_path();
      places.push_back(folder / "models" / kName);
    }
  }
  // Built outside of its source tree: the compiler saw this file at src/cli. Gone where the program is installed alone.
  const std::filesystem::path here = std::source_location::current().file_name();
  places.push_back(here.parent_path().parent_path().parent_path() / "models" / kName);
  return places;
}

}  // namespace

Result<std::filesystem::path> given_or_bundled_model(const std::string& given) {
  if (!given.empty()) return std::filesystem::path(given);
  std::error_code failed;
  for (const std::filesystem::path& place : places()) {
    if (std::filesystem::is_regular_file(place, failed)) return place;
  }
  return error(Code::kNotFound, "the bundled model ({}) is not where this program looks; name one with -m model.gguf",
               kName);
}

}  // namespace ebb
