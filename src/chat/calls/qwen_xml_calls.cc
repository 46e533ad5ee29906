// Qwen3-Coder, Qwen 3.5, Nemotron 3, Step 3.5: see xml_reader.h.
#include "chat/calls/form_calls.h"
#include "chat/calls/xml_reader.h"

namespace ebb {
namespace {

constexpr XmlTags kTags = {.open = "<tool_call>", .close = "</tool_call>"};

class XmlCalls final : public FormCalls {
 public:
  XmlCalls()
      : FormCalls({.between = "\n",
                   .call = {{.text = "<tool_call>\n<function="},
                            {.kind = CallPiece::Kind::kName},
                            {.text = ">\n"},
                            {.kind = CallPiece::Kind::kArguments},
                            {.text = "</function>\n</tool_call>"}},
                   .tags = ArgumentTags{.before_key = "<parameter=",
                                        .key_ends = {{JsonType::kAny, ">\n"}},
                                        .value_end = "\n</parameter>\n"}},
                  "qwen_xml") {}

  bool is_taught_by(std::string_view source) const override {
    return source.find(kTags.open) != source.npos && source.find("<function=") != source.npos &&
           source.find("<parameter=") != source.npos;
  }
  // Models forget the first.
  const std::vector<CallOpener>& openers() const override {
    static const std::vector<CallOpener> kOpeners = {{.text = kTags.open}, {.text = "<function="}};
    return kOpeners;
  }
  std::unique_ptr<CallReader> make_reader(std::size_t opener, const std::vector<Tool>& tools) const override {
    return std::make_unique<XmlReader>(kTags, tools, opener == 1);
  }
};

}  // namespace

const CallFormat& qwen_xml_calls() {
  static const XmlCalls kFormat;
  return kFormat;
}

}  // namespace ebb
