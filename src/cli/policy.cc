// `ebb policy`: what eviction policies do, without a model. To add a subcommand: write its add function here or in a file of
// its own, and name it in kPolicyCommands.
#include <array>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/terminal.h"
#include "cli/text_file.h"
#include "replay/areas_replay.h"

namespace ebb {
namespace {

constexpr const char* kPolicyFooter = R"(Examples:
  ebb policy replay recording.json)";

constexpr const char* kReplayFooter = R"(Examples:
  ebb policy replay recording.json           a row for each step and layer in which blocks leave
  ebb policy replay --json recording.json    every step, with the keys to turn back, for programs

The recording has the configuration of an areas cache (start, evictable and recent blocks) and, for each step, the scores of
every layer and cached token. docs/policy_replay.md explains its fields; "-" reads it from standard input.)";

struct ReplayFlags {
  std::string file;
  bool json = false;
};

Status replay_areas(const ReplayFlags& flags) {
  EBB_ASSIGN_OR_RETURN(const std::string text, read_text(flags.file, kMostReplayBytes));
  const Result<AreasReplay> replay = read_areas_replay(text);
  if (!replay.ok()) return error(replay.status().code(), "{}: {}", flags.file, replay.status().message());
  const Result<AreasReplayReport> report = run_areas_replay(*replay);
  if (!report.ok()) return error(report.status().code(), "{}: {}", flags.file, report.status().message());
  std::cout << (flags.json ? areas_replay_json(*report) : areas_replay_text(*replay, *report)) << std::flush;
  return {};
}

void add_policy_replay(CLI::App& policy, Action& action) {
  auto flags = std::make_shared<ReplayFlags>();
  CLI::App* command = policy.add_subcommand("replay", "Recorded attention scores through the areas scheme");
  command->footer(kReplayFooter);
  command->add_option("file", flags->file, "The recording, a JSON file; -: standard input")
      ->required()
      ->type_name("FILE");
  command->add_flag("--json", flags->json, "Print JSON instead of a table");
  command->callback([flags, &action] {
    action = [flags] {
      const Status status = replay_areas(*flags);
      return status.ok() ? ExitCode::kOk : fail(status);
    };
  });
}

// In the order in which --help lists them.
constexpr std::array kPolicyCommands{add_policy_replay};

}  // namespace

void add_policy(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("policy", "Try eviction policies on recorded scores, without a model");
  command->footer(kPolicyFooter);
  command->require_subcommand(1);
  for (const auto& add : kPolicyCommands) add(*command, action);
}

}  // namespace ebb
