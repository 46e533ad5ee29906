#include "server/infill_prompt.h"

#include <string>
#include <string_view>

namespace ebb {
namespace {

// Names that nobody gives.
constexpr std::string_view kRepository = "myproject\n";
constexpr std::string_view kThisFile = "filename\n";
constexpr std::string_view kOtherFile = "tmp";
constexpr std::string_view kParting = "\n\n--- snippet ---\n\n";

// The prompt as it grows.
class Filling {
 public:
  explicit Filling(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  void mark(std::optional<Token> token) { tokens_.push_back(*token); }
  void say(std::string_view text) {
    Result<std::vector<Token>> more = vocabulary_.tokenize(text, {.add_bos = false});
    if (!more.ok() && status_.ok()) status_ = more.status();
    if (more.ok()) tokens_.insert(tokens_.end(), more->begin(), more->end());
  }
  Result<std::vector<Token>> take() {
    EBB_RETURN_IF_ERROR(status_);
    return std::move(tokens_);
  }

 private:
  const Vocabulary& vocabulary_;
  std::vector<Token> tokens_;
  Status status_;
};

}  // namespace

Status check_fill_tokens(const FillTokens& marks) {
  std::string missing;
  if (!marks.prefix) missing += " prefix token is missing.";
  if (!marks.suffix) missing += " suffix token is missing.";
  if (!marks.middle) missing += " middle token is missing.";
  if (missing.empty()) return {};
  return error(Code::kUnsupported,
               "Infill is not supported by this model:{} Ask a model that was trained to fill in, or "
               "POST /completion",
               missing);
}

Result<std::vector<Token>> infill_prompt(const Vocabulary& vocabulary, const FillTokens& marks, const Json& body) {
  JsonFields fields(body);
  const std::string prefix = fields.needed_text("input_prefix");
  const std::string suffix = fields.needed_text("input_suffix");
  const std::string prompt = fields.text("prompt");
  Filling filling(vocabulary);
  if (vocabulary.adds_bos()) filling.mark(vocabulary.bos());
  if (marks.repository) {
    filling.mark(marks.repository);
    filling.say(kRepository);
  }
  for (JsonFields& other : fields.objects("input_extra")) {
    const std::string name = other.text("filename", std::string(kOtherFile));
    if (marks.file) filling.mark(marks.file);
    filling.say(marks.file ? name + "\n" : std::string(kParting));
    filling.say(other.needed_text("text"));
  }
  EBB_RETURN_IF_ERROR(fields.status());
  if (marks.file) {
    filling.mark(marks.file);
    filling.say(kThisFile);
  }
  filling.mark(marks.prefix);
  filling.say(prefix);
  filling.say(prompt);
  filling.mark(marks.suffix);
  filling.say(suffix);
  filling.mark(marks.middle);
  return filling.take();
}

}  // namespace ebb
