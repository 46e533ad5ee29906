// The commands of `ebb`. To add one: write its file with an add_NAME function, declare it here, and name it in
// kCommands of command_line.cc.
//
// An add function puts the command's flags into `app` and sets `action` when the command is chosen. Flags are bound to
// storage that lives as long as the action. Thread rule: the main thread only.
#pragma once

#include <functional>

#include "cli/exit_code.h"

namespace CLI {
class App;
}

namespace ebb {

using Action = std::function<ExitCode()>;

void add_run(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_chat(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_apply_template(CLI::App& app, Action& action);
void add_parse_reply(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_demo(CLI::App& app, Action& action);
void add_serve(CLI::App& app, Action& action);
void add_key(CLI::App& app, Action& action);
void add_policy(CLI::App& app, Action& action);

}  // namespace ebb
