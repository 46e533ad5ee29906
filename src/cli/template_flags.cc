#include "cli/template_flags.h"

#include <filesystem>

#include "cli/bundled_model.h"
#include "cli/text_file.h"

namespace ebb {

void add_template_flags(CLI::App& command, TemplateFlags& flags) {
  command
      .add_option("-m,--model", flags.model,
                  "GGUF file whose template and vocabulary are used; default: the small model that comes with ebb")
      ->type_name("FILE");
  command.add_option("--chat-template-file", flags.template_file, "Jinja template to use instead of the model's")
      ->type_name("FILE");
}

Result<GivenTemplate> read_template(const TemplateFlags& flags, bool needs_vocabulary) {
  GivenTemplate given;
  if (!flags.template_file.empty()) {
    EBB_ASSIGN_OR_RETURN(given.source.chat_template, read_text(flags.template_file));
  }
  if (flags.template_file.empty() || !flags.model.empty() || needs_vocabulary) {
    EBB_ASSIGN_OR_RETURN(const std::filesystem::path path, given_or_bundled_model(flags.model));
    EBB_ASSIGN_OR_RETURN(given.vocabulary, Vocabulary::load(path));
    given.source.vocabulary = given.vocabulary.get();
  }
  return given;
}

}  // namespace ebb
