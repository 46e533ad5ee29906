// RULER's 13 families (Hsieh et al. 2024, arXiv 2404.06654) in miniature: as many needles and hops as theirs, in documents as long as
// asked for, of names that our other tasks have too.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "bench/document_makers.h"

namespace ebb {
namespace {

constexpr std::int32_t kFewNeedles = 4;
constexpr std::int32_t kVariables = 5;
// Common words, how often each is said, and how often the others are.
constexpr std::int32_t kCommonWords = 10;
constexpr std::int32_t kCommonTimes = 30;
constexpr std::int32_t kUncommonTimes = 3;
constexpr std::int32_t kFrequentWords = 3;
// Of frequent words: the k-th most frequent is said about k^-alpha as often as the first.
constexpr double kAlpha = 2.0;
constexpr std::int32_t kCodedWords = 50;

using Cases = Result<std::vector<DocumentCase>>;

Cases make_each(const Vocabulary& vocabulary, const DocumentCaseOptions& options, std::string_view kind, Haystack own,
                const auto& write) {
  // RULER's essays: a text where there is one.
  if (own == Haystack::kTopics && !options.task.text.empty()) own = Haystack::kText;
  std::vector<DocumentCase> cases;
  for (std::int32_t i = 0; i < options.task.n_tasks; ++i) {
    EBB_ASSIGN_OR_RETURN(DocumentMaker maker, DocumentMaker::create(vocabulary, options, kind, i, own));
    EBB_ASSIGN_OR_RETURN(cases.emplace_back(), write(maker));
  }
  return cases;
}

// --- needles: so many keys, each with so many values ---

struct Needles {
  std::string_view family;
  std::int32_t n_keys = 1;
  std::int32_t n_values = 1;  // of each key
  std::int32_t n_asked = 1;
  NameKind key = NameKind::kWord;
  NameKind value = NameKind::kNumber;
  Haystack haystack = Haystack::kTopics;
  // Nothing else lies between them: as many keys as fit.
  bool fills = false;
};

constexpr std::array kNeedles = {
    Needles{.family = "niah_single_1", .haystack = Haystack::kNoise},
    Needles{.family = "niah_single_2"},
    Needles{.family = "niah_single_3", .value = NameKind::kUuid},
    Needles{.family = "niah_multikey_1", .n_keys = kFewNeedles},
    Needles{.family = "niah_multikey_2", .fills = true},
    Needles{.family = "niah_multikey_3", .key = NameKind::kUuid, .value = NameKind::kUuid, .fills = true},
    Needles{.family = "niah_multivalue", .n_values = kFewNeedles},
    Needles{.family = "niah_multiquery", .n_keys = kFewNeedles, .n_asked = kFewNeedles},
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  }
  return text;
}

Result<DocumentCase> write_needles(DocumentMaker& maker, const Needles& of) {
  const std::string what = of.value == NameKind::kUuid ? "uuid" : "number";
  DocumentProbe probe;
  std::vector<ToldLine> told;
  std::vector<std::string> asked;
  std::vector<std::string> words;
  std::int32_t n_said = 0;
  for (std::int32_t k = 0; of.fills || k < of.n_keys; ++k) {
    EBB_ASSIGN_OR_RETURN(const std::string key, maker.draw(of.key));
    words.push_back(key);
    if (k < of.n_asked) asked.push_back(key);
    for (std::int32_t v = 0; v < of.n_values; ++v) {
      EBB_ASSIGN_OR_RETURN(const std::string value, maker.draw(of.value));
      const bool is_alone = k == 0 && of.n_asked * of.n_values == 1;
      ToldLine line{.text = fmt::format("One of the special magic {}s for {} is: {}.", what, key, value),
                    .place = is_alone ? maker.place() : maker.share()};
      EBB_ASSIGN_OR_RETURN(const std::int32_t n, maker.count(" " + line.text));
      n_said += n;
      words.push_back(value);
      probe.values.push_back(value);
      if (k < of.n_asked) {
        probe.answers.push_back(value);
        probe.facts.push_back(line.text);
      }
      told.push_back(std::move(line));
    }
    if (of.fills && n_said >= maker.n_tokens()) break;
  }
  const bool is_one = probe.answers.size() == 1;
  probe.text = fmt::format("What {} the special magic {}{} for {} in the text?", is_one ? "is" : "are all", what,
                           is_one ? "" : "s", joined(asked));
  DocumentCase one;
  if (of.fills) {
    std::ranges::stable_sort(told, {}, &ToldLine::place);
    for (const ToldLine& line : told) one.text += line.text + "\n";
  } else {
    EBB_ASSIGN_OR_RETURN(one.text, maker.lay_out(std::move(told), words));
  }
  one.probes = {std::move(probe)};
  return one;
}

template <std::size_t kFamily>
Cases make_needles(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  constexpr const Needles& kOf = kNeedles[kFamily];
  return make_each(vocabulary, options, kOf.family, kOf.haystack,
                   [](DocumentMaker& maker) { return write_needles(maker, kOf); });
}

// --- variables that take each other's value ---

Result<DocumentCase> write_variables(DocumentMaker& maker) {
  EBB_ASSIGN_OR_RETURN(const std::string value, maker.draw(NameKind::kNumber));
  DocumentProbe probe{.text = fmt::format("Find all variables that are assigned the value {} in the text.", value)};
  std::vector<ToldLine> told;
  for (std::int32_t i = 0; i < kVariables; ++i) {
    EBB_ASSIGN_OR_RETURN(std::string name, maker.draw(NameKind::kWord));
    std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    const std::string from = i == 0 ? value : "VAR " + probe.answers.back();
    told.push_back({.text = fmt::format("VAR {} = {}.", name, from), .place = (i + maker.share()) / kVariables});
    probe.facts.push_back(told.back().text);
    probe.answers.push_back(std::move(name));
  }
  DocumentCase one;
  EBB_ASSIGN_OR_RETURN(one.text, maker.lay_out(std::move(told), probe.answers));
  one.probes = {std::move(probe)};
  return one;
}

Cases make_variables(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  return make_each(vocabulary, options, "vt", Haystack::kNoise, write_variables);
}

// --- words that are said most often ---

// In any order, each with its number.
std::string numbered(DocumentMaker& maker, std::vector<std::string> words) {
  for (std::size_t i = words.size(); i > 1; --i) std::swap(words[i - 1], words[maker.next() % i]);
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += fmt::format("{}. {} ", i + 1, words[i]);
  text.back() = '\n';
  return text;
}

Result<DocumentCase> write_common_words(DocumentMaker& maker) {
  DocumentProbe probe{.text = "What are the 10 most common words in the list?"};
  std::vector<std::string> words;
  std::int32_t n_said = 0;
  for (std::int32_t i = 0; i < kCommonWords || n_said < maker.n_tokens(); ++i) {
    EBB_ASSIGN_OR_RETURN(const std::string word, maker.draw(NameKind::kWord));
    const bool is_common = i < kCommonWords;
    // A line's number takes some tokens too.
    EBB_ASSIGN_OR_RETURN(const std::int32_t n, maker.count(fmt::format("{}. {} ", 1000, word)));
    const std::int32_t n_times = is_common ? kCommonTimes : kUncommonTimes;
    n_said += n * n_times;
    words.insert(words.end(), static_cast<std::size_t>(n_times), word);
    if (is_common) probe.answers.push_back(word);
  }
  return DocumentCase{.text = numbered(maker, std::move(words)), .probes = {std::move(probe)}};
}

Cases make_common_words(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  return make_each(vocabulary, options, "cwe", Haystack::kNoise, write_common_words);
}

Result<DocumentCase> write_frequent_words(DocumentMaker& maker) {
  DocumentProbe probe{.text = "What are the three most frequently appeared words in the coded text?"};
  std::vector<std::string> coded;
  std::vector<std::int32_t> n_tokens;
  double n_per_first = 0.0;
  for (std::int32_t k = 0; k < kCodedWords; ++k) {
    EBB_ASSIGN_OR_RETURN(coded.emplace_back(), maker.draw(NameKind::kWord));
    EBB_ASSIGN_OR_RETURN(n_tokens.emplace_back(), maker.count(" " + coded.back()));
    n_per_first += n_tokens.back() * std::pow(k + 1, -kAlpha);
  }
  const double n_first = maker.n_tokens() / n_per_first;
  std::vector<std::string> words;
  for (std::size_t k = 0; k < coded.size(); ++k) {
    const double n = std::max(1.0, std::round(n_first * std::pow(static_cast<double>(k + 1), -kAlpha)));
    words.insert(words.end(), static_cast<std::size_t>(n), coded[k]);
    if (k < kFrequentWords) probe.answers.push_back(coded[k]);
  }
  for (std::size_t i = words.size(); i > 1; --i) std::swap(words[i - 1], words[maker.next() % i]);
  DocumentCase one;
  for (const std::string& word : words) one.text += word + " ";
  one.text.back() = '\n';
  one.probes = {std::move(probe)};
  return one;
}

Cases make_frequent_words(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  return make_each(vocabulary, options, "fwe", Haystack::kNoise, write_frequent_words);
}

// --- questions about one of many documents, and about two ---

Result<DocumentCase> write_questions(DocumentMaker& maker, bool is_of_two) {
  DocumentProbe probe;
  std::vector<std::string> pages;
  std::vector<std::string> words;
  std::int32_t n_said = 0;
  const auto add_page = [&](const std::string& fact) -> Status {
    std::string page;
    for (int i = 0; i < 4; ++i) page += (i == 2 ? fact : maker.line(words)) + " ";
    EBB_ASSIGN_OR_RETURN(const std::int32_t n, maker.count(page));
    n_said += n + 4;
    pages.push_back(std::move(page));
    return {};
  };
  for (bool is_first = true; is_first || n_said < maker.n_tokens(); is_first = false) {
    const Result<std::string> drawn = maker.draw(NameKind::kThing);
    if (is_first) EBB_RETURN_IF_ERROR(drawn.status());
    // Of a split there are so many things: the pages of a longer text that are left over tell nothing.
    if (!drawn.ok()) {
      EBB_RETURN_IF_ERROR(add_page(maker.line(words)));
      continue;
    }
    const std::string& thing = *drawn;
    EBB_ASSIGN_OR_RETURN(const std::string owner, maker.draw(NameKind::kPerson));
    EBB_ASSIGN_OR_RETURN(const std::string town, maker.draw(NameKind::kTown));
    std::vector<std::string> facts = {fmt::format("The owner of {} is {}.", thing, owner)};
    if (is_of_two) facts.push_back(fmt::format("{} lives in {}.", owner, town));
    words.insert(words.end(), {thing, owner, town});
    for (const std::string& fact : facts) EBB_RETURN_IF_ERROR(add_page(fact));
    probe.values.push_back(is_of_two ? town : owner);
    if (!is_first) continue;
    probe.text = is_of_two ? fmt::format("Where does the owner of {} live?", thing)
                           : fmt::format("Who is the owner of {}?", thing);
    probe.answers = {is_of_two ? town : owner};
    probe.facts = facts;
  }
  for (std::size_t i = pages.size(); i > 1; --i) std::swap(pages[i - 1], pages[maker.next() % i]);
  DocumentCase one;
  for (std::size_t i = 0; i < pages.size(); ++i) one.text += fmt::format("Document {}:\n{}\n", i + 1, pages[i]);
  one.probes = {std::move(probe)};
  return one;
}

template <bool kIsOfTwo>
Cases make_questions(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  return make_each(vocabulary, options, kIsOfTwo ? "qa_2" : "qa_1", Haystack::kTopics,
                   [](DocumentMaker& maker) { return write_questions(maker, kIsOfTwo); });
}

template <std::size_t... kFamilies>
std::vector<DocumentKind> all_families(std::index_sequence<kFamilies...> /*families*/) {
  std::vector<DocumentKind> kinds = {
      {.name = kNeedles[kFamilies].family, .family = "ruler", .make = make_needles<kFamilies>}...};
  kinds.push_back({.name = "vt", .family = "ruler", .make = make_variables});
  kinds.push_back({.name = "cwe", .family = "ruler", .make = make_common_words});
  kinds.push_back({.name = "fwe", .family = "ruler", .make = make_frequent_words});
  kinds.push_back({.name = "qa_1", .family = "ruler", .make = make_questions<false>});
  kinds.push_back({.name = "qa_2", .family = "ruler", .make = make_questions<true>});
  return kinds;
}

}  // namespace

std::span<const DocumentKind> ruler_kinds() {
  static const std::vector<DocumentKind> kKinds = all_families(std::make_index_sequence<kNeedles.size()>());
  return kKinds;
}

}  // namespace ebb
