#include "bench/recall_writer.h"

#include <algorithm>

namespace ebb {
namespace {

constexpr std::string_view kRead = "Read this:";
constexpr std::string_view kReadReply = "I have read it.";
constexpr std::string_view kToldReply = "Noted.";
constexpr std::string_view kBundledPairs = "Extract the value for the key from this JSON object.\n{";
constexpr std::string_view kEnglishPairs =
    "These are the keys and values of a JSON object. I will ask for some later.\n{";
// Subjects tried until one has a twin.
constexpr int kTwinTries = 64;
// Lines that did not fit before a context counts as full. Fewer: with long sentences, contexts are shorter than asked for.
constexpr int kLinesTooLong = 24;

std::int32_t default_facts(RecallKind kind) {
  if (kind == RecallKind::kMultiFact) return 8;
  return kind == RecallKind::kTenAtOnce ? 10 : 1;
}

}  // namespace

RecallWriter::RecallWriter(const Vocabulary& vocabulary, const RecallTaskOptions& options,
                           std::span<const std::string> sentences, std::uint64_t seed)
    : vocabulary_(vocabulary),
      options_(options),
      names_(options.split, seed),
      haystack_(options.haystack, sentences, seed ^ 0x686179U),
      random_(seed ^ 0x7461736BU),
      task_{.kind = options.kind,
            .split = options.split,
            .language = options.language,
            .haystack = options.haystack,
            .seed = seed} {
  const std::vector<std::string>& named = options.relations;
  for (const Relation& relation : relations(options.language)) {
    const bool is_named = std::ranges::find(named, relation.name) != named.end();
    if (named.empty() ? !relation.is_hard : is_named) unused_.push_back(&relation);
    frames_ += std::string(relation.name) + " ";
    for (const Wording& wording : relation.wordings) {
      for (const char* statement : wording.statements) frames_ += std::string(statement) + " ";
      for (const char* question : wording.questions) frames_ += std::string(question) + " ";
    }
  }
  for (const std::string_view text : {kRead, kReadReply, kToldReply, kBundledPairs, kEnglishPairs}) frames_ += text;
}

std::optional<std::string> RecallWriter::draw_name(NameKind kind) {
  while (true) {
    std::optional<std::string> name = names_.draw(kind);
    if (!name || find_word(frames_, *name) == std::string::npos) return name;
  }
}

Result<RecallTask> RecallWriter::write(double place) {
  if (options_.kind == RecallKind::kKeyValue) {
    EBB_RETURN_IF_ERROR(write_pairs(place));
    return std::move(task_);
  }
  EBB_RETURN_IF_ERROR(draw_facts(place));
  EBB_RETURN_IF_ERROR(fill());
  lay_out();
  return std::move(task_);
}

Result<std::int32_t> RecallWriter::count(std::string_view text) const {
  EBB_ASSIGN_OR_RETURN(const std::vector<Token> tokens, vocabulary_.tokenize(text, {.add_bos = false}));
  return static_cast<std::int32_t>(tokens.size());
}

Status RecallWriter::draw_facts(double place) {
  const std::int32_t n_facts =
      options_.n_facts > 0 && options_.kind != RecallKind::kNeedle ? options_.n_facts : default_facts(options_.kind);
  const std::int32_t n_asked = options_.kind == RecallKind::kTenAtOnce ? n_facts : 1;
  const Relation* first = nullptr;
  std::vector<Fact> asked;
  for (std::int32_t i = 0; i < n_facts; ++i) {
    // Half of those that are told beside the asked one are of its relation, so that its name alone finds nothing.
    const bool is_like_first = n_asked == 1 && first != nullptr && i % 2 == 1 && !is_closed(first->value);
    const bool is_asked = i < n_asked;
    EBB_ASSIGN_OR_RETURN(const Fact fact,
                         draw_fact(is_like_first ? *first : draw_relation(), is_asked && options_.near_twins));
    if (i == 0) first = fact.relation;
    const double at = n_asked > 1 ? (i + share()) / n_facts : is_asked ? place : share();
    EBB_RETURN_IF_ERROR(tell(fact, at, is_asked ? i : -1));
    if (!is_asked) continue;
    ask(fact);
    if (options_.near_twins) {
      EBB_ASSIGN_OR_RETURN(const Fact twin, twin_of(fact));
      EBB_RETURN_IF_ERROR(tell(twin, share(), -1));
    }
    EBB_RETURN_IF_ERROR(mention(fact));
  }
  return {};
}

// Closed sets hold few values: a task tells of each relation of theirs once, while there are others; and so of all where they are to
// differ.
const Relation& RecallWriter::draw_relation() {
  const std::size_t i = random_() % unused_.size();
  const Relation& relation = *unused_[i];
  if ((options_.relations_differ || is_closed(relation.value)) && unused_.size() > 1) {
    unused_.erase(unused_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return relation;
}

Result<RecallWriter::Fact> RecallWriter::draw_fact(const Relation& relation, bool with_twin) {
  for (int i = 0; i < kTwinTries; ++i) {
    const std::optional<std::string> subject = draw_name(relation.subject);
    if (!subject) break;
    const std::optional<std::string> twin =
        with_twin ? names_.draw_twin(relation.subject, *subject) : std::optional(std::string());
    if (!twin) continue;
    const std::optional<std::string> value = draw_name(relation.value);
    if (!value) break;
    Fact fact{.relation = &relation, .subject = *subject, .value = *value, .wording = random_() % 2, .twin = *twin};
    fact.statement = one_of(relation.wordings[fact.wording].statements);
    return fact;
  }
  return error(Code::kInvalidArgument, "there are no names left for {}; ask for fewer than {} facts", relation.name,
               options_.n_facts);
}

Result<RecallWriter::Fact> RecallWriter::twin_of(const Fact& fact) {
  Fact twin = fact;
  twin.subject = fact.twin;
  const std::optional<std::string> value = draw_name(fact.relation->value);
  if (!value) return error(Code::kInvalidArgument, "there is no other value for {}", fact.relation->name);
  twin.value = *value;
  return twin;
}

Status RecallWriter::tell(const Fact& fact, double place, std::int32_t question) {
  Line line{.place = place, .question = question};
  line.said.text = fill_sentence(fact.statement, *fact.relation, fact.subject, fact.value);
  EBB_ASSIGN_OR_RETURN(line.n_tokens, count(" " + line.said.text));
  if (options_.haystack == Haystack::kChatter) line.said.reply = kToldReply;
  told_.push_back(std::move(line));
  subjects_.push_back(fact.subject);
  task_.values.push_back(fact.value);
  return {};
}

void RecallWriter::ask(const Fact& fact) {
  // Both are drawn, so that what comes next does not hang on which of them is asked.
  const std::string same =
      fill_sentence(one_of(fact.relation->wordings[fact.wording].questions), *fact.relation, fact.subject);
  const std::string other =
      fill_sentence(one_of(fact.relation->wordings[1 - fact.wording].questions), *fact.relation, fact.subject);
  task_.questions.push_back({.text = options_.paraphrased ? other : same,
                             .answer = fact.value,
                             .relation = fact.relation->name,
                             .fact = told_.back().said.text,
                             .is_paraphrased = options_.paraphrased,
                             .has_twin = options_.near_twins});
}

Status RecallWriter::mention(const Fact& fact) {
  for (std::int32_t i = 0; i < options_.n_mentions; ++i) {
    Line line{.place = share()};
    line.said.text = fill_sentence(one_of(mentions()), *fact.relation, fact.subject);
    EBB_ASSIGN_OR_RETURN(line.n_tokens, count(" " + line.said.text));
    if (options_.haystack == Haystack::kChatter) line.said.reply = kToldReply;
    told_.push_back(std::move(line));
  }
  return {};
}

// Nothing between the facts says a value or names a subject.
bool RecallWriter::is_clean(const HaystackLine& line) const {
  const auto stands = [&](const std::string& word) {
    return find_word(line.text, word) != std::string::npos || find_word(line.reply, word) != std::string::npos;
  };
  return std::ranges::none_of(task_.values, stands) && std::ranges::none_of(subjects_, stands);
}

Status RecallWriter::fill() {
  EBB_ASSIGN_OR_RETURN(const std::int32_t n_read, count(std::string(kRead) + " " + std::string(kReadReply)));
  EBB_ASSIGN_OR_RETURN(const std::int32_t n_noted, count(kToldReply));
  const bool is_chatter = options_.haystack == Haystack::kChatter;
  std::int32_t n_said = 0;
  for (Line& line : told_) {
    if (is_chatter) line.n_tokens += n_noted;
    n_said += line.n_tokens;
  }
  const auto total = [&] { return n_said + (is_chatter ? 0 : n_read * (n_said / options_.message_tokens + 1)); };
  if (total() > options_.n_tokens) {
    return error(Code::kOutOfBudget, "the facts of a task take {} tokens; its context may have {}", total(),
                 options_.n_tokens);
  }
  // A line that is too long for what is left may be followed by a shorter one.
  for (int n_too_long = 0; n_too_long < kLinesTooLong;) {
    Line line{.said = haystack_.next()};
    if (!is_clean(line.said)) continue;
    EBB_ASSIGN_OR_RETURN(line.n_tokens, count(" " + line.said.text));
    if (is_chatter) {
      EBB_ASSIGN_OR_RETURN(const std::int32_t n_reply, count(line.said.reply));
      line.n_tokens += n_reply;
    }
    n_said += line.n_tokens;
    if (total() > options_.n_tokens) {
      n_said -= line.n_tokens;
      ++n_too_long;
      continue;
    }
    between_.push_back(std::move(line));
  }
  return {};
}

void RecallWriter::lay_out() {
  std::ranges::stable_sort(told_, {}, &Line::place);
  double n_between = 0.0;
  for (const Line& line : between_) n_between += line.n_tokens;
  std::vector<Line> lines;
  double n_before = 0.0;
  auto next = told_.begin();
  for (Line& line : between_) {
    while (next != told_.end() && next->place * n_between < n_before + line.n_tokens / 2.0) lines.push_back(*next++);
    n_before += line.n_tokens;
    lines.push_back(std::move(line));
  }
  lines.insert(lines.end(), next, told_.end());
  for (const Line& line : lines) task_.n_tokens += line.n_tokens;

  std::int32_t n_before_line = 0;
  std::int32_t n_of_message = 0;
  for (const Line& line : lines) {
    if (line.question >= 0) {
      task_.questions[static_cast<std::size_t>(line.question)].position =
          static_cast<double>(n_before_line) / task_.n_tokens;
    }
    n_before_line += line.n_tokens;
    if (!line.said.reply.empty()) {
      task_.messages.push_back({.text = line.said.text, .reply = line.said.reply});
      continue;
    }
    if (task_.messages.empty() || n_of_message >= options_.message_tokens) {
      task_.messages.push_back({.text = std::string(kRead), .reply = std::string(kReadReply)});
      n_of_message = 0;
    }
    task_.messages.back().text += " " + line.said.text;
    n_of_message += line.n_tokens;
  }
  // Questions come in an order of their own, not in that of their facts.
  std::vector<RecallQuestion>& questions = task_.questions;
  for (std::size_t i = questions.size(); i > 1; --i) std::swap(questions[i - 1], questions[random_() % i]);
}

// As tables of the bundled model's training look.
Status RecallWriter::write_pairs(double place) {
  const NameKind kind = random_() % 2 == 0 ? NameKind::kHex : NameKind::kWord;
  const bool is_bundled = options_.language == RecallLanguage::kBundled;
  const std::string head(is_bundled ? kBundledPairs : kEnglishPairs);
  std::vector<std::pair<std::string, std::string>> pairs;
  const std::ptrdiff_t n_keys = options_.near_twins ? 2 : 1;  // that come together
  EBB_ASSIGN_OR_RETURN(std::int32_t n_tokens, count(head + "}" + std::string(kReadReply)));
  while (true) {
    std::vector<std::string> keys;
    for (int i = 0; i < kTwinTries && std::ssize(keys) < n_keys; ++i) {
      const std::optional<std::string> key = draw_name(kind);
      if (!key) break;
      keys = {*key};
      if (!options_.near_twins) continue;
      if (const std::optional<std::string> twin = names_.draw_twin(kind, *key)) keys.push_back(*twin);
    }
    if (std::ssize(keys) < n_keys) break;
    std::int32_t n = 0;
    std::vector<std::pair<std::string, std::string>> more;
    for (const std::string& key : keys) {
      more.emplace_back(key, draw_name(kind).value_or(""));
      EBB_ASSIGN_OR_RETURN(const std::int32_t n_pair, count("\"" + key + "\": \"" + more.back().second + "\",\n "));
      n += n_pair;
    }
    if (n_tokens + n > options_.n_tokens || more.back().second.empty()) break;
    n_tokens += n;
    for (auto& pair : more) {
      pairs.insert(pairs.begin() + static_cast<std::ptrdiff_t>(random_() % (pairs.size() + 1)), std::move(pair));
    }
  }
  if (pairs.size() < 2) return error(Code::kOutOfBudget, "{} tokens hold no pairs", options_.n_tokens);
  const std::size_t asked = static_cast<std::size_t>(place * static_cast<double>(pairs.size()));
  std::string text = head;
  RecallQuestion question{.relation = "pair", .is_paraphrased = options_.paraphrased, .has_twin = options_.near_twins};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::string row = "\"" + pairs[i].first + "\": \"" + pairs[i].second + "\"";
    if (i > 0) text += ",\n ";
    task_.values.push_back(pairs[i].second);
    if (i == asked) {
      EBB_ASSIGN_OR_RETURN(const std::int32_t n_before, count(text));
      question.position = static_cast<double>(n_before) / n_tokens;
      question.answer = pairs[i].second;
      question.fact = row;
      const std::string& k = pairs[i].first;
      question.text = options_.paraphrased ? "What does \"" + k + "\" stand for?" : "Key: \"" + k + "\"";
      if (!is_bundled && !options_.paraphrased) question.text = "What is the value of the key \"" + k + "\"?";
    }
    text += row;
  }
  task_.n_tokens = n_tokens;
  task_.messages.push_back({.text = text + "}", .reply = std::string(kReadReply)});
  task_.questions.push_back(std::move(question));
  return {};
}

std::string document_of(const RecallTask& task) {
  std::string document;
  for (const RecallMessage& message : task.messages) {
    std::string_view text = message.text;
    if (text.starts_with(kRead)) text.remove_prefix(std::min(text.size(), kRead.size() + 1));
    document += text;
    document += '\n';
  }
  return document;
}

}  // namespace ebb
