#include "bench/edit_cases.h"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "bench/api_client.h"
#include "bench/document_makers.h"

namespace ebb {
namespace {

constexpr std::int32_t kFewestMessages = 6;
constexpr std::int32_t kSummedUp = 3;
constexpr std::string_view kSystem = "You remember what you are told.";
constexpr std::string_view kNoted = "Noted.";
constexpr std::string_view kClearedText = "[Old tool result content cleared]";

// What the edit changes, as a sentence before and after it, and how it is asked for.
struct Matter {
  std::string before;
  std::string after;
  EditProbe probe;
  std::string handed_on;           // what a later message says of it; may be empty
  std::vector<std::string> words;  // that stand nowhere else
};

class EditWriter {
 public:
  EditWriter(DocumentMaker& maker, const EditCaseOptions& options, EditKind kind, std::int32_t index)
      : maker_(maker), options_(options), tells_variable_(index % 2 == 1 && kind != EditKind::kCleared) {
    made_.kind = kind;
    made_.n_tokens = options.n_tokens;
    for (const Relation& relation : relations(options.language)) {
      if (!relation.is_hard) relations_.push_back(&relation);
    }
  }

  Result<EditCase> write() {
    n_messages_ = options_.n_tokens / options_.message_tokens;
    if (n_messages_ < kFewestMessages) {
      return error(Code::kInvalidArgument, "a history of {} tokens has {} messages of {}; an edit needs {}",
                   options_.n_tokens, n_messages_, options_.message_tokens, kFewestMessages);
    }
    EBB_ASSIGN_OR_RETURN(const Matter matter, tells_variable_ ? draw_variable() : draw_fact());
    words_ = matter.words;
    // Behind the edit there is a message that it leaves alone.
    const std::int32_t n_places = n_messages_ - n_edited();
    at_ = std::min(n_places - 1, static_cast<std::int32_t>(maker_.place() * n_places));
    EBB_RETURN_IF_ERROR(write_files(matter));
    edit(matter);
    made_.before = chat(before_, "Go on.");
    made_.after = chat(after_, "");
    made_.probes.insert(made_.probes.begin(), matter.probe);
    return std::move(made_);
  }

 private:
  struct Said {
    std::string text;
    std::string reply{kNoted};
  };
  struct Conversation {
    std::string system{kSystem};
    std::vector<Said> said;
  };

  [[nodiscard]] std::int32_t n_edited() const { return made_.kind == EditKind::kSummary ? kSummedUp : 1; }
  // A message behind the edit, which leaves it as it is.
  std::int32_t draw_behind() {
    const std::int32_t n_behind = n_messages_ - at_ - n_edited();
    return n_messages_ - 1 - static_cast<std::int32_t>(maker_.next() % static_cast<std::uint64_t>(n_behind));
  }

  // Of a relation that has names left: some kinds have few.
  Result<Matter> draw_fact() {
    while (!relations_.empty()) {
      const auto at = relations_.begin() + static_cast<std::ptrdiff_t>(maker_.next() % relations_.size());
      Result<Matter> fact = draw_fact_of(**at);
      if (fact.ok()) return fact;
      relations_.erase(at);
    }
    return error(Code::kInvalidArgument, "there are no names left for a history of {} messages; ask for shorter ones",
                 n_messages_);
  }

  Result<Matter> draw_fact_of(const Relation& relation) {
    const Wording& wording = relation.wordings[0];
    const char* const statement = wording.statements[maker_.next() % wording.statements.size()];
    const char* const question = wording.questions[maker_.next() % wording.questions.size()];
    EBB_ASSIGN_OR_RETURN(const std::string subject, maker_.draw(relation.subject));
    EBB_ASSIGN_OR_RETURN(const std::string before, maker_.draw(relation.value));
    EBB_ASSIGN_OR_RETURN(const std::string after, maker_.draw(relation.value));
    Matter matter{.before = fill_sentence(statement, relation, subject, before),
                  .after = fill_sentence(statement, relation, subject, after),
                  .probe = {.matter = EditMatter::kFact,
                            .text = fill_sentence(question, relation, subject),
                            .answers = {after},
                            .old_value = before},
                  .words = {subject, before, after}};
    if (made_.kind == EditKind::kCleared) matter.probe.answers.clear();
    return matter;
  }

  Result<Matter> draw_variable() {
    std::vector<std::string> names;
    for (int i = 0; i < 2; ++i) {
      EBB_ASSIGN_OR_RETURN(std::string name, maker_.draw(NameKind::kWord));
      std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
      names.push_back(std::move(name));
    }
    EBB_ASSIGN_OR_RETURN(const std::string before, maker_.draw(NameKind::kNumber));
    EBB_ASSIGN_OR_RETURN(const std::string after, maker_.draw(NameKind::kNumber));
    const std::string ask = fmt::format("Find all variables that are assigned the value {} in the text.", after);
    return Matter{.before = fmt::format("VAR {} = {}.", names[0], before),
                  .after = fmt::format("VAR {} = {}.", names[0], after),
                  .probe = {.matter = EditMatter::kConcluded, .text = ask, .answers = names, .old_value = before},
                  .handed_on = fmt::format("VAR {} = VAR {}.", names[1], names[0]),
                  .words = {names[0], names[1], before, after}};
  }

  // As they are told on both sides of the edit.
  Status write_files(const Matter& matter) {
    const std::int32_t later = draw_behind();
    const std::int32_t asked = draw_behind();
    for (std::int32_t i = 0; i < n_messages_; ++i) {
      EBB_ASSIGN_OR_RETURN(const Matter other, draw_fact());
      std::vector<std::string> told = {other.after};
      if (i == asked) {
        const EditProbe& probe = other.probe;
        made_.probes.push_back(
            {.matter = EditMatter::kBehind, .text = probe.text, .answers = {other.words.back()}, .old_value = ""});
      }
      if (i == later && !matter.handed_on.empty()) told.push_back(matter.handed_on);
      if (i == later && made_.kind == EditKind::kThinking) told.push_back(matter.after);
      EBB_ASSIGN_OR_RETURN(std::string text, lay_out(std::move(told)));
      before_.said.push_back({.text = std::move(text)});
    }
    after_ = before_;
    return {};
  }

  void edit(const Matter& matter) {
    const auto at = static_cast<std::size_t>(at_);
    Said& before = before_.said[at];
    Said& after = after_.said[at];
    const std::size_t place = middle_of(before.text);
    switch (made_.kind) {
      case EditKind::kChanged:
        after.text.insert(place, matter.after + " ");
        before.text.insert(place, matter.before + " ");
        break;
      case EditKind::kCleared:
        before.text.insert(place, matter.before + " ");
        after.text = kClearedText;
        break;
      case EditKind::kThinking: before.reply = fmt::format("I think this: {} {}", matter.before, kNoted); break;
      case EditKind::kReminder:
        before.text += fmt::format("\nReminder: {}", matter.before);
        after_.said.back().text += fmt::format("\nReminder: {}", matter.after);
        break;
      case EditKind::kClock:
        before_.system += fmt::format(" The time is 12:07. {}", matter.before);
        after_.system += fmt::format(" The time is 13:42. {}", matter.after);
        break;
      case EditKind::kSummary:
        before.text.insert(place, matter.before + " ");
        after.text = fmt::format("What was said here, in short: {}", matter.after);
        after_.said.erase(after_.said.begin() + at_ + 1, after_.said.begin() + at_ + kSummedUp);
        break;
    }
  }

  // Between two sentences, about where the case wants it.
  std::size_t middle_of(const std::string& text) {
    const auto from = static_cast<std::size_t>(maker_.share() * static_cast<double>(text.size()));
    const std::size_t end = text.find(". ", from);
    return end == std::string::npos ? 0 : end + 2;
  }

  // The sentences among others, as many tokens as a message has.
  Result<std::string> lay_out(std::vector<std::string> told) {
    std::vector<std::string> lines;
    for (std::int32_t n_said = 0; n_said < options_.message_tokens;) {
      lines.push_back(maker_.line(words_));
      EBB_ASSIGN_OR_RETURN(const std::int32_t n, maker_.count(" " + lines.back()));
      n_said += n;
    }
    for (std::string& sentence : told) {
      const auto place = static_cast<std::ptrdiff_t>(maker_.next() % (lines.size() + 1));
      lines.insert(lines.begin() + place, std::move(sentence));
    }
    return fmt::format("{}", fmt::join(lines, " "));
  }

  static Json chat(const Conversation& conversation, std::string_view last) {
    Json messages = Json::array({make_message("system", conversation.system)});
    for (const Said& said : conversation.said) {
      messages.push_back(make_message("user", said.text));
      messages.push_back(make_message("assistant", said.reply));
    }
    if (!last.empty()) messages.push_back(make_message("user", last));
    return messages;
  }

  DocumentMaker& maker_;
  const EditCaseOptions& options_;
  bool tells_variable_;
  std::vector<const Relation*> relations_;
  std::int32_t n_messages_ = 0;
  std::int32_t at_ = 0;  // the message of the edit
  std::vector<std::string> words_;
  Conversation before_;
  Conversation after_;
  EditCase made_;
};

}  // namespace

std::string_view name_of(EditKind kind) {
  switch (kind) {
    case EditKind::kChanged: return "changed";
    case EditKind::kCleared: return "cleared";
    case EditKind::kThinking: return "thinking";
    case EditKind::kReminder: return "reminder";
    case EditKind::kClock: return "clock";
    case EditKind::kSummary: break;
  }
  return "summary";
}

std::string_view name_of(EditMatter matter) {
  switch (matter) {
    case EditMatter::kFact: return "fact";
    case EditMatter::kConcluded: return "concluded";
    case EditMatter::kBehind: break;
  }
  return "behind";
}

Result<std::vector<EditCase>> make_edit_cases(const Vocabulary& vocabulary, const EditCaseOptions& options,
                                              EditKind kind) {
  const DocumentCaseOptions of_maker{.task = {.split = options.split,
                                              .language = options.language,
                                              .n_tasks = options.n_cases,
                                              .n_tokens = options.n_tokens,
                                              .seed = options.seed}};
  std::vector<EditCase> cases;
  for (std::int32_t i = 0; i < options.n_cases; ++i) {
    EBB_ASSIGN_OR_RETURN(DocumentMaker maker,
                         DocumentMaker::create(vocabulary, of_maker, name_of(kind), i, Haystack::kSentences));
    EBB_ASSIGN_OR_RETURN(cases.emplace_back(), EditWriter(maker, options, kind, i).write());
  }
  return cases;
}

EditReply judge(const EditProbe& probe, std::string_view reply) {
  const auto is_said = [&](const std::string& word) { return find_word(reply, word) != std::string::npos; };
  const bool is_old_said = !probe.old_value.empty() && is_said(probe.old_value);
  const bool says_all = std::ranges::all_of(probe.answers, is_said);
  if (says_all && !is_old_said) return EditReply::kRight;
  // What has the new value by itself stands in new text: who leaves that out alone is wrong, and of nothing old.
  const bool misses_conclusion = probe.matter == EditMatter::kConcluded && !is_said(probe.answers.back());
  return is_old_said || misses_conclusion ? EditReply::kStale : EditReply::kWrong;
}

}  // namespace ebb
