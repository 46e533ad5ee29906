#include "cli/store_flag.h"

#include <charconv>
#include <limits>

namespace ebb {

Result<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const std::size_t power = unit.empty() ? 0 : std::string_view("KMGT").find(unit.front()) + 1;
  const bool known = unit.empty() || (unit.size() == 1 && power > 0);
  if (failure != std::errc() || !known || value > (std::numeric_limits<std::uint64_t>::max() >> (10 * power))) {
    return error(Code::kInvalidArgument, "'{}' is no size; give bytes, or 512M, 2G and the like", text);
  }
  return value << (10 * power);
}

Result<ColdStoreOptions> parse_store_flag(std::string_view text) {
  ColdStoreOptions options{.ram_bytes = 0};
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t mark = part.find('=');
    const std::string_view key = part.substr(0, mark);
    const std::string_view value = mark == std::string_view::npos ? "" : part.substr(mark + 1);
    if (key == "ram") {
      EBB_ASSIGN_OR_RETURN(const std::uint64_t n_bytes, parse_size(value));
      options.ram_bytes = n_bytes;
    } else if (key == "disk" && !value.empty()) {
      if (!options.disk) options.disk.emplace();
      options.disk->folder = value;
    } else if (key == "disk-max") {
      if (!options.disk) options.disk.emplace();
      EBB_ASSIGN_OR_RETURN(options.disk->max_bytes, parse_size(value));
    } else {
      return error(Code::kInvalidArgument,
                   "a cold store of '{}' is not understood; give ram=SIZE, disk=FOLDER, disk-max=SIZE, with commas",
                   part);
    }
  }
  if (options.disk && options.disk->folder.empty()) {
    return error(Code::kInvalidArgument, "disk-max without disk=FOLDER");
  }
  return options;
}

}  // namespace ebb
