#include "cli/recall_task_flags.h"

#include <utility>

#include "cli/bench.h"
#include "cli/text_file.h"

namespace ebb {

void add_recall_task_flags(CLI::App& command, RecallTaskFlags& flags, RecallTaskOptions& task) {
  command.add_option("--text", flags.text_file, "Plain text that a haystack called text is made of")->type_name("FILE");
  command.add_option("--split", flags.split, "tune or test: they share no subject, no value and no text")
      ->check(CLI::IsMember({"tune", "test"}))
      ->type_name("SPLIT")
      ->capture_default_str();
  command.add_option("--language", flags.language, "bundled or english; default: english with -m, else bundled")
      ->check(CLI::IsMember({"bundled", "english"}))
      ->type_name("NAME");
  command
      .add_option("--relations", task.relations,
                  "What facts are of, such as owner; default: what the bundled model answers well")
      ->delimiter(',')
      ->type_name("NAME,NAME,...");
  add_count_flag(command, "--tasks", task.n_tasks, {1, 10000}, "Contexts of each kind");
  add_count_flag(command, "--mentions", task.n_mentions, {0, 100},
                 "Sentences of a context that name what is asked for, and tell nothing of it");
  command.add_option("--seed", task.seed, "Another seed makes other tasks")->type_name("N")->capture_default_str();
}

CLI::Option* add_haystack_flag(CLI::App& command, const char* name, std::vector<std::string>& haystacks, bool is_one) {
  CLI::Option* const option =
      command
          .add_option(name, haystacks,
                      "What lies between the facts: sentences, chatter, topics, noise, text (of --text)")
          ->check(CLI::IsMember({"sentences", "chatter", "text", "topics", "noise"}))
          ->type_name(is_one ? "NAME" : "NAME,NAME,...");
  return is_one ? option->expected(1) : option->delimiter(',')->capture_default_str();
}

Status take_recall_task_flags(RecallTaskFlags& flags, bool names_model, RecallTaskOptions& task) {
  const std::string language = !flags.language.empty() ? flags.language : names_model ? "english" : "bundled";
  task.language = find_recall_language(language).value_or(RecallLanguage::kBundled);
  task.split = find_recall_split(flags.split).value_or(RecallSplit::kTest);
  if (flags.text_file.empty()) return {};
  EBB_ASSIGN_OR_RETURN(flags.text, read_text(flags.text_file));
  task.text = flags.text;
  return {};
}

std::vector<Haystack> haystacks_of(const std::vector<std::string>& names) {
  std::vector<Haystack> haystacks;
  for (const std::string& name : names) haystacks.push_back(find_haystack(name).value_or(Haystack::kSentences));
  return haystacks;
}

}  // namespace ebb
