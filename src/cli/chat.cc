// `ebb chat`: a conversation at the terminal.
#include <cstdio>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "chat/conversation.h"
#include "cli/block_map.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/generation_flags.h"
#include "cli/interrupt.h"
#include "cli/line_reader.h"
#include "cli/reply.h"
#include "cli/terminal.h"

namespace ebb {
namespace {

constexpr const char* kChatFooter = R"(While it runs:
  /help     what can be typed
  /reset    start a new conversation
  /stats    tokens, speeds, hot and evicted blocks, memory
  /quit     leave; so does Ctrl-D, and Ctrl-C twice
  Ctrl-C    stop the reply
A line that ends with \ goes on with the next one.

Examples:
  ebb chat
  ebb chat -m model.gguf --system "Be brief." --temp 0.7
  ebb chat -m model.gguf --kv-budget 1024     older blocks are evicted, and recalled when they are asked about)";

constexpr const char* kHelp =
    "/reset starts a new conversation, /stats shows tokens, speeds, blocks and memory, /blocks draws which blocks are\n"
    "hot, /quit leaves.\n"
    "Ctrl-C stops a reply; at the prompt, twice leaves. A line that ends with \\ goes on with the next one.\n";

struct ChatFlags {
  EngineFlags engine;
  GenerationFlags generation;
  std::string system;
};

class Chat {
 public:
  Chat(const ChatFlags& flags, Engine& engine, InterruptListener& interrupt, GenerationOptions options)
      : flags_(flags),
        engine_(engine),
        interrupt_(interrupt),
        options_(std::move(options)),
        conversation_(engine.vocabulary(), flags.system) {}

  Status run() {
    EBB_RETURN_IF_ERROR(reset());
    if (isatty(STDIN_FILENO) == 1) {
      fmt::print(stderr, "{}: /help tells what can be typed\n", engine_.model().file().name());
    }
    LineReader lines(interrupt_);
    bool was_interrupted = false;
    for (std::string line;;) {
      const LineReader::Outcome outcome = lines.read("> ", line);
      if (outcome == LineReader::Outcome::kInterrupted) {
        interrupt_.take();
        std::fputc('\n', stderr);
        if (was_interrupted) return {};
        fmt::print(stderr, "Ctrl-C once more, or Ctrl-D, leaves\n");
        was_interrupted = true;
        continue;
      }
      was_interrupted = false;
      if (outcome == LineReader::Outcome::kEnd || line == "/quit") return {};
      EBB_RETURN_IF_ERROR(take(line));
    }
  }

 private:
  Status take(const std::string& line) {
    if (line.empty()) return {};
    if (line == "/help") {
      std::cerr << kHelp;
    } else if (line == "/stats") {
      std::cerr << last_reply_stats_ << session_stats_text(engine_, *session_);
    } else if (line == "/blocks") {
      fmt::print(stderr, "{}\n{}\n", block_map(*session_, last_recalled_), block_map_legend());
    } else if (line == "/reset") {
      return reset();
    } else if (line.starts_with('/')) {
      fmt::print(stderr, "no command {}; /help lists them\n", line);
    } else {
      const Status status = ask(line);
      // A message that failed is no reason to lose the conversation.
      if (!status.ok()) print_error(status.message() + "; /reset starts over");
    }
    return {};
  }

  Status reset() {
    session_.reset();
    conversation_ = Conversation(engine_.vocabulary(), flags_.system);
    last_reply_stats_.clear();
    last_recalled_.clear();
    said_before_.clear();
    told_of_loss_ = false;
    EBB_ASSIGN_OR_RETURN(session_, engine_.new_session());
    return {};
  }

  Status ask(const std::string& line) {
    EBB_ASSIGN_OR_RETURN(std::vector<Token> tokens, conversation_.ask(line));
    std::vector<SaidText> said = said_before_;
    said.push_back({.text = line});
    options_.recall.cues = find_cues(said);
    EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Generation> generation,
                         Generation::start(*session_, engine_.vocabulary(), Prompt(std::move(tokens)), options_));
    const Status status = stream_reply(engine_, *generation, interrupt_);
    if (!generation->text().ends_with('\n')) std::fputc('\n', stdout);
    std::fflush(stdout);
    tell_of_loss();
    last_reply_stats_ = reply_stats_text(*generation, *session_);
    last_recalled_ = generation->turn_stats().acts.recalled;
    said_before_ = {{.text = line, .is_before = true},
                    {.text = generation->text(), .source = Source::kAssistant, .is_before = true}};
    EBB_RETURN_IF_ERROR(conversation_.answer(generation->tokens(), generation->text()));
    return status;
  }

  // Once: after that /stats has it.
  void tell_of_loss() {
    const std::string loss = move_loss_text(engine_, *session_);
    if (loss.empty() || told_of_loss_) return;
    fmt::print(stderr, "ebb: {}\n", loss);
    told_of_loss_ = true;
  }

  const ChatFlags& flags_;
  Engine& engine_;
  InterruptListener& interrupt_;
  GenerationOptions options_;
  std::unique_ptr<Session> session_;
  Conversation conversation_;
  std::string last_reply_stats_;
  bool told_of_loss_ = false;
  std::vector<BlockIndex> last_recalled_;
  // The last message and its reply: what the next one may refer to.
  std::vector<SaidText> said_before_;
};

Status run_chat(const ChatFlags& flags) {
  EBB_ASSIGN_OR_RETURN(GenerationOptions options, generation_options(flags.generation));
  std::unique_ptr<Engine> engine;
  InterruptListener interrupt;
  EBB_ASSIGN_OR_RETURN(engine, open_engine(flags.engine, interrupt));
  EBB_RETURN_IF_ERROR(engine->check_selectors(options.recall.selectors));
  if (!engine->vocabulary().chat_template()) {
    return error(Code::kUnsupported, "{}: has no chat template; continue texts with `ebb run --raw` instead",
                 engine->model().file().name());
  }
  return Chat(flags, *engine, interrupt, std::move(options)).run();
}

}  // namespace

void add_chat(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ChatFlags>();
  CLI::App* command = app.add_subcommand("chat", "Talk with a model");
  command->footer(kChatFooter);
  command->add_option("--system", flags->system, "What the model is told before the conversation")
      ->type_name("TEXT")
      ->group("Prompt");
  add_generation_flags(*command, flags->generation);
  add_engine_flags(*command, flags->engine);
  command->callback([flags, &action] {
    action = [flags] {
      const Status status = run_chat(*flags);
      return status.ok() ? ExitCode::kOk : fail(status);
    };
  });
}

}  // namespace ebb
