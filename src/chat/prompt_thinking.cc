#include "chat/prompt_thinking.h"

namespace ebb {

PromptThinking find_prompt_thinking(const ChatPrompt& prompt, const ThinkTags& tags, bool continues_answer) {
  std::string end;
  for (std::size_t i = prompt.pieces.size(); i-- > 0;) {
    const bool is_answer = continues_answer && i + 1 == prompt.pieces.size();
    if (prompt.pieces[i].from_user && !is_answer) break;
    end.insert(0, prompt.pieces[i].text);
  }
  const std::size_t open = end.rfind(tags.open);
  const std::size_t close = end.rfind(tags.close);
  if (open != std::string::npos && (close == std::string::npos || close < open)) return PromptThinking::kOpen;
  // What ends every message of gpt-oss ends its thinking as well: without a beginning it ends none.
  const bool is_none = open == std::string::npos && !tags.reopen.empty() && !continues_answer;
  return close == std::string::npos || is_none ? PromptThinking::kNotBegun : PromptThinking::kOver;
}

}  // namespace ebb
