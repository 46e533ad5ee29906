#include "server/context_edits.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "chat/message_runs.h"

namespace ebb {
namespace {

using Kind = ContextEdit::Kind;
using Unit = ContextEdit::Unit;

constexpr std::string_view kToolUses = "clear_tool_uses_20250919";
constexpr std::string_view kThinking = "clear_thinking_20251015";
constexpr std::string_view kCompact = "compact_20260112";

// Anthropic's, where a request does not say.
constexpr std::int64_t kTriggerTokens = 100'000;
constexpr std::int64_t kToolUsesKept = 3;
constexpr std::int64_t kThinkingTurnsKept = 1;

constexpr std::int64_t kMostAmount = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMostTools = 1024;

// Values of a call below this are names, paths and numbers: what is gained by clearing them is less than a block.
constexpr std::size_t kLeastInputBytes = 32;

// --- reading ---

Unit read_unit(JsonFields& amount, std::string_view type) {
  if (type != "input_tokens" && type != "tool_uses") amount.refuse("type", "must be input_tokens or tool_uses");
  return type == "tool_uses" ? Unit::kToolUses : Unit::kInputTokens;
}

ContextEdit read_tool_uses(JsonFields& edit) {
  ContextEdit read{.kind = Kind::kToolUses, .trigger = kTriggerTokens, .n_kept = kToolUsesKept};
  if (std::optional<JsonFields> trigger = edit.object("trigger")) {
    read.trigger_unit = read_unit(*trigger, trigger->needed_text("type"));
    read.trigger = trigger->integer("value", read.trigger, 0, kMostAmount);
  }
  if (std::optional<JsonFields> keep = edit.object("keep")) {
    if (keep->needed_text("type") != "tool_uses") keep->refuse("type", "must be tool_uses");
    read.n_kept = keep->integer("value", kToolUsesKept, 0, kMostAmount);
  }
  if (std::optional<JsonFields> least = edit.object("clear_at_least")) {
    if (least->needed_text("type") != "input_tokens") least->refuse("type", "must be input_tokens");
    read.clear_at_least = least->integer("value", 0, 0, kMostAmount);
  }
  read.excluded_tools = edit.texts("exclude_tools", kMostTools);
  if (const Json* inputs = edit.find("clear_tool_inputs"); inputs != nullptr && inputs->is_array()) {
    read.tools_of_inputs = edit.texts("clear_tool_inputs", kMostTools);
  } else if (edit.boolean("clear_tool_inputs", false)) {
    read.tools_of_inputs = std::nullopt;
  }
  return read;
}

ContextEdit read_thinking(JsonFields& edit) {
  ContextEdit read{.kind = Kind::kThinking, .n_kept = kThinkingTurnsKept};
  const Json* kept = edit.find("keep");
  if (kept == nullptr) return read;
  if (kept->is_string()) {
    if (edit.text("keep") != "all") edit.refuse("keep", "must be all, or an object");
    read.n_kept = std::nullopt;
  } else if (std::optional<JsonFields> keep = edit.object("keep")) {
    const std::string type = keep->needed_text("type");
    if (type != "all" && type != "thinking_turns") keep->refuse("type", "must be thinking_turns or all");
    read.n_kept = keep->integer("value", kThinkingTurnsKept, 1, kMostAmount);
    if (type == "all") read.n_kept = std::nullopt;
  }
  return read;
}

// --- finding ---

// What a message said that may be cleared, a tool use or a turn's thinking.
struct Item {
  std::string tool = {};
  std::vector<MessageText> texts = {};
  std::vector<MessageText> inputs = {};
};

void add_values(const Json& value, std::size_t message, std::vector<MessageText>& texts) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text.size() >= kLeastInputBytes) texts.push_back({.message = message, .text = text});
  } else if (value.is_structured()) {
    for (const Json& part : value) add_values(part, message, texts);
  }
}

// As a view of the message.
std::string_view view_of(const Json& message, const char* name) {
  const auto found = message.find(name);
  return found != message.end() && found->is_string() ? std::string_view(found->get_ref<const std::string&>())
                                                      : std::string_view();
}

// A result belongs to the call of its id.
std::vector<Item> find_tool_uses(const ChatRequest& request) {
  std::vector<Item> uses;
  std::map<std::string, std::size_t, std::less<>> by_id;
  for (std::size_t i = 0; i < request.messages.size(); ++i) {
    const Json& message = request.messages[i];
    if (const auto calls = message.find("tool_calls"); calls != message.end() && calls->is_array()) {
      for (const Json& call : *calls) {
        const Json function = call.is_object() ? call.value("function", Json::object()) : Json::object();
        by_id.insert_or_assign(text_member(call, "id"), uses.size());
        uses.push_back({.tool = text_member(function, "name")});
        // Views of the message itself, not of the copy above.
        if (call.is_object() && call.contains("function") && call["function"].contains("arguments")) {
          add_values(call["function"]["arguments"], i, uses.back().inputs);
        }
      }
    }
    const auto found = by_id.find(view_of(message, "tool_call_id"));
    if (text_member(message, "role") != "tool" || found == by_id.end()) continue;
    uses[found->second].texts.push_back({.message = i, .text = view_of(message, "content")});
  }
  return uses;
}

std::vector<Item> find_thinking(const ChatRequest& request) {
  std::vector<Item> turns;
  bool is_same_turn = false;
  for (std::size_t i = 0; i < request.messages.size(); ++i) {
    const Json& message = request.messages[i];
    const std::string role = text_member(message, "role");
    if (role == "user") is_same_turn = false;
    const std::string_view text = view_of(message, "reasoning_content");
    if (role != "assistant" || text.empty()) continue;
    if (!std::exchange(is_same_turn, true)) turns.emplace_back();
    turns.back().texts.push_back({.message = i, .text = text});
  }
  return turns;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// The texts that an edit is about, item by item.
std::vector<std::vector<MessageText>> chosen_texts(const ContextEdit& edit, std::vector<Item> items) {
  const auto n = static_cast<std::int64_t>(items.size());
  items.resize(static_cast<std::size_t>(std::max<std::int64_t>(0, n - edit.n_kept.value_or(n))));
  std::vector<std::vector<MessageText>> chosen;
  for (Item& item : items) {
    if (has(edit.excluded_tools, item.tool)) continue;
    std::vector<MessageText> texts = std::move(item.texts);
    // A call that nothing came of is still under way.
    if (!texts.empty() && (!edit.tools_of_inputs || has(*edit.tools_of_inputs, item.tool))) {
      texts.insert(texts.begin(), item.inputs.begin(), item.inputs.end());
    }
    if (!texts.empty()) chosen.push_back(std::move(texts));
  }
  return chosen;
}

std::int32_t tokens_of_blocks(Span span, std::int32_t block_size) {
  const std::int32_t first = (span.begin.value() + block_size - 1) / block_size;
  return std::max(0, span.end.value() / block_size - first) * block_size;
}

}  // namespace

std::optional<std::vector<ContextEdit>> read_context_edits(JsonFields& body, std::vector<std::string>& warnings) {
  std::optional<JsonFields> management = body.object("context_management");
  if (!management) return std::nullopt;
  std::vector<ContextEdit> edits;
  for (JsonFields& edit : management->objects("edits")) {
    const std::string type = edit.needed_text("type");
    if (type == kToolUses) {
      edits.push_back(read_tool_uses(edit));
    } else if (type == kThinking) {
      edits.push_back(read_thinking(edit));
    } else if (type == kCompact) {
      warnings.push_back(
          fmt::format("context_management: {} has no effect: what is cold is recalled, not summarised", type));
    } else {
      edit.refuse("type", fmt::format("must be {}, {} or {}", kToolUses, kThinking, kCompact));
    }
  }
  return edits;
}

ClearedContext clear_context(const std::vector<ContextEdit>& edits, const ChatRequest& request,
                             const ChatPrompt& prompt, const std::vector<Token>& tokens, const Vocabulary& vocabulary,
                             std::int32_t block_size) {
  ClearedContext cleared{.block_size = block_size};
  for (const ContextEdit& edit : edits) {
    std::vector<Item> items = edit.kind == Kind::kToolUses ? find_tool_uses(request) : find_thinking(request);
    const auto n_now =
        edit.trigger_unit == Unit::kToolUses ? std::ssize(items) : std::ssize(tokens) - cleared.n_tokens();
    if (n_now <= edit.trigger) continue;
    const std::vector<std::vector<MessageText>> chosen = chosen_texts(edit, std::move(items));
    std::vector<MessageText> texts;
    for (const auto& of_item : chosen) texts.insert(texts.end(), of_item.begin(), of_item.end());
    const std::vector<Span> found = find_texts(vocabulary, prompt, tokens, texts);
    AppliedEdit applied{.kind = edit.kind};
    auto place = found.begin();
    for (const auto& of_item : chosen) {
      std::int32_t n_tokens = 0;
      for (std::size_t i = 0; i < of_item.size(); ++i) {
        const std::int32_t n_of_text = tokens_of_blocks(*place++, block_size);
        n_tokens += n_of_text;
        cleared.n_too_small += n_of_text == 0 ? 1 : 0;
      }
      applied.n_tokens += n_tokens;
      applied.n_items += n_tokens > 0 ? 1 : 0;
    }
    if (applied.n_tokens == 0 || applied.n_tokens < edit.clear_at_least) continue;
    std::ranges::copy_if(found, std::back_inserter(cleared.spans), [](Span span) { return !span.empty(); });
    cleared.applied.push_back(applied);
  }
  std::ranges::sort(cleared.spans, {}, &Span::begin);
  return cleared;
}

std::int32_t ClearedContext::n_tokens_of_first(std::int32_t n) const {
  std::int32_t n_tokens = 0;
  for (const Span span : spans) n_tokens += tokens_of_blocks(intersect(span, {Position(0), Position(n)}), block_size);
  return n_tokens;
}

std::string too_small_to_clear(const ClearedContext& cleared) {
  return fmt::format(
      "context_management: {} of what was to be cleared stays in sight: it fills no block of {} tokens (--block-size)",
      cleared.n_too_small, cleared.block_size);
}

Json applied_edits_json(const ClearedContext& cleared) {
  Json edits = Json::array();
  for (const AppliedEdit& applied : cleared.applied) {
    const bool is_of_tools = applied.kind == Kind::kToolUses;
    edits.push_back({{"type", is_of_tools ? kToolUses : kThinking},
                     {is_of_tools ? "cleared_tool_uses" : "cleared_thinking_turns", applied.n_items},
                     {"cleared_input_tokens", applied.n_tokens}});
  }
  return {{"applied_edits", std::move(edits)}};
}

}  // namespace ebb
