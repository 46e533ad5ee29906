// EVOKE's agent bench: a coding agent reads a file that states how many times something is tried again, then ten files of other
// matter, each six times the same, and is asked for that number.
//
// Each file is what a call of a tool returned; so is the question, where it stands in a tool's result. EVOKE's number is 17; only the
// first case has it, so that no reply is right by habit.
#include <array>

#include "bench/document_makers.h"

namespace ebb {
namespace {

constexpr std::int32_t kRepetitions = 6;
// Names that the bundled model's training knows (tools/train/vocabulary.py).
constexpr std::array kFillers = {"main.rs",  "utils.go",  "index.ts",    "model.cc",  "schema.sql",
                                 "app.toml", "deploy.sh", "server.yaml", "limits.rs", "settings.json"};
constexpr std::int32_t kEvokesNumber = 17;

// Settings with values that differ.
DocumentFile write_config(DocumentMaker& maker, std::int32_t number, DocumentProbe& probe) {
  DocumentFile file{.name = "config.py", .text = "# config.py\n"};
  for (const char* const field : {"port", "retries", "timeout", "workers"}) {
    const bool is_asked = std::string_view(field) == "retries";
    std::string value = std::to_string(number);
    while (!is_asked && (value == probe.answers.front() || value == std::to_string(number))) {
      value = std::to_string(100 + maker.next() % 900);
    }
    std::string line = fmt::format("{} = {}", field, value);
    if (is_asked) probe.facts = {line};
    file.text += line + "\n";
    probe.values.push_back(std::move(value));
  }
  return file;
}

Result<DocumentCase> write_agent(DocumentMaker& maker, const DocumentCaseOptions& options, bool mentions,
                                 std::int32_t index) {
  const auto number = index == 0 ? kEvokesNumber : static_cast<std::int32_t>(11 + maker.next() % 89);
  const bool is_bundled = options.task.language == RecallLanguage::kBundled;
  DocumentProbe probe{.text = is_bundled ? "What is retries in config.py?" : "How many retries does config.py allow?",
                      .answers = {std::to_string(number)}};
  DocumentCase one;
  one.files.push_back(write_config(maker, number, probe));
  std::int32_t n_left = maker.n_tokens();
  for (std::size_t i = 0; i < kFillers.size(); ++i) {
    // What one file has too much, those behind it have too little.
    const std::int32_t n_each = n_left / (static_cast<std::int32_t>(kFillers.size() - i) * kRepetitions);
    std::string passage = mentions ? "Nobody has changed retries in config.py since the morning. " : "";
    std::int32_t n = 0;
    do {
      passage += maker.line(probe.answers) + " ";
      EBB_ASSIGN_OR_RETURN(n, maker.count(passage));
    } while (n < n_each);
    n_left -= n * kRepetitions;
    passage.back() = '\n';
    DocumentFile file{.name = kFillers[i], .text = fmt::format("# {}\n", kFillers[i])};
    for (std::int32_t k = 0; k < kRepetitions; ++k) file.text += passage;
    one.files.push_back(std::move(file));
  }
  for (const DocumentFile& file : one.files) one.text += file.text;
  one.probes = {std::move(probe)};
  return one;
}

Result<std::vector<DocumentCase>> make_all(const Vocabulary& vocabulary, const DocumentCaseOptions& options,
                                           bool mentions) {
  std::vector<DocumentCase> cases;
  for (std::int32_t i = 0; i < options.task.n_tasks; ++i) {
    EBB_ASSIGN_OR_RETURN(DocumentMaker maker,
                         DocumentMaker::create(vocabulary, options, "agent", i, Haystack::kSentences));
    EBB_ASSIGN_OR_RETURN(cases.emplace_back(), write_agent(maker, options, mentions, i));
  }
  return cases;
}

}  // namespace

Result<std::vector<DocumentCase>> make_agents(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  return make_all(vocabulary, options, false);
}

Result<std::vector<DocumentCase>> make_agents_with_mentions(const Vocabulary& vocabulary,
                                                            const DocumentCaseOptions& options) {
  return make_all(vocabulary, options, true);
}

}  // namespace ebb
