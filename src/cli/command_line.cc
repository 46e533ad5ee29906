#include "cli/command_line.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "base/version.h"
#include "bench/llama_peer.h"
#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/llama_flags.h"
#include "cli/nearest_flag.h"
#include "cli/terminal.h"

namespace ebb {
namespace {

// In the order in which --help lists them.
constexpr std::array kCommands{add_run,     add_explain,        add_chat,        add_serve,  add_key,  add_demo,
                               add_inspect, add_apply_template, add_parse_reply, add_policy, add_bench};

constexpr const char* kCommandLineFooter = R"(Examples:
  ebb run -p "The capital of France is" --raw -n 16
  ebb run -m model.gguf -f question.txt --temp 0
  ebb chat -m model.gguf --kv-budget 2048
  ebb inspect model.gguf
  ebb bench speed

`ebb COMMAND --help` explains a command and its flags. Without -m, ebb takes the small model that comes with it.

Exit codes: 0 done; 1 failed while running; 2 bad usage; 130 stopped by Ctrl-C.)";

void add_version_flag(CLI::App& app) {
  app.set_version_flag(
      "--version", [] { return fmt::format("ebb {} ({})", kVersion, llama_version_text()); },
      "Print the versions of ebb, libllama and ggml and leave");
}

// What llama.cpp's server says of itself, and ends.
void add_words_of_llama(CLI::App& serve) {
  add_version_flag(serve);
  serve.add_flag_callback(
      "--license",
      [] {
        fmt::print("ebb is under the Apache License 2.0 (LICENSE); what it stands on has licences of its own\n");
        throw CLI::Success();
      },
      "Print whose licence holds and leave");
}

void set_up(CLI::App& app) {
  app.formatter(std::make_shared<HelpText>());  // commands inherit it
  app.get_formatter()->label("OPTIONS", "FLAGS");
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("Positionals", "Arguments");
  app.set_help_flag("-h,--help", "Print this and leave");
  app.footer(kCommandLineFooter);
  app.require_subcommand(0, 1);
  add_version_flag(app);
}

ExitCode refuse(std::string_view command, std::string_view what) {
  print_error(fmt::format("{}\n  `{} --help` lists what there is.", what, command));
  return ExitCode::kBadUsage;
}

std::string no_flag(const CLI::App& command, std::string_view flag) {
  return fmt::format("there is no flag {}{}", flag, hint_at(command, flag));
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
  const std::vector<std::string> remaining = command->remaining();
  const auto flag = std::ranges::find_if(remaining, [](const std::string& one) { return one.starts_with("-"); });
  return refuse(name, flag == remaining.end() ? std::string(error.what()) : no_flag(*command, *flag));
}

std::optional<std::string> variable_named(std::string_view name) {
  const char* const value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::vector<std::string> set_variables() {
  std::vector<std::string> names;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view variable = *one;
    names.emplace_back(variable.substr(0, variable.find('=')));
  }
  return names;
}

// The line in ebb's own flags: CLI11 would read "-hf" as -h and -f.
Result<TranslatedLine> own_line(std::span<const char* const> arguments) {
  TranslatedLine line{.arguments = {arguments.begin(), arguments.end()}};
  if (arguments.size() > 1 && line.arguments[1] == "serve") {
    EBB_ASSIGN_OR_RETURN(line, translate_llama_line(arguments.subspan(2), variable_named));
    line.arguments.insert(line.arguments.begin(), arguments.begin(), arguments.begin() + 2);
    return line;
  }
  const auto end = std::ranges::find(line.arguments, "--");
  const auto unknown = std::find_if(line.arguments.begin(), end, is_bundled);
  if (unknown != end) line.unknown = *unknown;
  return line;
}

// The command that the line names, or ebb itself.
const CLI::App& command_of(const CLI::App& app, std::span<const char* const> arguments) {
  const auto is_named = [&](const CLI::App* one) { return arguments.size() > 1 && one->get_name() == arguments[1]; };
  const auto named = app.get_subcommands(is_named);
  return named.empty() ? app : *named.front();
}

ExitCode parse_and_run(int argc, const char* const* argv) {
  CLI::App app("ebb runs language models whose KV cache forgets reversibly.", "ebb");
  set_up(app);
  Action action;
  for (const auto& add : kCommands) add(app, action);
  for (CLI::App* command : app.get_subcommands({})) command->group("Commands");
  CLI::App& serve = *app.get_subcommand("serve");
  add_words_of_llama(serve);
  const std::span given(argv, static_cast<std::size_t>(argc));
  const Result<TranslatedLine> line = own_line(given);
  const CLI::App& command = command_of(app, given);
  const std::string name = &command == &app ? "ebb" : "ebb " + command.get_name();
  if (!line.ok()) return refuse(name, line.status().message());
  if (!line->unknown.empty()) return refuse(name, no_flag(command, line->unknown));
  std::vector<std::string> notes = line->notes;
  if (&command == &serve) std::ranges::move(notes_on_variables(serve, set_variables()), std::back_inserter(notes));
  for (const std::string& note : notes) fmt::print(stderr, "ebb: {}\n", note);
  try {
    std::vector<const char*> arguments;
    for (const std::string& argument : line->arguments) arguments.push_back(argument.c_str());
    app.parse(static_cast<int>(arguments.size()), arguments.data());
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
