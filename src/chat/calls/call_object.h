// CallObject: reads one call written as a JSON object, {"name": …, "arguments": {…}}, byte by byte.
//
// The keys may come in any order, "parameters" means "arguments", other keys are skipped. Arguments go on as the model
// wrote them, as they come; only arguments inside a string (JSON written twice) are unpacked. A call begins once its
// name and the first byte of its arguments are known; before that nothing is certain, after it nothing is taken back.
//
// Thread rule: one thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/calls/call_reader.h"
#include "chat/calls/json_scanner.h"
#include "chat/calls/tool.h"
#include "json/json_string.h"

namespace ebb {

struct CallObjectRules {
  // Not null: the object may be something else. A call it is only with one of these names, arguments, and no other keys
  // than calls have.
  const std::vector<Tool>* known = nullptr;
  std::string_view name_key = "name";
  // Empty: "arguments" or "parameters".
  std::string_view arguments_key = {};

  [[nodiscard]] bool is_arguments(std::string_view key) const {
    return arguments_key.empty() ? key == "arguments" || key == "parameters" : key == arguments_key;
  }
};

class CallObject {
 public:
  enum class Step {
    kHeld,     // not a call yet
    kTaken,    // a call has begun
    kDone,     // the object's last byte
    kBroken,   // the arguments are no JSON from here on; the byte was given out as theirs
    kRefused,  // no call goes on like this. Where ended(), a whole call came before it
  };

  explicit CallObject(const CallObjectRules& rules = {}) : rules_(rules) {}
  // The first byte must be '{'.
  [[nodiscard]] Step take(char c, CallEvents& events);
  [[nodiscard]] bool ended() const { return ended_; }
  // The text is over: arguments that were kept until they are whole go out, if the call has begun.
  void finish(CallEvents& events);

 private:
  enum class State { kOpen, kFirstKey, kKey, kInKey, kColon, kValue, kName, kText, kArguments, kOther, kNext };
  enum class Value { kNone, kStreamed, kCollected, kUnpacked };

  [[nodiscard]] Step undecided() const { return begun_ ? Step::kTaken : Step::kHeld; }
  Step take_key(char c);
  Step take_value(char c, CallEvents& events);
  Step take_text(char c, CallEvents& events);
  Step take_arguments(char c, CallEvents& events);
  Step take_other(char c, CallEvents& events);
  Step take_next(char c, CallEvents& events);
  Step arguments_ended(CallEvents& events);
  [[nodiscard]] bool is_known() const;
  void begin(CallEvents& events);

  CallObjectRules rules_;
  State state_ = State::kOpen;
  std::string key_;
  std::string name_;
  std::string collected_;  // arguments that came before the name, or must be seen whole
  Value value_ = Value::kNone;
  bool has_name_ = false;
  bool whole_ = false;  // the arguments have been read
  bool begun_ = false;
  bool ended_ = false;
  JsonScanner scanner_;
  JsonStringReader reader_;
};

}  // namespace ebb
