#include "cli/recall_task_flags.h"

#include <utility>

#include "cli/bench.h"
#include "cli/text_file.h"

namespace ebb {

void add_split_flag(CLI::App& command, std::string& split) {
  command.add_option("--split", split, "tune or test: they share no subject, no value and no text")
      ->check(CLI::IsMember({"tune", "test"}))
      ->type_name("SPLIT")
      ->capture_default_str();
}

void add_language_flag(CLI::App& command, std::string& language) {
  command.add_option("--language", language, "bundled or english; default: english with -m, else bundled")
      ->check(CLI::IsMember({"bundled", "english"}))
      ->type_name("NAME");
}

RecallLanguage language_of(const std::string& language, bool names_model) {
  if (language.empty()) return names_model ? RecallLanguage::kEnglish : RecallLanguage::kBundled;
  return find_recall_language(language).value_or(RecallLanguage::kBundled);
}

void add_recall_task_flags(CLI::App& command, RecallTaskFlags& flags, RecallTaskOptions& task) {
  command.add_option("--text", flags.text_file, "Plain text that a haystack called text is made of")->type_name("FILE");
  add_split_flag(command, flags.split);
  add_language_flag(command, flags.language);
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
  task.language = language_of(flags.language, names_model);
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
