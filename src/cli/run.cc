// `ebb run`: one prompt, one reply; `ebb explain`: the same, and why blocks that left came back for it or did not.
#include <cstdio>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "chat/conversation.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/generation_flags.h"
#include "cli/interrupt.h"
#include "cli/recall_text.h"
#include "cli/reply.h"
#include "cli/terminal.h"
#include "cli/text_file.h"

namespace ebb {
namespace {

constexpr const char* kRunFooter = R"(Examples:
  ebb run -p "What is a KV cache?" -n 200
  ebb run -p "Once upon a time" --raw --temp 0 -n 64      continue the text as it stands
  cat notes.txt | ebb run -f - --system "Summarise."      the prompt from standard input
  ebb run -f notes.txt -p "Who is Ada?"                   the file first, then the question
  ebb run -f notes.txt -p "Who is Ada?" --kv-budget 512   the same in less memory than the file takes
  ebb run -p "Is it raining? " --grammar 'root ::= "yes" | "no"'

The reply goes to stdout, everything else to stderr. Ctrl-C stops the reply; a second one ends the program at once.)";

constexpr const char* kExplainFooter = R"(Examples:
  ebb explain -f notes.txt -p "Who is Ada?" --kv-budget 512
  ebb explain -f notes.txt -p "Who is Ada?" --kv-budget 512 --selectors lexical
  ebb explain -f notes.txt -p "Who is Ada?" --kv-budget 512 --selectors digest:least=0.1

For each moment at which recall looked, and each selector: the blocks that it chose, and the best of those that it did not, with its
score: BM25's of words, a cosine of embeddings, a share of attention of digests. A server tells the same where a request says
"ebb":{"recall":{"explain":true}}.)";

struct RunFlags {
  EngineFlags engine;
  GenerationFlags generation;
  std::string prompt;
  std::string file;
  std::string system;
  bool raw = false;
  bool verbose = false;
  bool explains = false;
};

Result<std::string> prompt_text(const RunFlags& flags) {
  if (flags.prompt.empty() && flags.file.empty()) {
    return error(Code::kInvalidArgument, "no prompt; give one with -p TEXT or -f FILE (-f - reads standard input)");
  }
  std::string text;
  if (!flags.file.empty()) {
    EBB_ASSIGN_OR_RETURN(text, read_text(flags.file));
  }
  if (!text.empty() && !flags.prompt.empty() && text.back() != '\n') text += '\n';
  return text + flags.prompt;
}

Result<std::vector<Token>> prompt_tokens(const RunFlags& flags, const Vocabulary& vocabulary, const std::string& text) {
  if (!flags.raw) {
    Conversation conversation(vocabulary, flags.system);
    Result<std::vector<Token>> tokens = conversation.ask(text);
    if (tokens.ok() || tokens.status().code() != Code::kUnsupported) return tokens;
    fmt::print(stderr, "ebb: {}; the prompt is continued as it stands, as with --raw\n", tokens.status().message());
  }
  return vocabulary.tokenize(text, {.add_bos = true, .parse_special = true});
}

Status run_prompt(const RunFlags& flags, ExitCode& code) {
  EBB_ASSIGN_OR_RETURN(const std::string text, prompt_text(flags));
  EBB_ASSIGN_OR_RETURN(GenerationOptions options, generation_options(flags.generation));
  options.recall.cues = find_cues(text);
  std::unique_ptr<Engine> engine;
  InterruptListener interrupt;
  EBB_ASSIGN_OR_RETURN(engine, open_engine(flags.engine, interrupt));
  EBB_RETURN_IF_ERROR(engine->check_selectors(options.recall.selectors));
  EBB_ASSIGN_OR_RETURN(std::vector<Token> tokens, prompt_tokens(flags, engine->vocabulary(), text));
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, engine->new_session());
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Generation> generation,
                       Generation::start(*session, engine->vocabulary(), Prompt(std::move(tokens)), options));
  EBB_RETURN_IF_ERROR(stream_reply(*engine, *generation, interrupt));
  if (!generation->text().ends_with('\n')) std::fputc('\n', stdout);
  if (flags.explains) fmt::print("\n{}", recall_text(*session, generation->turn_stats()));
  std::fflush(stdout);
  if (session->stats().n_evicted_blocks > 0) {
    fmt::print(
        stderr,
        "ebb: longer than the KV budget of {} tokens: {} of {} tokens were evicted on the way, and {} for what is "
        "asked; --kv-budget raises it\n",
        engine->budget_tokens(), session->end().value() - session->n_hot_tokens(), session->end().value(),
        back_text(generation->turn_stats().acts));
  }
  if (engine->prompt_budget_tokens() > 0 && !flags.verbose) {
    fmt::print(stderr, "ebb: KV budget: {}\n", budget_use_text(*generation, *session));
  }
  if (const std::string loss = move_loss_text(*engine, *session); !loss.empty() && !flags.verbose) {
    fmt::print(stderr, "ebb: {}\n", loss);
  }
  if (flags.verbose) std::cerr << reply_stats_text(*generation, *session) << session_stats_text(*engine, *session);
  if (generation->reason() == FinishReason::kCancelled) code = ExitCode::kInterrupted;
  return {};
}

void add_prompt_command(CLI::App* command, bool explains, Action& action) {
  auto flags = std::make_shared<RunFlags>();
  flags->explains = explains;
  const char* group = "Prompt";
  command->add_option("-p,--prompt", flags->prompt, "What to answer")->type_name("TEXT")->group(group);
  command->add_option("-f,--file", flags->file, "The same from a file, or - for standard input; comes before -p")
      ->type_name("FILE")
      ->group(group);
  command->add_option("--system", flags->system, "What the model is told before the conversation")
      ->type_name("TEXT")
      ->group(group);
  command->add_flag("--raw", flags->raw, "Do not use the model's chat template: continue the text as it stands")
      ->group(group);
  add_generation_flags(*command, flags->generation);
  add_engine_flags(*command, flags->engine);
  command->add_flag("-v,--verbose", flags->verbose, "Tokens, speeds, frames and memory on stderr at the end");
  command->callback([flags, &action] {
    action = [flags] {
      ExitCode code = ExitCode::kOk;
      const Status status = run_prompt(*flags, code);
      return status.ok() ? code : fail(status);
    };
  });
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("run", "Answer one prompt, or continue a text");
  command->footer(kRunFooter);
  add_prompt_command(command, false, action);
}

void add_explain(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("explain", "Answer one prompt, and show why blocks that left came back for it or did not");
  command->footer(kExplainFooter);
  add_prompt_command(command, true, action);
}

}  // namespace ebb
