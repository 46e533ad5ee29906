#include "bench/document_request.h"

#include <algorithm>

#include "bench/recall_prompts.h"
#include "chat/chat_request.h"
#include "chat/model_template.h"
#include "chat/prompt_tokens.h"
#include "server/chat_cues.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int32_t kWordsAround = 48;

Result<std::int32_t> most_reply_tokens(const Vocabulary& vocabulary, const DocumentProbe& probe) {
  std::string text = probe.text;
  for (const std::string& answer : probe.answers) text += " " + answer + " " + answer;
  EBB_ASSIGN_OR_RETURN(const std::vector<Token> tokens, vocabulary.tokenize(text, {.add_bos = false}));
  return kWordsAround + static_cast<std::int32_t>(tokens.size());
}

// The first message of a session is "turn1".
Result<std::vector<std::string>> find_needed(const Vocabulary& vocabulary, const std::vector<Token>& tokens,
                                             const std::vector<std::string>& facts, std::int32_t block_size) {
  std::string text;
  std::vector<std::size_t> ends;
  for (const Token& token : tokens) {
    EBB_ASSIGN_OR_RETURN(const std::string piece, vocabulary.piece(token, SpecialTokens::kShow));
    text += piece;
    ends.push_back(text.size());
  }
  const auto block_at = [&](std::size_t byte) {
    return static_cast<std::int32_t>(std::ranges::upper_bound(ends, byte) - ends.begin()) / block_size;
  };
  std::vector<std::string> names;
  for (const std::string& fact : facts) {
    const std::size_t at = text.find(fact);
    if (at == std::string::npos) return error(Code::kInvalidArgument, "a request without its fact: {}", fact);
    for (std::int32_t b = block_at(at); b <= block_at(at + fact.size() - 1); ++b) {
      std::string name = fmt::format("turn1#{}", b);
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
  }
  return names;
}

// What a client sends in the midst of a tool loop: the user has said to go on, and what is asked stands in what a tool returned.
ChatRequest tool_loop(const DocumentCase& document, const DocumentProbe& probe) {
  const Json call = {
      {"id", "call_1"}, {"type", "function"}, {"function", {{"name", "next_task"}, {"arguments", Json::object()}}}};
  ChatRequest request;
  request.messages = {{{"role", "user"}, {"content", "Read this: " + document.text}},
                      {{"role", "assistant"}, {"content", document.reply}},
                      {{"role", "user"}, {"content", "Go on."}},
                      {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}},
                      {{"role", "tool"}, {"tool_call_id", "call_1"}, {"name", "next_task"}, {"content", probe.text}}};
  return request;
}

Result<DocumentRequest> tool_request(const Vocabulary& vocabulary, const DocumentCase& document,
                                     const DocumentProbe& probe) {
  const ChatRequest loop = tool_loop(document, probe);
  EBB_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::compile(template_source(vocabulary, true)));
  EBB_ASSIGN_OR_RETURN(
      const ChatPrompt prompt,
      render_chat_request(chat_template, loop, {.bos = bos_text(vocabulary), .eos = eos_text(vocabulary)}));
  DocumentRequest request;
  EBB_ASSIGN_OR_RETURN(request.tokens, tokenize_prompt(vocabulary, prompt, true));
  request.cues = chat_cues(loop);
  return request;
}

}  // namespace

Result<DocumentRequest> make_document_request(const Vocabulary& vocabulary, const DocumentCase& document,
                                              const DocumentProbe& probe, QuestionPlace place,
                                              std::int32_t block_size) {
  DocumentRequest request;
  if (place == QuestionPlace::kTool) {
    EBB_ASSIGN_OR_RETURN(request, tool_request(vocabulary, document, probe));
  } else {
    Before before = Before::kNothing;
    if (place == QuestionPlace::kNext) {
      EBB_ASSIGN_OR_RETURN(
          RecallContext context,
          recall_message(vocabulary, {.text = "Read this: " + document.text, .reply = document.reply}, before));
      request.before = std::move(context.tokens);
      before = context.ends;
    }
    const std::string text = place == QuestionPlace::kFirst  ? probe.text + "\n" + document.text
                             : place == QuestionPlace::kLast ? document.text + probe.text
                                                             : probe.text;
    EBB_ASSIGN_OR_RETURN(request.tokens, recall_question(vocabulary, text, before));
    request.cues = find_cues(text);
    if (place == QuestionPlace::kFirst) {
      EBB_ASSIGN_OR_RETURN(request.asked, find_needed(vocabulary, request.tokens, {probe.text}, block_size));
    }
  }
  EBB_ASSIGN_OR_RETURN(request.needed, find_needed(vocabulary, request.before.empty() ? request.tokens : request.before,
                                                   probe.facts, block_size));
  EBB_ASSIGN_OR_RETURN(request.most_reply_tokens, most_reply_tokens(vocabulary, probe));
  return request;
}

Result<DocumentRequest> next_document_request(const Vocabulary& vocabulary, const DocumentRequest& first,
                                              const DocumentProbe& probe, Before before, std::int32_t block_size) {
  DocumentRequest request{.cues = find_cues(probe.text)};
  EBB_ASSIGN_OR_RETURN(request.tokens, recall_question(vocabulary, probe.text, before));
  EBB_ASSIGN_OR_RETURN(request.needed, find_needed(vocabulary, first.before.empty() ? first.tokens : first.before,
                                                   probe.facts, block_size));
  EBB_ASSIGN_OR_RETURN(request.most_reply_tokens, most_reply_tokens(vocabulary, probe));
  return request;
}

}  // namespace ebb
