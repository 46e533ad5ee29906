#include "cli/text_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

namespace ebb {
namespace {

std::string rest_of(std::istream& stream) {
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace

Result<std::string> read_text(const std::string& path) {
  if (path == "-") return rest_of(std::cin);
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed)) return error(Code::kIo, "{}: is a folder; name a file", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return error(errno == ENOENT ? Code::kNotFound : Code::kIo, "{}: cannot be read ({})", path, std::strerror(errno));
  }
  return rest_of(file);
}

}  // namespace ebb
