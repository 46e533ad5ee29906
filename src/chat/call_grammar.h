// The grammar of an answer that calls tools, or may: for tool_choice `required` or a named function nothing but calls
// behind thinking; for `auto` free text up to the mark that opens calls, and calls from there on.
//
// It does not know how grammars are run. Names and arguments are forced by the tools' schemas (json_schema_grammar.h), also
// where strings stand as they are between marks (value_syntax.h). With `auto`, thinking is text like other text: the mark that
// opens calls ends it, as the reader of replies has it (reply_parser.h).
//
// Thread rule: functions without state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chat/answer_grammar.h"
#include "chat/calls/call_format.h"

namespace ebb {

struct CallGrammar {
  std::string grammar;                        // begins at "root"; empty: nothing is forced
  std::vector<std::string> unsupported = {};  // as JsonGrammar
};

struct CallChoice {
  std::vector<Tool> tools = {};
  // Only this one.
  std::optional<std::string> only = std::nullopt;
  bool parallel = true;
  // Calls must come. Otherwise they may; nothing is forced then in families whose calls begin with no mark of their own.
  bool required = true;
  // Where calls may come: without them the answer is JSON of this schema. Null: it is any text.
  nlohmann::ordered_json content = nullptr;
  // What such JSON stands behind, and text where the prompt began a mark (answer_openers).
  std::vector<std::string> content_openers = {};
  // The mark that opens calls, where the prompt ends with it: the first call has none then (find_begun_mark).
  std::string begun = {};
  // Nothing: the answer holds no thinking.
  std::optional<AnswerThinking> thinking = std::nullopt;
};

// kInvalidArgument for a name that is no tool's, no tools, or a schema that is none; kUnsupported for schemas that are too
// large.
[[nodiscard]] Result<CallGrammar> call_grammar(const CallFormat& format, const CallChoice& choice);

}  // namespace ebb
