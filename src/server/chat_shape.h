// The shape of OpenAI's chat completions. See server/reply_shape.h.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "server/reply_shape.h"
#include "text/vocabulary.h"

namespace ebb {

struct ChatShapeOptions {
  ReplyHead head;
  std::int32_t n_choices = 1;
  // A chunk with the usage comes last.
  bool include_usage = false;
  // The call, of which there is one at most, is a `function_call`, as before there were tools.
  bool says_function_call = false;
  // Tools whose calls are `custom`: a text, and no arguments.
  std::set<std::string> custom_tools = {};
};
// The vocabulary must outlive it.
std::unique_ptr<ReplyShape> make_chat_shape(const Vocabulary& vocabulary, ChatShapeOptions options);

}  // namespace ebb
