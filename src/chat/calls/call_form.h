// CallForm: how a chat template writes tool calls, as a value found out by rendering (chat/derive_call_form.h).
//
//   open call (between call)* close            the calls of one reply
//   call: texts, and places for a name, an id, arguments
//
// Arguments are one JSON object, or stand in tags, one a key. It does not know templates, nor who reads it.
//
// Thread rule: a value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/calls/xml_value.h"

namespace ebb {

struct CallPiece {
  enum class Kind {
    kText,
    kName,
    kId,         // as the message has it, 9 letters and digits
    kIndex,      // of the call in its message
    kArguments,  // {"path": "a.c"}, or tags
  };
  Kind kind = Kind::kText;
  std::string text = {};  // kText

  friend bool operator==(const CallPiece&, const CallPiece&) = default;
};

// Keys of a call that is one JSON object.
struct CallKeys {
  std::string name;
  std::string arguments;

  friend bool operator==(const CallKeys&, const CallKeys&) = default;
};

// (before_key path key_end a.c value_end)*
struct ArgumentTags {
  std::string before_key = {};
  // By the JSON type of the value; where they differ, they tell it.
  std::map<JsonTypes, std::string> key_ends = {};
  std::string value_end = {};
  // Around texts that would be mistaken otherwise, such as <![CDATA[ and ]]>; may be empty.
  std::string wrap_open = {};
  std::string wrap_close = {};

  [[nodiscard]] bool tells_types() const;

  friend bool operator==(const ArgumentTags&, const ArgumentTags&) = default;
};

struct CallForm {
  std::string open = {};
  std::string between = {};
  std::string close = {};
  // Begins with a text.
  std::vector<CallPiece> call = {};
  // The call is a JSON object: the first text stands in front of its brace, the last behind it; both may be empty.
  std::optional<CallKeys> keys = {};
  // Nothing: arguments are a JSON object.
  std::optional<ArgumentTags> tags = {};
  // May a message hold several calls?
  bool parallel = true;

  // A name as it stands in a call: inside a JSON object as JSON has it.
  [[nodiscard]] std::string written_name(std::string_view name) const;
  // What opens calls in a text: the first mark of open, or of the call.
  [[nodiscard]] std::string opener() const;
  // The marks, such as <tool_call> and [ARGS], that stand in all of its texts.
  [[nodiscard]] std::vector<std::string> marks() const;

  friend bool operator==(const CallForm&, const CallForm&) = default;
};

// All of them in a text, each once.
[[nodiscard]] std::vector<std::string> marks_in(std::string_view text);

// The mark with which a text begins behind white space: <…>, [NAME], or up to white space, a bracket or a quote; may be empty.
[[nodiscard]] std::string first_mark(std::string_view text);

}  // namespace ebb
