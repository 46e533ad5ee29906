#include "text/code_points.h"

#include <algorithm>

namespace ebb {

char32_t PartialCodePoint::least() const { return std::max<char32_t>(shortest, bits << (6 * n_missing)); }

char32_t PartialCodePoint::most() const {
  const auto most = (bits << (6 * n_missing)) | ((char32_t{1} << (6 * n_missing)) - 1);
  return std::min<char32_t>(most, 0x10FFFF);
}

bool decode_code_points(std::string_view bytes, PartialCodePoint& partial, std::u32string& out) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (partial.n_missing > 0) {
      if ((byte & 0xC0U) != 0x80U) return false;
      partial.bits = partial.bits << 6U | (byte & 0x3FU);
      --partial.n_missing;
    } else if (0 < byte && byte < 0x80) {
      partial = {.bits = byte, .shortest = 0, .n_missing = 0};
    } else if (0xC2 <= byte && byte < 0xE0) {
      partial = {.bits = byte & 0x1FU, .shortest = 0x80, .n_missing = 1};
    } else if (0xE0 <= byte && byte < 0xF0) {
      partial = {.bits = byte & 0x0FU, .shortest = 0x800, .n_missing = 2};
    } else if (0xF0 <= byte && byte < 0xF5) {
      partial = {.bits = byte & 0x07U, .shortest = 0x10000, .n_missing = 3};
    } else {
      return false;
    }
    const bool is_surrogate = partial.least() >= 0xD800 && partial.most() <= 0xDFFF;
    if (partial.least() > partial.most() || is_surrogate) return false;
    if (partial.n_missing == 0) out.push_back(partial.bits);
  }
  return true;
}

}  // namespace ebb
