// XmlReader: reads calls written with tags,
//
//   <tool_call>                    outer tag: may be missing, models forget it
//   <function=read>
//   <parameter=path>
//   a.c
//   </parameter>
//   </function>
//   </tool_call>
//
// byte by byte. A value begins behind one line break and ends in front of one; the closing tag of a parameter counts
// only if another parameter or the function's end follows, so that a value may speak of such tags itself.
//
// Thread rule: one thread at a time.
#pragma once

#include <string>
#include <string_view>

#include "chat/calls/call_reader.h"
#include "chat/calls/tool.h"
#include "chat/calls/xml_value.h"

namespace ebb {

struct XmlTags {
  std::string_view open;   // <tool_call>
  std::string_view close;  // </tool_call>
};

class XmlReader : public CallReader {
 public:
  // `in_function`: what opened the calls is "<function=", without the outer tag.
  XmlReader(const XmlTags& tags, const std::vector<Tool>& tools, bool in_function);

  Step take(char c, CallEvents& events) override;
  bool finish(CallEvents& events) override;
  std::size_t n_held() const override { return value_.size() + arguments_.n_held(); }

 private:
  enum class State { kTag, kName, kKey, kValueBegin, kValue };
  enum class Place { kOutside, kInFunction, kBehindFunction };  // of a tag
  struct ValueEnd {
    bool possible = false;      // the text may be the beginning of a value's end
    std::string_view tag = {};  // the tag behind it, if that is complete
    bool parameter_closed = false;
  };

  Step take_tag(char c, CallEvents& events);
  Step take_name(char c);
  Step take_key(char c, CallEvents& events);
  Step take_value(char c, CallEvents& events);
  Step close_function(CallEvents& events, bool outer_too);
  [[nodiscard]] ValueEnd match_end() const;

  XmlTags tags_;
  const std::vector<Tool>& tools_;
  XmlArguments arguments_;
  State state_ = State::kTag;
  Place place_ = Place::kOutside;
  bool begun_ = false;
  std::string tag_;    // a tag so far
  std::string name_;   // of the function, then of the parameter
  std::string value_;  // may be the end of the value
};

}  // namespace ebb
