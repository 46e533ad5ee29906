// `ebb policy`: what eviction policies do, without a model. To add a subcommand: write its add function here or in a file of
// its own, and name it in kPolicyCommands.
#include <array>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "base/text_table.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "cli/text_file.h"
#include "policy/choose.h"
#include "replay/areas_replay.h"

namespace ebb {
namespace {

constexpr const char* kPolicyFooter = R"(Examples:
  ebb policy list                      what there is
  ebb policy show snapkv               what it does, and its parameters
  ebb policy replay recording.json     recorded scores through the areas scheme)";

constexpr const char* kListFooter = R"(Examples:
  ebb policy list
  ebb chat --kv-budget 2048 --kv-eviction snapkv:window=16)";

constexpr const char* kShowFooter = R"(Examples:
  ebb policy show adakv
  ebb policy show snapkv:window=16)";

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

std::string scope_text(const Policy& policy) {
  switch (policy.asks().scope) {
    case Scope::kSession: return "whole blocks";
    case Scope::kLayer: return "each layer by itself";
    case Scope::kHead: return "each head by itself";
  }
  return "";
}

std::string sharing_text(const Shares& shares) {
  switch (shares.sharing) {
    case FrameSharing::kEven: return "evenly";
    case FrameSharing::kPyramid: return "by a pyramid, lower layers have more";
    case FrameSharing::kAcrossHeads: return "won by scores, among the heads of a layer";
    case FrameSharing::kAcrossLayers: return "won by scores, among all heads";
  }
  return "";
}

std::string evidence_text(const Ask& ask) {
  std::vector<std::string> asked;
  if (ask.totals && ask.prompt_window == 0) asked.emplace_back("attention of every query");
  if (ask.prompt_window > 0) {
    asked.push_back(fmt::format("attention of a prompt's last {} queries and of every later one", ask.prompt_window));
  }
  if (ask.window > 0) asked.push_back(fmt::format("attention of the last {} queries", ask.window));
  if (ask.reread) asked.emplace_back("attention while every prompt is read again");
  if (ask.last) asked.emplace_back("attention of the last query");
  if (ask.slice == 1) asked.emplace_back("all that of each token");
  if (ask.slice > 1) asked.push_back(fmt::format("all that of each {} tokens of a block", ask.slice));
  if (ask.shares) asked.emplace_back("attention lately, by block");
  if (ask.keys) asked.emplace_back("mean length and direction of keys");
  if (ask.ranges) asked.emplace_back("least, greatest and mean of keys and values by channel");
  if (ask.value_means) asked.emplace_back("mean values");
  if (ask.output_lengths) asked.emplace_back("length of values behind the output matrix");
  if (ask.expected > 0) {
    asked.push_back(
        fmt::format("what the queries of the next {} positions are expected to look at, by the {} of those so far",
                    ask.expected, ask.expected_spread ? "mean and covariance" : "mean"));
    asked.emplace_back("length of values");
  }
  if (ask.focus) asked.emplace_back("words in common with the last messages");
  return asked.empty() ? "positions only" : fmt::format("{}", fmt::join(asked, ", "));
}

// The defaults of every policy make one.
std::unique_ptr<Policy> default_policy(const PolicyEntry& entry) {
  return entry.make(ParameterValues(entry.parameters));
}

std::string list_policies() {
  using Align = TextTable::Align;
  TextTable table({{"policy", Align::kLeft}, {"chooses", Align::kLeft}, {"what leaves first", Align::kLeft}});
  for (const PolicyEntry& entry : policies()) {
    table.add_row({std::string(entry.name), scope_text(*default_policy(entry)), std::string(entry.summary)});
  }
  return table.render() + fmt::format("\nThe default is {}.\n", kDefaultPolicy);
}

// With the parameters that were given, or the defaults.
std::string show_policy(const PolicyEntry& entry, const Policy& given) {
  const Policy* const policy = &given;
  std::string text = fmt::format(
      "{}: {}\n  source      {}\n  chooses     {}\n  budget      shared {}\n  looks at    {}\n  priorities  {}\n  "
      "first ones  {}\n",
      entry.name, entry.summary, entry.source, scope_text(*policy), sharing_text(policy->shares()),
      evidence_text(policy->asks()), policy->weighs_priorities() ? "part of its scores" : "stretch its ranks",
      policy->asks().sinks ? "leave last (--kv-sink-tokens)" : "compete like others, as it is defined");
  for (const Parameter& p : entry.parameters) {
    text += fmt::format("  {:<10}  {} ({} to {}, default {})\n", p.name, p.summary, p.least, p.most, p.value);
  }
  return text;
}

void add_policy_list(CLI::App& policy, Action& action) {
  CLI::App* command = policy.add_subcommand("list", "The policies that --kv-eviction takes");
  command->footer(kListFooter);
  command->callback([&action] {
    action = [] {
      std::cout << list_policies() << std::flush;
      return ExitCode::kOk;
    };
  });
}

void add_policy_show(CLI::App& policy, Action& action) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = policy.add_subcommand("show", "What a policy does, and the parameters that it takes");
  command->footer(kShowFooter);
  command->add_option("name", *name, "As --kv-eviction takes it: a name, and parameters behind a colon")
      ->required()
      ->type_name("NAME");
  command->callback([name, &action] {
    action = [name] {
      const auto made = make_policy(*name);
      if (!made.ok()) return fail(made.status());
      for (const PolicyEntry& entry : policies()) {
        if (entry.name == (*made)->name()) std::cout << show_policy(entry, **made) << std::flush;
      }
      return ExitCode::kOk;
    };
  });
}

// In the order in which --help lists them.
constexpr std::array kPolicyCommands{add_policy_list, add_policy_show, add_policy_replay};

}  // namespace

void add_policy(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "policy", "Eviction policies: which there are, what they do, and recorded scores through them");
  command->footer(kPolicyFooter);
  command->require_subcommand(1);
  for (const auto& add : kPolicyCommands) add(*command, action);
}

}  // namespace ebb
