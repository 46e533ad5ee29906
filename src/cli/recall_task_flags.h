// Flags of recall tasks: what their facts, questions and haystacks are, for every bench that asks them.
//
// Thread rule: the main thread only.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "bench/recall_tasks.h"

namespace ebb {

struct RecallTaskFlags {
  // Keeps what it says where `take` cannot say it yet. The text lives here: the options look at it.
  std::string split = "test";
  std::string language;
  std::string text_file;
  std::string text;
};

// --split and --language alone; defaults are what the text holds now, which must outlive the command.
void add_split_flag(CLI::App& command, std::string& split);
void add_language_flag(CLI::App& command, std::string& language);
// What --language says: english where a model is named and nothing else is said.
[[nodiscard]] RecallLanguage language_of(const std::string& language, bool names_model);
// --split, --language, --text, --relations, --tasks, --mentions and --seed; defaults are what `flags` and `task` hold now, and both
// must outlive the command.
void add_recall_task_flags(CLI::App& command, RecallTaskFlags& flags, RecallTaskOptions& task);
// One, or several, of "sentences", "chatter", "text", "topics", "noise".
CLI::Option* add_haystack_flag(CLI::App& command, const char* name, std::vector<std::string>& haystacks, bool is_one);
// What they say, into `task`. Reads the text.
Status take_recall_task_flags(RecallTaskFlags& flags, bool names_model, RecallTaskOptions& task);
// CLI11 let only known names through.
[[nodiscard]] std::vector<Haystack> haystacks_of(const std::vector<std::string>& names);

}  // namespace ebb
