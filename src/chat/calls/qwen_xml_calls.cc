// Qwen3-Coder, Qwen 3.5, Nemotron 3, Step 3.5 (line breaks around values), and Seed-OSS (none, and an outer tag of its own):
// see xml_reader.h.
#include "chat/calls/call_format.h"
#include "chat/calls/call_rules.h"
#include "chat/calls/xml_reader.h"

namespace ebb {
namespace {

struct XmlDialect {
  std::string_view name;
  XmlTags tags;
  std::string_view value_break;  // written on both sides of a value
};

class XmlCalls : public CallFormat {
 public:
  explicit XmlCalls(const XmlDialect& dialect)
      : dialect_(dialect), openers_({{.text = dialect.tags.open}, {.text = "<function="}}) {}

  std::string_view name() const override { return dialect_.name; }
  bool is_taught_by(std::string_view source) const override {
    return source.find(dialect_.tags.open) != source.npos && source.find("<function=") != source.npos &&
           source.find("<parameter=") != source.npos;
  }
  const std::vector<CallOpener>& openers() const override { return openers_; }
  std::vector<std::string_view> marks() const override { return {dialect_.tags.open, dialect_.tags.close}; }
  std::unique_ptr<CallReader> make_reader(std::size_t opener, const std::vector<Tool>& tools) const override {
    return std::make_unique<XmlReader>(dialect_.tags, tools, opener == 1);
  }
  Result<std::string> add_call_rules(SchemaRules& rules, const std::vector<Tool>& tools, bool parallel) const override {
    const std::string line(dialect_.value_break);
    return add_tagged_calls(rules, tools,
                            {.open = std::string(dialect_.tags.open) + "\n<function=",
                             .behind_name = ">\n",
                             .before_key = "<parameter=",
                             .behind_key = ">" + line,
                             .value_end = line + "</parameter>\n",
                             .close = "</function>\n" + std::string(dialect_.tags.close),
                             .between = "\n",
                             .parallel = parallel});
  }

 private:
  XmlDialect dialect_;
  std::vector<CallOpener> openers_;
};

}  // namespace

const CallFormat& qwen_xml_calls() {
  static const XmlCalls kFormat(
      {.name = "qwen_xml", .tags = {.open = "<tool_call>", .close = "</tool_call>"}, .value_break = "\n"});
  return kFormat;
}

const CallFormat& seed_xml_calls() {
  static const XmlCalls kFormat(
      {.name = "seed_xml", .tags = {.open = "<seed:tool_call>", .close = "</seed:tool_call>"}, .value_break = ""});
  return kFormat;
}

}  // namespace ebb
