// Qwen3-Coder, Qwen 3.5, Nemotron 3, Step 3.5: see xml_reader.h.
#include "chat/calls/call_format.h"
#include "chat/calls/call_rules.h"
#include "chat/calls/xml_reader.h"

namespace ebb {
namespace {

constexpr XmlTags kTags = {.open = "<tool_call>", .close = "</tool_call>"};

class XmlCalls : public CallFormat {
 public:
  std::string_view name() const override { return "qwen_xml"; }
  bool is_taught_by(std::string_view source) const override {
    return source.find(kTags.open) != source.npos && source.find("<function=") != source.npos &&
           source.find("<parameter=") != source.npos;
  }
  const std::vector<CallOpener>& openers() const override {
    static const std::vector<CallOpener> kOpeners = {{.text = kTags.open}, {.text = "<function="}};
    return kOpeners;
  }
  std::vector<std::string_view> marks() const override { return {kTags.open, kTags.close}; }
  std::unique_ptr<CallReader> make_reader(std::size_t opener, const std::vector<Tool>& tools) const override {
    return std::make_unique<XmlReader>(kTags, tools, opener == 1);
  }
  Result<std::string> add_call_rules(SchemaRules& rules, const std::vector<Tool>& tools, bool parallel) const override {
    return add_tagged_calls(rules, tools,
                            {.open = std::string(kTags.open) + "\n<function=",
                             .behind_name = ">\n",
                             .before_key = "<parameter=",
                             .behind_key = ">\n",
                             .value_end = "\n</parameter>\n",
                             .close = "</function>\n" + std::string(kTags.close),
                             .between = "\n",
                             .parallel = parallel});
  }
};

}  // namespace

const CallFormat& qwen_xml_calls() {
  static const XmlCalls kFormat;
  return kFormat;
}

}  // namespace ebb
