// CallReader: reads the tool calls that stand behind an opening marker, byte by byte.
//
// One subclass per family (calls/x_calls.cc). It does not know the text around the calls, thinking, or pieces: the
// parser feeds it single bytes, so that what it says depends on the text alone. It keeps no text back once it said
// that the text is a call; what it has not decided yet the parser keeps (kHeld), and gives out as text if the reader
// refuses. Its memory is bounded: names to CallLimits::kMaxNameBytes, values that must be seen whole to kMaxHeldBytes.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "chat/calls/json_scanner.h"

namespace ebb {

struct CallLimits {
  static constexpr std::size_t kMaxNameBytes = 256;
  // What may be undecided, or collected until it is whole. More is text after all.
  static constexpr std::size_t kMaxHeldBytes = std::size_t{1} << 20;
};

// What was read: kBegin (text: the name, id: the model's own or empty), kArguments (text: a fragment of JSON), kEnd (the
// arguments are complete).
struct CallEvent {
  enum class Kind { kBegin, kArguments, kEnd };
  Kind kind = Kind::kArguments;
  std::string text = {};
  std::string id = {};
};

// Collects events; fragments that follow each other become one.
class CallEvents {
 public:
  void begin(std::string name, std::string id = {}) {
    events.push_back({.kind = CallEvent::Kind::kBegin, .text = std::move(name), .id = std::move(id)});
  }
  void arguments(std::string_view fragment) {
    if (fragment.empty()) return;
    if (events.empty() || events.back().kind != CallEvent::Kind::kArguments) events.push_back({});
    events.back().text += fragment;
  }
  void end() { events.push_back({.kind = CallEvent::Kind::kEnd}); }

  std::vector<CallEvent> events;
};

class CallReader {
 public:
  enum class Step {
    kHeld,     // undecided: this byte is a call's, or text
    kTaken,    // everything up to this byte is a call's
    kDone,     // so it is, and the calls behind this marker are over
    kRefused,  // what was held, and this byte, is no call's; the reader is over
  };

  CallReader() = default;
  CallReader& operator=(const CallReader&) = delete;
  virtual ~CallReader() = default;

  [[nodiscard]] virtual Step take(char c, CallEvents& events) = 0;
  // The text is over. True: what is held is a call's dress and may go; false: it is text.
  [[nodiscard]] virtual bool finish(CallEvents& events) = 0;
  // Bytes of values that the reader itself keeps until they are certain.
  [[nodiscard]] virtual std::size_t n_held() const { return 0; }
  // Of what was held, the last bytes that are to be taken again: by this reader or, if it is done, by whoever reads on. Of the last step alone.
  [[nodiscard]] virtual std::size_t n_again() const { return 0; }

 protected:
  CallReader(const CallReader&) = default;
};

[[nodiscard]] inline bool is_call_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Arguments that stopped being JSON: they go on as they are up to a marker or the end, because the call has begun.
class RawArguments {
 public:
  // An empty marker: up to the end.
  explicit RawArguments(std::string_view marker) : marker_(marker) {}
  // True when the marker is complete. Less is held, and is none of the arguments' where the text ends there.
  [[nodiscard]] bool take(char c, CallEvents& events);
  [[nodiscard]] std::size_t n_held() const { return held_.size(); }

 private:
  std::string_view marker_;
  std::string held_;
};

// A JSON object of arguments with no mark behind it: it ends with its last brace, and where it stops being JSON it goes on as it is up to the end.
class UnclosedArguments {
 public:
  // From the object's first byte on, once the call has begun: kTaken, or kDone with the last.
  [[nodiscard]] CallReader::Step take(char c, CallEvents& events);

 private:
  bool is_raw_ = false;
  JsonScanner scanner_;
};

}  // namespace ebb
