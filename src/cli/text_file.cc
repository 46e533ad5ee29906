#include "cli/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>

namespace ebb {
namespace {

std::string rest_of(std::istream& stream) {
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// At most n bytes.
std::string begin_of(std::istream& stream, std::size_t n) {
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  std::string text;
  while (text.size() < n && stream) {
    const std::size_t n_before = text.size();
    text.resize(n_before + std::min(kChunk, n - n_before));
    stream.read(text.data() + n_before, static_cast<std::streamsize>(text.size() - n_before));
    text.resize(n_before + static_cast<std::size_t>(stream.gcount()));
  }
  return text;
}

using ReadStream = std::function<std::string(std::istream&)>;

Result<std::string> read_with(const std::string& path, const ReadStream& read) {
  if (path == "-") return read(std::cin);
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed)) return error(Code::kIo, "{}: is a folder; name a file", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return error(errno == ENOENT ? Code::kNotFound : Code::kIo, "{}: cannot be read ({})", path, std::strerror(errno));
  }
  return read(file);
}

}  // namespace

Result<std::string> read_text(const std::string& path) { return read_with(path, rest_of); }

Result<std::string> read_text(const std::string& path, std::size_t most_bytes) {
  EBB_ASSIGN_OR_RETURN(std::string text,
                       read_with(path, [&](std::istream& stream) { return begin_of(stream, most_bytes + 1); }));
  if (text.size() <= most_bytes) return text;
  return error(Code::kInvalidArgument, "{}: more than {} bytes, which is the most that is read", path, most_bytes);
}

}  // namespace ebb
