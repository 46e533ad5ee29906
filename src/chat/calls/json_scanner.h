// JsonScanner: finds where one JSON value ends, byte by byte, without keeping it.
//
// Structure is checked strictly, the inside of strings is not: models write raw line breaks and odd escapes there, and
// that must not hide the value's end.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ebb {

class JsonScanner {
 public:
  // Deeper values are kBad. Each level costs a byte.
  static constexpr std::size_t kMaxDepth = 512;

  enum class Step {
    kMore,       // the byte belongs to the value, which goes on
    kEnd,        // the byte is the value's last
    kEndBefore,  // the value (a number) ended in front of this byte
    kBad,        // no JSON value goes on like this
  };

  // The first byte must not be white space. After anything but kMore the scanner is spent.
  [[nodiscard]] Step take(char c);

 private:
  enum class State { kValue, kFirstItem, kFirstKey, kKey, kColon, kAfter, kString, kEscape, kNumber, kWord };

  Step take_value(char c);
  Step open(char c);
  Step close(char c);
  Step take_after(char c);
  Step value_ended();

  State state_ = State::kValue;
  bool is_key_ = false;
  std::string open_;            // the brackets that are open, outermost first
  std::string_view word_ = {};  // what must still come of true, false or null
};

}  // namespace ebb
