// Templates that are cut, mutated or made of random words, as a model file may carry them: each ends, with a prompt or with
// an error that names its line.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/toy_rounds.h"
#include "chat/chat_template.h"

namespace ebb::chat_template_random_test {
namespace {

using testing::HasSubstr;

std::vector<std::string> real_templates() {
  std::vector<std::string> sources;
  const auto folder = std::filesystem::path(EBB_SOURCE_DIR) / "tests" / "templates";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".jinja" && entry.path().extension() != ".txt") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    sources.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return sources;
}

// Ends, in whatever way.
int n_rendered = 0;
void survive(const std::string& source) {
  static const TemplateInputs kTwo = {
      .messages = nlohmann::ordered_json::parse(
          R"([{"role": "user", "content": " one <|im_end|> "}, {"role": "assistant", "content": "two"}])")};
  const auto chat_template = ChatTemplate::compile(source);
  const auto prompt = chat_template.ok() ? chat_template->render(kTwo) : Result<ChatPrompt>(chat_template.status());
  if (prompt.ok()) {
    ++n_rendered;
  } else {
    EXPECT_THAT(prompt.status().message(), HasSubstr("chat template, line "));
  }
}

TEST(ChatTemplateRandom, survives_templates_that_are_cut_or_mutated) {
  const std::vector<std::string> sources = real_templates();
  ASSERT_GE(sources.size(), 8U);
  n_rendered = 0;
  for (RandomRounds rounds(1500); rounds.next();) {
    SCOPED_TRACE(rounds.seed());
    std::mt19937 random(rounds.seed());
    std::string source = sources[random() % sources.size()];
    if (random() % 2 == 0) source.resize(random() % source.size());
    for (auto n = random() % 6; n > 0 && !source.empty(); --n) {
      const std::size_t at = random() % source.size();
      switch (random() % 3) {
        case 0: source[at] = static_cast<char>(random()); break;
        case 1: source.erase(at, random() % 20); break;
        default: source.insert(at, source.substr(random() % source.size(), random() % 30));
      }
    }
    survive(source);
  }
  EXPECT_GT(n_rendered, 10);  // or only the parser was tested
}

TEST(ChatTemplateRandom, survives_random_words) {
  const std::vector<std::string> words = {
      "{{",       "}}",         "{%",    "%}",       "{#",     "#}",        "-%}",   "{%-",      "for",
      "in",       "if",         "else",  "elif",     "endif",  "endfor",    "set",   "endset",   "macro",
      "endmacro", "m",          "x",     "messages", "loop",   "namespace", "(",     ")",        "[",
      "]",        "{",          "}",     ".",        ",",      ":",         "|",     "~",        "+",
      "-",        "*",          "/",     "//",       "%",      "**",        "==",    "<",        ">",
      "=",        "not",        "and",   "or",       "is",     "defined",   "none",  "true",     "1",
      "0",        "2.5",        "'a'",   "\"b\"",    "tojson", "trim",      "join",  "items",    "list",
      "map",      "selectattr", "range", "content",  "role",   "split",     " ",     "\n",       "99999999999",
      "raw",      "endraw",     "call",  "endcall",  "filter", "endfilter", "break", "continue", "with",
      "endwith",  "recursive"};
  n_rendered = 0;
  for (RandomRounds rounds(20000); rounds.next();) {
    SCOPED_TRACE(rounds.seed());
    std::mt19937 random(rounds.seed());
    // Every other one is an expression, so that the interpreter gets its share.
    const bool expression = rounds.seed() % 2 == 0;
    std::string source = expression ? "{{ messages" : "";
    for (auto n = random() % 12; n > 0; --n) source += words[random() % words.size()] + (random() % 3 == 0 ? "" : " ");
    if (expression) source += " }}";
    survive(source);
  }
  EXPECT_GT(n_rendered, 100);
}

}  // namespace
}  // namespace ebb::chat_template_random_test
