// `ebb apply-template`: a chat request in, the prompt that a model would read out. No weights are loaded.
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "chat/chat_prompt_text.h"
#include "cli/command.h"
#include "cli/template_flags.h"
#include "cli/terminal.h"
#include "cli/text_file.h"

namespace ebb {
namespace {

constexpr const char* kApplyTemplateFooter = R"(Examples:
  echo '{"messages":[{"role":"user","content":"Hello"}]}' | ebb apply-template
  ebb apply-template -m model.gguf --tokens < request.json
  ebb apply-template --chat-template-file template.jinja < request.json

The request is the body of POST /v1/chat/completions: messages, tools, chat_template_kwargs, add_generation_prompt,
continue_final_message and reasoning_effort are read, other fields ignored. The prompt goes to standard output as it is, with
no newline behind it.

With --chat-template-file and no model, bos_token and eos_token are empty; give them in "chat_template_kwargs" if the template
needs them. Text from the request is never read as a control token: --tokens shows it.)";

struct ApplyTemplateFlags {
  TemplateFlags chat_template;
  bool tokens = false;
};

Status apply_template(const ApplyTemplateFlags& flags) {
  EBB_ASSIGN_OR_RETURN(const GivenTemplate given, read_template(flags.chat_template, flags.tokens));
  EBB_ASSIGN_OR_RETURN(const std::string request, read_text("-"));
  EBB_ASSIGN_OR_RETURN(const ChatPrompt prompt, prompt_of_request_text(request, given.source));
  if (!flags.tokens) {
    std::cout << prompt.text() << std::flush;
    return {};
  }
  EBB_ASSIGN_OR_RETURN(const std::vector<Token> tokens, tokenize_prompt(*given.vocabulary, prompt, true));
  for (const Token token : tokens) {
    EBB_ASSIGN_OR_RETURN(const std::string piece, given.vocabulary->piece(token, SpecialTokens::kShow));
    std::cout << fmt::format("{}\t{}\n", token.value(), quoted_text(piece));
  }
  std::cout << std::flush;
  return {};
}

}  // namespace

void add_apply_template(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ApplyTemplateFlags>();
  CLI::App* command = app.add_subcommand("apply-template", "Show the prompt that a chat request becomes");
  command->footer(kApplyTemplateFooter);
  add_template_flags(*command, flags->chat_template);
  command->add_flag("--tokens", flags->tokens, "Print the prompt's tokens, one a line: id, tab, text as JSON");
  command->callback([flags, &action] {
    action = [flags] {
      const Status status = apply_template(*flags);
      return status.ok() ? ExitCode::kOk : fail(status);
    };
  });
}

}  // namespace ebb
