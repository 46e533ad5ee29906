#include "bench/document_request.h"

#include <algorithm>
#include <utility>

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

// What a session reads, turn by turn.
using Turns = std::vector<std::vector<Token>>;

// As a session names it that begins with these: the n-th turn is "turn<n>", and a block is of the turn that most of it is of.
std::string name_of_block(const Turns& turns, std::int32_t block, std::int32_t block_size) {
  const std::int32_t begin = block * block_size;
  std::int32_t turn_begin = 0;
  std::int32_t most = 0;
  std::string name;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const std::int32_t turn_end = turn_begin + static_cast<std::int32_t>(turns[i].size());
    const std::int32_t n = std::min(turn_end, begin + block_size) - std::max(turn_begin, begin);
    if (n > most) {
      most = n;
      name = fmt::format("turn{}#{}", i + 1, block - turn_begin / block_size);
    }
    turn_begin = turn_end;
  }
  return name;
}

Result<std::vector<std::string>> find_needed(const Vocabulary& vocabulary, const Turns& turns,
                                             const std::vector<std::string>& facts, std::int32_t block_size) {
  std::string text;
  std::vector<std::size_t> ends;
  for (const std::vector<Token>& turn : turns) {
    for (const Token& token : turn) {
      EBB_ASSIGN_OR_RETURN(const std::string piece, vocabulary.piece(token, SpecialTokens::kShow));
      text += piece;
      ends.push_back(text.size());
    }
  }
  const auto block_at = [&](std::size_t byte) {
    return static_cast<std::int32_t>(std::ranges::upper_bound(ends, byte) - ends.begin()) / block_size;
  };
  std::vector<std::string> names;
  for (const std::string& fact : facts) {
    const std::size_t at = text.find(fact);
    if (at == std::string::npos) return error(Code::kInvalidArgument, "a request without its fact: {}", fact);
    for (std::int32_t b = block_at(at); b <= block_at(at + fact.size() - 1); ++b) {
      std::string name = name_of_block(turns, b, block_size);
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
  }
  return names;
}

// What a session that begins with this request reads before it is asked, or with that.
Turns turns_of(const DocumentRequest& request) {
  return request.before.empty() ? Turns{request.tokens} : request.before;
}

Json call_of(const char* name, Json arguments, std::size_t n) {
  const Json call = {{"id", fmt::format("call_{}", n)},
                     {"type", "function"},
                     {"function", {{"name", name}, {"arguments", std::move(arguments)}}}};
  return {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}};
}

Json result_of(const char* name, const std::string& text, std::size_t n) {
  return {{"role", "tool"}, {"tool_call_id", fmt::format("call_{}", n)}, {"name", name}, {"content", text}};
}

// What a tool returns once the user has said to go on.
void add_task(const DocumentCase& document, const DocumentProbe& probe, ChatRequest& request) {
  const std::size_t n = document.files.size() + 1;
  request.messages.push_back({{"role", "assistant"}, {"content", document.reply}});
  request.messages.push_back({{"role", "user"}, {"content", "Go on."}});
  request.messages.push_back(call_of("next_task", Json::object(), n));
  request.messages.push_back(result_of("next_task", probe.text, n));
}

// What a client sends in the midst of a tool loop: the user has said to go on, and what is asked stands in what a tool returned.
ChatRequest tool_loop(const DocumentCase& document, const DocumentProbe& probe) {
  ChatRequest request;
  request.messages = {{{"role", "user"}, {"content", "Read this: " + document.text}}};
  add_task(document, probe, request);
  return request;
}

// What an agent sends that has read the document's files.
ChatRequest agent_loop(const DocumentCase& document, const DocumentProbe& probe, QuestionPlace place) {
  const bool is_first = place == QuestionPlace::kFirst;
  ChatRequest request;
  request.messages = {{{"role", "system"}, {"content", "You are a coding agent. Read before you write."}},
                      {{"role", "user"}, {"content", (is_first ? probe.text + " " : "") + "Read the files."}}};
  for (std::size_t i = 0; i < document.files.size(); ++i) {
    const DocumentFile& file = document.files[i];
    request.messages.push_back(call_of("read_file", {{"path", file.name}}, i + 1));
    request.messages.push_back(result_of("read_file", file.text, i + 1));
  }
  if (place == QuestionPlace::kTool) add_task(document, probe, request);
  if (is_first || place == QuestionPlace::kTool) return request;
  request.messages.push_back({{"role", "assistant"}, {"content", document.reply}});
  request.messages.push_back({{"role", "user"}, {"content", probe.text}});
  return request;
}

Result<DocumentRequest> request_of_chat(const Vocabulary& vocabulary, const ChatRequest& chat) {
  EBB_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::compile(template_source(vocabulary, true)));
  EBB_ASSIGN_OR_RETURN(
      const ChatPrompt prompt,
      render_chat_request(chat_template, chat, {.bos = bos_text(vocabulary), .eos = eos_text(vocabulary)}));
  DocumentRequest request;
  EBB_ASSIGN_OR_RETURN(request.tokens, tokenize_prompt(vocabulary, prompt, true));
  request.cues = chat_cues(chat);
  return request;
}

// The question becomes a turn of its own.
Status cut_off_question(const Vocabulary& vocabulary, const DocumentProbe& probe, DocumentRequest& request) {
  EBB_ASSIGN_OR_RETURN(std::vector<Token> question, recall_question(vocabulary, probe.text, Before::kEndedReply));
  std::vector<Token>& all = request.tokens;
  const auto n = static_cast<std::ptrdiff_t>(question.size());
  if (std::ssize(all) <= n || !std::equal(question.begin(), question.end(), all.end() - n)) {
    return error(Code::kUnsupported,
                 "the model's template tells '{}' behind calls of tools in other tokens than by itself", probe.text);
  }
  all.resize(all.size() - question.size());
  request.before = {std::exchange(all, std::move(question))};
  return {};
}

Result<DocumentRequest> agent_request(const Vocabulary& vocabulary, const DocumentCase& document,
                                      const DocumentProbe& probe, QuestionPlace place) {
  EBB_ASSIGN_OR_RETURN(DocumentRequest request, request_of_chat(vocabulary, agent_loop(document, probe, place)));
  if (place == QuestionPlace::kNext) EBB_RETURN_IF_ERROR(cut_off_question(vocabulary, probe, request));
  return request;
}

// Where the middle line begins, or a line that begins later where a fact goes on across its border.
std::size_t find_middle(const DocumentCase& document) {
  const std::string& text = document.text;
  for (std::size_t at = text.size() / 2; (at = text.find('\n', at)) != std::string::npos;) {
    ++at;
    const bool cuts = std::ranges::any_of(document.probes, [&](const DocumentProbe& probe) {
      return std::ranges::any_of(probe.facts, [&](const std::string& fact) {
        const std::size_t begin = text.find(fact);
        return begin < at && at < begin + fact.size();
      });
    });
    if (!cuts) return at;
  }
  return text.size();
}

// How to answer, as people write it behind what they ask: longer than what is looked at of a message's ends (kCueEdgeBytes).
constexpr std::string_view kInstructions =
    "Read the text above with care before you write. Use nothing but what it says, and do not guess. Keep to the order "
    "of what was asked. "
    "Write short and plain sentences, one for each thing, and say again what each of them is about. Leave out lists, "
    "tables and marks, and "
    "do not tell how you came to it. Numbers and names are to be as the text has them, letter by letter. If two lines "
    "of the text differ, "
    "the later one holds. If the text does not say it, write that it does not. There is no need to thank me or to ask "
    "whether I want to "
    "know more, and please keep the language of the text.";

std::string text_of_user(const DocumentCase& document, const DocumentProbe& probe, QuestionPlace place) {
  const std::string& text = document.text;
  const std::size_t middle = find_middle(document);
  switch (place) {
    case QuestionPlace::kFirst: return probe.text + "\n" + text;
    case QuestionPlace::kLast: return text + probe.text;
    case QuestionPlace::kMiddle: return text.substr(0, middle) + "\n" + probe.text + "\n\n" + text.substr(middle);
    case QuestionPlace::kInstructed: return text + "\n" + probe.text + "\n\n" + std::string(kInstructions);
    case QuestionPlace::kNext:
    case QuestionPlace::kTool: break;
  }
  return probe.text;
}

// The user says the document, all at once or message by message, and asks.
Result<DocumentRequest> user_request(const Vocabulary& vocabulary, const DocumentCase& document,
                                     const DocumentProbe& probe, QuestionPlace place) {
  DocumentRequest request;
  Before before = Before::kNothing;
  if (place == QuestionPlace::kNext) {
    std::vector<RecallMessage> messages = document.messages;
    if (messages.empty()) messages = {{.text = "Read this: " + document.text, .reply = document.reply}};
    for (const RecallMessage& message : messages) {
      EBB_ASSIGN_OR_RETURN(RecallContext context, recall_message(vocabulary, message, before));
      request.before.push_back(std::move(context.tokens));
      before = context.ends;
    }
  }
  const std::string text = text_of_user(document, probe, place);
  EBB_ASSIGN_OR_RETURN(request.tokens, recall_question(vocabulary, text, before));
  request.cues = find_cues(text);
  return request;
}

}  // namespace

std::int32_t DocumentRequest::n_tokens() const {
  std::size_t n = tokens.size();
  for (const std::vector<Token>& turn : before) n += turn.size();
  return static_cast<std::int32_t>(n);
}

Result<DocumentRequest> make_document_request(const Vocabulary& vocabulary, const DocumentCase& document,
                                              const DocumentProbe& probe, QuestionPlace place,
                                              std::int32_t block_size) {
  DocumentRequest request;
  const bool is_amid = place == QuestionPlace::kMiddle || place == QuestionPlace::kInstructed;
  if (is_amid && !document.files.empty()) {
    return error(Code::kInvalidArgument, "what an agent reads by calls is asked for last, first, next or by a tool");
  }
  if (!document.files.empty()) {
    EBB_ASSIGN_OR_RETURN(request, agent_request(vocabulary, document, probe, place));
  } else if (place == QuestionPlace::kTool) {
    EBB_ASSIGN_OR_RETURN(request, request_of_chat(vocabulary, tool_loop(document, probe)));
  } else {
    EBB_ASSIGN_OR_RETURN(request, user_request(vocabulary, document, probe, place));
  }
  if (place == QuestionPlace::kFirst || is_amid) {
    EBB_ASSIGN_OR_RETURN(request.asked, find_needed(vocabulary, turns_of(request), {probe.text}, block_size));
  }
  EBB_ASSIGN_OR_RETURN(request.needed, find_needed(vocabulary, turns_of(request), probe.facts, block_size));
  EBB_ASSIGN_OR_RETURN(request.most_reply_tokens, most_reply_tokens(vocabulary, probe));
  return request;
}

Result<DocumentRequest> next_document_request(const Vocabulary& vocabulary, const DocumentRequest& first,
                                              const DocumentProbe& probe, Before before, std::int32_t block_size) {
  DocumentRequest request{.cues = find_cues(probe.text)};
  EBB_ASSIGN_OR_RETURN(request.tokens, recall_question(vocabulary, probe.text, before));
  EBB_ASSIGN_OR_RETURN(request.needed, find_needed(vocabulary, turns_of(first), probe.facts, block_size));
  EBB_ASSIGN_OR_RETURN(request.most_reply_tokens, most_reply_tokens(vocabulary, probe));
  return request;
}

}  // namespace ebb
