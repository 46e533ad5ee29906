// CallFormat: how one family of models writes tool calls: what opens them, who reads them, which grammar forces them.
//
// One implementation per family, each in its own file and in the list of call_formats.cc. It does not know requests,
// replies or thinking.
//
// Thread rule: stateless; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "chat/calls/call_reader.h"
#include "chat/calls/tool.h"

namespace ebb {

class SchemaRules;

struct CallOpener {
  std::string_view text;
  // Opens calls only where the answer begins.
  bool only_first = false;
};

// A call as it is written: arguments as JSON text, or anything in its place.
struct WrittenCall {
  std::string name;
  std::string arguments;
};

class CallFormat {
 public:
  CallFormat() = default;
  CallFormat(const CallFormat&) = delete;
  CallFormat& operator=(const CallFormat&) = delete;
  virtual ~CallFormat() = default;

  // Unique, for logs and tests: "hermes", "qwen_xml", …
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Does a chat template with this source teach the format?
  [[nodiscard]] virtual bool is_taught_by(std::string_view template_source) const = 0;
  // May one reply hold several calls?
  [[nodiscard]] virtual bool allows_parallel() const { return true; }
  [[nodiscard]] virtual const std::vector<CallOpener>& openers() const = 0;
  // The mark with which the calls of add_call_rules begin; empty: they begin with none of their own.
  [[nodiscard]] virtual std::string_view forced_opener() const { return openers().front().text; }
  // What text in front of calls of the tools does not hold. By default the mark, where there is one.
  [[nodiscard]] virtual std::vector<std::string> text_ends(const std::vector<Tool>& /*tools*/) const {
    return {std::string(forced_opener())};
  }
  // All marks in and around calls: where a vocabulary has them as control tokens, their text is part of the answer.
  [[nodiscard]] virtual std::vector<std::string_view> marks() const = 0;
  // The calls of one reply, for histories and examples that a template does not write; empty: it is not known how.
  [[nodiscard]] virtual std::string write(const std::vector<WrittenCall>& /*calls*/) const { return {}; }
  // For the text behind openers()[opener]. The tools must outlive the reader.
  [[nodiscard]] virtual std::unique_ptr<CallReader> make_reader(std::size_t opener,
                                                                const std::vector<Tool>& tools) const = 0;
  // Adds rules for calls of the tools, opening marker included; returns the expression of one call, or of one and more.
  [[nodiscard]] virtual Result<std::string> add_call_rules(SchemaRules& rules, const std::vector<Tool>& tools,
                                                           bool parallel) const = 0;
};

// All formats, the more particular before those that they contain.
[[nodiscard]] const std::vector<const CallFormat*>& call_formats();

// The format that a chat template teaches, by its source text; null if none of ours.
[[nodiscard]] const CallFormat* find_call_format(std::string_view template_source);

// The families, for the list.
[[nodiscard]] const CallFormat& hermes_calls();
[[nodiscard]] const CallFormat& qwen_xml_calls();
[[nodiscard]] const CallFormat& granite_calls();
[[nodiscard]] const CallFormat& gemma_calls();
[[nodiscard]] const CallFormat& harmony_calls();
[[nodiscard]] const CallFormat& python_calls();
[[nodiscard]] const CallFormat& functionary_calls();
[[nodiscard]] const CallFormat& llama3_calls();
[[nodiscard]] const CallFormat& mistral_list_calls();
[[nodiscard]] const CallFormat& mistral_named_calls();
[[nodiscard]] const CallFormat& mistral_named_id_calls();

}  // namespace ebb
