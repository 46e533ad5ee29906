// Template flags: whose chat template a command that loads no weights speaks of, a model's or a file's.
//
// Thread rule: functions of their arguments.
#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "chat/chat_prompt_text.h"
#include "text/vocabulary.h"

namespace ebb {

struct TemplateFlags {
  std::string model;
  std::string template_file;
};

void add_template_flags(CLI::App& command, TemplateFlags& flags);

struct GivenTemplate {
  // Points to the vocabulary, if there is one.
  ChatPromptSource source;
  std::unique_ptr<Vocabulary> vocabulary;
};

// The file's template beside the vocabulary of a model that is named, or that is needed; else the model's.
[[nodiscard]] Result<GivenTemplate> read_template(const TemplateFlags& flags, bool needs_vocabulary);

}  // namespace ebb
