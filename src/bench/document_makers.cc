#include "bench/document_makers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/hash.h"
#include "bench/json_lines.h"

namespace ebb {
namespace {

// Lines of reading matter until a new one begins: as prose has it.
constexpr std::size_t kParagraphLines = 6;
// Tokens before what is asked for from far away. Fewer: it lies in the first block, which stays hot.
constexpr std::int32_t kTokensBeforeFar = 256;
// Lost-in-the-middle's.
constexpr std::int32_t kPairCounts[] = {75, 140};
constexpr std::size_t kMostRecordedPairs = std::size_t{1} << 16;

}  // namespace

DocumentMaker::DocumentMaker(const Vocabulary& vocabulary, const DocumentCaseOptions& options, Haystack haystack,
                             std::vector<std::string> sentences, std::uint64_t seed)
    : vocabulary_(&vocabulary),
      options_(&options),
      sentences_(std::move(sentences)),
      haystack_(haystack, sentences_, seed ^ 0x686179U),
      names_(options.task.split, seed),
      random_(seed ^ 0x646F63U) {}

Result<DocumentMaker> DocumentMaker::create(const Vocabulary& vocabulary, const DocumentCaseOptions& options,
                                            std::string_view kind, std::int32_t index, Haystack own) {
  const RecallTaskOptions& task = options.task;
  if (task.n_tasks < 1 || task.n_tokens < 1) {
    return error(Code::kInvalidArgument, "{} documents of {} tokens; give counts", task.n_tasks, task.n_tokens);
  }
  const Haystack haystack = options.haystack.value_or(own);
  std::vector<std::string> sentences;
  if (haystack == Haystack::kText) {
    sentences = split_sentences(task.text, task.split);
    if (sentences.empty()) return error(Code::kInvalidArgument, "the text has no sentences to make haystacks of");
  }
  const std::uint64_t seed =
      hash_words({task.seed, static_cast<std::uint64_t>(task.split), static_cast<std::uint64_t>(index),
                  hash_bytes(std::as_bytes(std::span(kind))).low})
          .low;
  DocumentMaker maker(vocabulary, options, haystack, std::move(sentences), seed);
  // Steps of the golden ratio fill any number of cases evenly, in no order.
  double whole = 0.0;
  maker.place_ = std::modf(0.5 + index * 0.6180339887498949, &whole);
  return maker;
}

Result<std::string> DocumentMaker::draw(NameKind kind) {
  const std::optional<std::string> name = names_.draw(kind);
  if (!name) return error(Code::kInvalidArgument, "there are no names left; ask for shorter documents");
  return *name;
}

Result<std::int32_t> DocumentMaker::count(std::string_view text) const {
  EBB_ASSIGN_OR_RETURN(const std::vector<Token> tokens, vocabulary_->tokenize(text, {.add_bos = false}));
  return static_cast<std::int32_t>(tokens.size());
}

std::string DocumentMaker::line(std::span<const std::string> words) {
  while (true) {
    HaystackLine line = haystack_.next();
    if (!line.reply.empty()) line.text += " " + line.reply;
    if (std::ranges::none_of(words,
                             [&](const auto& word) { return find_word(line.text, word) != std::string::npos; })) {
      return line.text;
    }
  }
}

Result<std::string> DocumentMaker::lay_out(std::vector<ToldLine> told, std::span<const std::string> words) {
  std::int32_t n_said = 0;
  for (const ToldLine& line : told) {
    EBB_ASSIGN_OR_RETURN(const std::int32_t n, count(" " + line.text));
    n_said += n;
  }
  if (n_said > n_tokens()) {
    return error(Code::kOutOfBudget, "what is to be told takes {} tokens; the document may have {}", n_said,
                 n_tokens());
  }
  std::vector<std::string> between;
  while (n_said < n_tokens()) {
    between.push_back(line(words));
    EBB_ASSIGN_OR_RETURN(const std::int32_t n, count(" " + between.back()));
    n_said += n;
  }
  std::ranges::stable_sort(told, {}, &ToldLine::place);
  std::string text;
  auto next = told.begin();
  for (std::size_t i = 0; i <= between.size(); ++i) {
    const double here = static_cast<double>(i) / static_cast<double>(std::max<std::size_t>(1, between.size()));
    while (next != told.end() && (next->place <= here || i == between.size())) text += next++->text + " ";
    if (i == between.size()) break;
    text += between[i];
    text += (i + 1) % kParagraphLines == 0 ? '\n' : ' ';
  }
  text.back() = '\n';
  return text;
}

namespace {

Result<DocumentCase> write_passkey(DocumentMaker& maker, const std::string& key, double place) {
  DocumentProbe probe{.text = "What is the pass key?", .answers = {key}};
  const std::string fact = fmt::format("The pass key is {}. Remember it. {} is the pass key.", key, key);
  probe.facts = {fact};
  DocumentCase one;
  EBB_ASSIGN_OR_RETURN(one.text, maker.lay_out({{.text = fact, .place = place}}, probe.answers));
  one.probes = {std::move(probe)};
  return one;
}

}  // namespace

Result<std::vector<DocumentCase>> make_passkeys(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  std::vector<DocumentCase> cases;
  for (std::int32_t i = 0; i < options.task.n_tasks; ++i) {
    EBB_ASSIGN_OR_RETURN(DocumentMaker maker,
                         DocumentMaker::create(vocabulary, options, "passkey", i, Haystack::kNoise));
    const std::string key = std::to_string(10000 + maker.next() % 90000);
    EBB_ASSIGN_OR_RETURN(cases.emplace_back(), write_passkey(maker, key, maker.place()));
  }
  return cases;
}

Result<std::vector<DocumentCase>> make_far_passkeys(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  std::vector<DocumentCase> cases;
  for (std::int32_t i = 0; i < options.task.n_tasks; ++i) {
    EBB_ASSIGN_OR_RETURN(DocumentMaker maker,
                         DocumentMaker::create(vocabulary, options, "distance_passkey", i, Haystack::kNoise));
    const std::string key = std::to_string(100000 + maker.next() % 900000);
    const double place = std::min(0.25, static_cast<double>(kTokensBeforeFar) / maker.n_tokens());
    EBB_ASSIGN_OR_RETURN(cases.emplace_back(), write_passkey(maker, key, place));
  }
  return cases;
}

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

DocumentCase case_of_pairs(const Pairs& pairs, std::size_t asked, RecallLanguage language) {
  const bool is_bundled = language == RecallLanguage::kBundled;
  DocumentCase one{.text = "Extract the value for the key from this JSON object.\n{"};
  DocumentProbe probe{.group = fmt::format("{} keys", pairs.size())};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::string row = fmt::format("\"{}\": \"{}\"", pairs[i].first, pairs[i].second);
    one.text += (i > 0 ? ",\n " : "") + row;
    probe.values.push_back(pairs[i].second);
    if (i != asked) continue;
    probe.text =
        fmt::format(fmt::runtime(is_bundled ? "Key: \"{}\"" : "What is the value of the key \"{}\"?"), pairs[i].first);
    probe.answers = {pairs[i].second};
    probe.facts = {row};
  }
  one.text += "}\n";
  one.probes = {std::move(probe)};
  return one;
}

Status take_recorded(JsonFields& line, const DocumentCaseOptions& options, std::vector<DocumentCase>& cases) {
  const std::string key = line.needed_text("key");
  const Json* const records = line.find("ordered_kv_records");
  if (records == nullptr || !records->is_array() || records->size() > kMostRecordedPairs) {
    return error(Code::kInvalidArgument, "Field 'ordered_kv_records': must be an array of pairs");
  }
  Pairs pairs;
  std::size_t asked = records->size();
  for (const Json& record : *records) {
    if (!record.is_array() || record.size() != 2 || !record[0].is_string() || !record[1].is_string()) {
      return error(Code::kInvalidArgument, "Field 'ordered_kv_records': a record is no pair of strings");
    }
    if (record[0] == key) asked = pairs.size();
    pairs.emplace_back(record[0].get<std::string>(), record[1].get<std::string>());
  }
  if (asked == records->size()) {
    return error(Code::kInvalidArgument, "Field 'key': '{}' is none of the record's keys", key);
  }
  if (std::ssize(cases) < options.task.n_tasks) cases.push_back(case_of_pairs(pairs, asked, options.task.language));
  return {};
}

}  // namespace

Result<std::vector<DocumentCase>> make_kvret(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  std::vector<DocumentCase> cases;
  if (!options.pairs.empty()) {
    EBB_RETURN_IF_ERROR(
        read_json_lines(options.pairs, [&](JsonFields& line) { return take_recorded(line, options, cases); }));
    return cases;
  }
  for (const std::int32_t n_pairs : kPairCounts) {
    for (std::int32_t i = 0; i < options.task.n_tasks; ++i) {
      EBB_ASSIGN_OR_RETURN(
          DocumentMaker maker,
          DocumentMaker::create(vocabulary, options, fmt::format("kvret{}", n_pairs), i, Haystack::kNoise));
      Pairs pairs;
      for (std::int32_t p = 0; p < n_pairs; ++p) {
        EBB_ASSIGN_OR_RETURN(const std::string key, maker.draw(NameKind::kUuid));
        EBB_ASSIGN_OR_RETURN(const std::string value, maker.draw(NameKind::kUuid));
        pairs.emplace_back(key, value);
      }
      const auto asked = static_cast<std::size_t>(maker.place() * n_pairs);
      cases.push_back(case_of_pairs(pairs, asked, options.task.language));
    }
  }
  return cases;
}

}  // namespace ebb
