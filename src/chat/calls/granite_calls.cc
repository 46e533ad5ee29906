// Granite 3.3, Phi 4 mini:
//
//   <|tool_call|>[{"name": "read", "arguments": {"path": "a.c"}}]
//
// Templates of theirs show tools so, and no call.
#include "chat/calls/form_calls.h"

namespace ebb {

const CallFormat& granite_calls() {
  static const FormCalls kFormat({.open = "<|tool_call|>[",
                                  .between = ", ",
                                  .close = "]",
                                  .call = object_call("", "arguments", "", ""),
                                  .keys = CallKeys{.name = "name", .arguments = "arguments"}},
                                 "granite", "<|tool_call|>");
  return kFormat;
}

}  // namespace ebb
