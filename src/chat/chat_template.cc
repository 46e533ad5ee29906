#include "chat/chat_template.h"

#include <algorithm>
#include <array>

#include "chat/jinja/interpreter.h"
#include "chat/jinja/json_text.h"
#include "chat/jinja/parser.h"

namespace ebb {

namespace jinja {
struct Program {
  Block block;
};
}  // namespace jinja

namespace {

// Templates build control tokens out of these ("<|" + role + "|>"). Any other role is a word of the request.
constexpr std::array<std::string_view, 9> kKnownRoles = {"system", "developer", "user",    "assistant",    "tool",
                                                         "model",  "function",  "ipython", "tool_response"};

jinja::Value message_values(jinja::Run& run, const nlohmann::ordered_json& messages) {
  std::vector<jinja::Value> values;
  for (const auto& message : messages) {
    const auto source = static_cast<jinja::Source>(values.size());
    const jinja::Value value = jinja::from_json(run, message, source);
    if (run.failed()) return {};
    if (const auto* dict = value.find<jinja::DictRef>()) {
      const jinja::Value* role = (*dict)->find("role");
      if (role != nullptr && role->is_text() && std::ranges::find(kKnownRoles, role->bytes()) != kKnownRoles.end()) {
        (*dict)->set("role", run.text(std::string(role->bytes())));
      }
    }
    values.push_back(value);
  }
  return run.list(std::move(values));
}

void set_variables(jinja::Run& run, const TemplateInputs& inputs, jinja::Frame& frame) {
  frame.set("bos_token", run.text(std::string(inputs.bos_token)));
  frame.set("eos_token", run.text(std::string(inputs.eos_token)));
  if (inputs.arguments.is_object()) {
    for (auto at = inputs.arguments.begin(); at != inputs.arguments.end(); ++at) {
      frame.set(at.key(), jinja::from_json(run, at.value(), jinja::kFromRequest));
    }
  }
  frame.set("messages", message_values(run, inputs.messages));
  frame.set("tools", jinja::from_json(run, inputs.tools, jinja::kFromRequest));
  frame.set("documents", jinja::None{});
  frame.set("add_generation_prompt", inputs.add_generation_prompt);
}

ChatPrompt pieces_of(const jinja::MarkedText& text) {
  ChatPrompt prompt;
  const std::string& bytes = text.bytes();
  std::size_t at = 0;
  for (const jinja::Mark& mark : text.marks()) {
    if (mark.begin > at) prompt.pieces.push_back({.text = bytes.substr(at, mark.begin - at)});
    PromptPiece piece{.text = bytes.substr(mark.begin, mark.end - mark.begin), .from_user = true};
    if (mark.source >= 0) piece.message = static_cast<std::size_t>(mark.source);
    prompt.pieces.push_back(std::move(piece));
    at = mark.end;
  }
  if (at < bytes.size()) prompt.pieces.push_back({.text = bytes.substr(at)});
  return prompt;
}

// Steps that each message adds to what a rendering may take, of so many. Real templates look through all messages for each: fewer, and a session
// ends at 1400 of them. More: a client that sends many holds a worker for longer; so many take about a second.
constexpr std::size_t kStepsAMessage = 20'000;
constexpr std::size_t kMostMessages = 3000;

}  // namespace

std::tm local_time() {
  const std::time_t seconds = std::time(nullptr);
  std::tm time{};
  (void)localtime_r(&seconds, &time);
  return time;
}

Result<ChatTemplate> ChatTemplate::compile(std::string source) {
  constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 22;
  if (source.size() > kMaxSourceBytes) {
    return error(Code::kInvalidArgument, "the chat template has {} bytes; at most {} are taken", source.size(),
                 kMaxSourceBytes);
  }
  EBB_ASSIGN_OR_RETURN(jinja::Block block, jinja::parse(source));
  return ChatTemplate(std::move(source), std::make_shared<const jinja::Program>(jinja::Program{std::move(block)}));
}

ChatTemplate ChatTemplate::within(std::shared_ptr<RenderAllowance> allowance) const {
  ChatTemplate bounded = *this;
  bounded.allowance_ = std::move(allowance);
  return bounded;
}

Result<ChatPrompt> ChatTemplate::render(const TemplateInputs& inputs) const {
  jinja::RunLimits limits;
  const std::size_t n_messages = inputs.messages.is_array() ? inputs.messages.size() : 0;
  limits.max_steps += kStepsAMessage * std::min(n_messages, kMostMessages);
  const bool is_allowance_less = allowance_ != nullptr && allowance_->n_steps < limits.max_steps;
  if (is_allowance_less) limits.max_steps = allowance_->n_steps;
  jinja::Run run(limits, inputs.now);
  const jinja::FrameRef variables = run.heap.make<jinja::Frame>(nullptr);
  set_variables(run, inputs, *variables);
  jinja::MarkedText text;
  if (!run.failed()) text = jinja::Interpreter(run, variables).render(program_->block);
  if (allowance_ != nullptr) {
    allowance_->n_steps -= std::min(run.n_steps(), allowance_->n_steps);
    allowance_->is_spent |= is_allowance_less && run.failure().code() == Code::kOutOfBudget;
  }
  if (run.failed()) return run.failure();
  return pieces_of(text);
}

std::string_view chatml_template() {
  return "{%- for message in messages %}{{ '<|im_start|>' ~ message.role ~ '\\n' ~ message.content ~ '<|im_end|>\\n' }}"
         "{%- endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
}

}  // namespace ebb
