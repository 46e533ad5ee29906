#include "server/request_id.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <random>
#include <string_view>

namespace ebb {
namespace {

constexpr std::size_t kMostBytes = 128;

bool is_id(std::string_view text) {
  const auto is_allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_.:").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= kMostBytes && std::ranges::all_of(text, is_allowed);
}

}  // namespace

std::string request_id(const HttpRequest& request) {
  const std::string* given = request.find_header("x-request-id");
  if (given != nullptr && is_id(*given)) return *given;
  // Of one run of the server, numbered, so that none is given twice.
  static const std::uint32_t kRun = std::random_device{}();
  static std::atomic<std::uint64_t> n_given = 0;
  return fmt::format("req_{:08x}{:010x}", kRun, ++n_given);
}

}  // namespace ebb
