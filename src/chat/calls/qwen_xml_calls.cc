// Qwen3-Coder, Qwen 3.5, Nemotron 3, Step 3.5:
//
//   <tool_call>
//   <function=read>
//   <parameter=path>
//   a.c
//   </parameter>
//   </function>
//   </tool_call>
#include "chat/calls/form_calls.h"

namespace ebb {
namespace {

class XmlCalls final : public FormCalls {
 public:
  XmlCalls()
      : FormCalls({.open = "<tool_call>\n",
                   .between = "\n</tool_call>\n<tool_call>\n",
                   .close = "\n</tool_call>",
                   .call = {{.text = "<function="},
                            {.kind = CallPiece::Kind::kName},
                            {.text = ">\n"},
                            {.kind = CallPiece::Kind::kArguments},
                            {.text = "</function>"}},
                   .tags = ArgumentTags{.before_key = "<parameter=",
                                        .key_ends = {{JsonType::kAny, ">\n"}},
                                        .value_end = "\n</parameter>\n"}},
                  "qwen_xml") {}

  bool is_taught_by(std::string_view source) const override {
    return source.find("<tool_call>") != source.npos && source.find("<function=") != source.npos &&
           source.find("<parameter=") != source.npos;
  }
};

}  // namespace

const CallFormat& qwen_xml_calls() {
  static const XmlCalls kFormat;
  return kFormat;
}

}  // namespace ebb
