// `ebb parse-reply`: what a model wrote in, what a client would get of it out. No weights are loaded.
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "chat/reply_text.h"
#include "cli/command.h"
#include "cli/template_flags.h"
#include "cli/terminal.h"
#include "cli/text_file.h"

namespace ebb {
namespace {

constexpr const char* kParseReplyFooter = R"(Examples:
  ebb parse-reply < reply.txt
  ebb parse-reply --chat-template-file template.jinja --tools request.json < reply.txt
  ebb parse-reply --chat-template-file template.jinja --stream 3 < reply.txt

The text goes through the reader that ebb serve uses: thinking, what is said, and calls of tools, in the form that the chat template
teaches. "calls" names that form: one of those that ebb knows, or "derived" where it was found out by rendering calls with the template.
Values in tags (<parameter=n>5) are read by the tools' schemas; without --tools they are text.)";

struct ParseReplyFlags {
  TemplateFlags chat_template;
  std::string tools_file;
  std::int32_t n_bytes = 0;
  bool thinking_open = false;
};

Status parse_reply_text(const ParseReplyFlags& flags) {
  EBB_ASSIGN_OR_RETURN(const GivenTemplate given, read_template(flags.chat_template, false));
  ReplyTextRules rules{.source = given.source, .tools = {}, .thinking_open = flags.thinking_open};
  if (!flags.tools_file.empty()) {
    EBB_ASSIGN_OR_RETURN(rules.tools, read_text(flags.tools_file));
  }
  EBB_ASSIGN_OR_RETURN(const std::string text, read_text("-"));
  EBB_ASSIGN_OR_RETURN(const std::string read,
                       flags.n_bytes == 0 ? message_of_reply_text(text, rules)
                                          : deltas_of_reply_text(text, rules, static_cast<std::size_t>(flags.n_bytes)));
  std::cout << read << std::flush;
  return {};
}

}  // namespace

void add_parse_reply(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ParseReplyFlags>();
  CLI::App* command = app.add_subcommand("parse-reply", "Show what a client gets of a text that a model wrote");
  command->footer(kParseReplyFooter);
  add_template_flags(*command, flags->chat_template);
  command
      ->add_option("--tools", flags->tools_file,
                   "JSON file: the array of tools of a request, or a request that has one")
      ->type_name("FILE");
  command
      ->add_option(
          "--stream", flags->n_bytes,
          "Give the text to the reader in pieces of so many bytes, and print what comes out of each, a line each")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("BYTES");
  command->add_flag("--thinking", flags->thinking_open,
                    "The prompt ended inside thinking, with which the text goes on");
  command->callback([flags, &action] {
    action = [flags] {
      const Status status = parse_reply_text(*flags);
      return status.ok() ? ExitCode::kOk : fail(status);
    };
  });
}

}  // namespace ebb
