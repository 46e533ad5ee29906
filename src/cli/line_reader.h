// Lines that a person types, while Ctrl-C can come at any moment.
//
// A line that ends with a backslash goes on with the next one. Thread rule: one thread at a time; nothing else may read
// standard input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ebb {

class InterruptListener;

class LineReader {
 public:
  enum class Outcome : std::uint8_t { kLine, kEnd, kInterrupted };

  // The listener must outlive the reader.
  explicit LineReader(const InterruptListener& interrupt) : interrupt_(interrupt) {}

  // Shows the prompt (on a terminal only) and waits for a line, without its newline. After kInterrupted what was typed
  // is gone.
  Outcome read(std::string_view prompt, std::string& line);

 private:
  Outcome read_one(std::string& line);

  const InterruptListener& interrupt_;
  std::string buffer_;
  bool at_end_ = false;
};

}  // namespace ebb
