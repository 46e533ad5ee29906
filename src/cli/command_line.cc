#include "cli/command_line.h"

#include <algorithm>
#include <array>
#include <exception>
#include <iostream>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "bench/llama_peer.h"
#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/llama_flags.h"
#include "cli/terminal.h"

namespace ebb {
namespace {

// In the order in which --help lists them.
constexpr std::array kCommands{add_run,  add_explain, add_chat,           add_serve,  add_key,
                               add_demo, add_inspect, add_apply_template, add_policy, add_bench};

constexpr const char* kCommandLineFooter = R"(Examples:
  ebb run -p "The capital of France is" --raw -n 16
  ebb run -m model.gguf -f question.txt --temp 0
  ebb chat -m model.gguf --kv-budget 2048
  ebb inspect model.gguf
  ebb bench speed

`ebb COMMAND --help` explains a command and its flags. Without -m, ebb takes the small model that comes with it.

Exit codes: 0 done; 1 failed while running; 2 bad usage; 130 stopped by Ctrl-C.)";

void set_up(CLI::App& app) {
  app.formatter(std::make_shared<HelpText>());  // commands inherit it
  app.get_formatter()->label("OPTIONS", "FLAGS");
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("Positionals", "Arguments");
  app.set_help_flag("-h,--help", "Print this and leave");
  app.footer(kCommandLineFooter);
  app.require_subcommand(0, 1);
  app.set_version_flag(
      "--version", [] { return fmt::format("ebb {} ({})", kVersion, llama_version_text()); },
      "Print the versions of ebb, libllama and ggml and leave");
}

// Help and version end here too: CLI11 reports them as errors that are none.
ExitCode end_of_parsing(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    (void)app.exit(error, std::cout, std::cerr);
    return ExitCode::kOk;
  }
  const CLI::App* command = &app;
  std::string name = "ebb";
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  print_error(fmt::format("{}\n  `{} --help` lists what there is.", error.what(), name));
  return ExitCode::kBadUsage;
}

// CLI11's short flags have one letter; some of llama.cpp's have more.
std::vector<const char*> with_long_names(std::span<const char* const> arguments) {
  std::vector<const char*> all(arguments.begin(), arguments.end());
  std::ranges::transform(all, all.begin(), long_name);
  return all;
}

ExitCode parse_and_run(int argc, const char* const* argv) {
  CLI::App app("ebb runs language models whose KV cache forgets reversibly.", "ebb");
  set_up(app);
  Action action;
  for (const auto& add : kCommands) add(app, action);
  for (CLI::App* command : app.get_subcommands({})) command->group("Commands");
  try {
    const std::vector<const char*> arguments = with_long_names(std::span(argv, static_cast<std::size_t>(argc)));
    app.parse(argc, arguments.data());
  } catch (const CLI::ParseError& error) {
    return end_of_parsing(app, error);
  }
  if (!action) {  // no command: the help is what helps
    std::cerr << app.help();
    return ExitCode::kBadUsage;
  }
  return action();
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  ExitCode code = ExitCode::kFailed;
  try {
    code = parse_and_run(argc, argv);
  } catch (const std::bad_alloc&) {
    print_error("out of memory; a smaller --kv-budget or model needs less");
  } catch (const std::exception& error) {
    print_error(error.what());
  }
  return static_cast<int>(code);
}

}  // namespace ebb
