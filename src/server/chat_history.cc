#include "server/chat_history.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "chat/message_runs.h"

namespace ebb {

Source source_of(std::string_view role) {
  if (role == "system" || role == "developer") return Source::kSystem;
  if (role == "assistant") return Source::kAssistant;
  return role == "tool" ? Source::kTool : Source::kUser;
}

namespace {

constexpr std::size_t kMostNameBytes = 256;
constexpr float kMostPriority = 1000.0F;

// The names of called functions by the ids of their calls, of which the first counts.
using CalledFunctions = std::map<std::string, std::string, std::less<>>;

CalledFunctions called_functions(const ChatRequest& request) {
  CalledFunctions functions;
  for (const Json& message : request.messages) {
    if (!message.contains("tool_calls")) continue;
    for (const Json& call : message["tool_calls"]) {
      if (call.contains("function")) functions.emplace(text_member(call, "id"), text_member(call["function"], "name"));
    }
  }
  return functions;
}

// The name of the function whose call a tool's message answers; "" where no call has its id.
std::string called_function(const CalledFunctions& functions, const Json& message) {
  const std::string id = text_member(message, "tool_call_id");
  if (id.empty()) return text_member(message, "name");
  const auto found = functions.find(id);
  return found == functions.end() ? std::string() : found->second;
}

// By the client's count of messages.
std::string name_of(const ChatRequest& request, const CalledFunctions& functions, std::size_t index) {
  const Json& message = request.messages[index];
  const std::string role = text_member(message, "role");
  if (index == 0 && source_of(role) == Source::kSystem) return "system";
  const std::string function = role == "tool" ? called_function(functions, message) : std::string();
  return fmt::format("{}{}{}{:.100}", role, index - request.n_put_in_front, function.empty() ? "" : ":", function);
}

// Where the message is cleared, `run` joins what is.
Status take_hints(const Json& messages, std::size_t index, Span run, PromptPart& part, std::vector<Span>& cleared) {
  if (!messages.is_array() || index >= messages.size()) return {};
  JsonFields message(messages[index], fmt::format("messages[{}]", index));
  std::optional<JsonFields> hints = message.object("ebb");
  if (!hints) return message.status();
  std::string name = hints->text("name");
  if (name.size() > kMostNameBytes) {
    hints->refuse("name", fmt::format("{} bytes, of at most {}", name.size(), kMostNameBytes));
  }
  if (!name.empty()) part.name = std::move(name);
  part.pinned = hints->boolean("pin", false);
  part.priority = static_cast<double>(hints->number("priority", 1.0F, 0.0F, kMostPriority));
  if (hints->boolean("cleared", false)) cleared.push_back(run);
  return message.status();
}

}  // namespace

Result<Prompt> chat_history(const ApiState& state, ChatPlan& plan, const Json& messages) {
  const CalledFunctions functions = called_functions(plan.request);
  std::vector<PromptPart> parts;
  std::vector<Span> cleared = std::exchange(plan.cleared, {});
  std::int32_t n_pinned = 0;
  Position first(0);
  for (const MessageRun& run : find_message_runs(state.engine.vocabulary(), plan.prompt, plan.tokens)) {
    PromptPart part{.n_tokens = run.n_tokens, .source = Source::kSystem, .name = "system"};
    if (run.message) {
      part.source = source_of(text_member(plan.request.messages[*run.message], "role"));
      part.name = name_of(plan.request, functions, *run.message);
      const std::size_t n_ours = plan.request.n_put_in_front;
      const Span tokens = {first, first + run.n_tokens};
      if (*run.message >= n_ours) {
        EBB_RETURN_IF_ERROR(take_hints(messages, *run.message - n_ours, tokens, part, cleared));
      }
    }
    first = first + run.n_tokens;
    if (part.pinned) n_pinned += run.n_tokens;
    parts.push_back(std::move(part));
  }
  if (const std::int32_t most = state.scheduler.most_pinned_tokens(); n_pinned > most) {
    return error(
        Code::kInvalidArgument,
        "messages with ebb.pin have {} tokens, and at most {} may be pinned; pin fewer, or raise the KV budget",
        n_pinned, most);
  }
  std::ranges::sort(cleared, {}, &Span::begin);
  return Prompt(std::exchange(plan.tokens, {}), std::move(parts), std::move(cleared));
}

std::int32_t tokens_of_first(const ApiState& state, const ChatPlan& plan, std::size_t n_messages) {
  std::int32_t n_tokens = 0;
  for (const MessageRun& run : find_message_runs(state.engine.vocabulary(), plan.prompt, plan.tokens)) {
    if (run.message && *run.message >= n_messages + plan.request.n_put_in_front) break;
    n_tokens += run.n_tokens;
  }
  return n_tokens;
}

}  // namespace ebb
