#include "bench/recall_tasks.h"

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "bench/recall_writer.h"

namespace ebb {
namespace {

constexpr std::array<std::string_view, 4> kKinds = {"needle", "multi_fact", "ten_at_once", "key_value"};
constexpr std::array<std::string_view, 2> kSplits = {"tune", "test"};
constexpr std::array<std::string_view, 5> kHaystacks = {"sentences", "chatter", "text", "topics", "noise"};
constexpr std::array<std::string_view, 2> kLanguages = {"bundled", "english"};

template <class T, std::size_t N>
std::optional<T> find_name(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<T>(found - names.begin());
}

Status validate(const RecallTaskOptions& options) {
  if (options.n_tasks < 1 || options.n_tokens < 1 || options.message_tokens < 1 || options.n_facts < 0 ||
      options.n_mentions < 0) {
    return error(Code::kInvalidArgument, "{} tasks of {} tokens in messages of {}, {} facts, {} mentions; give counts",
                 options.n_tasks, options.n_tokens, options.message_tokens, options.n_facts, options.n_mentions);
  }
  for (const std::string& name : options.relations) {
    if (std::ranges::find(relations(options.language), name, &Relation::name) == relations(options.language).end()) {
      return error(Code::kInvalidArgument, "facts of a '{}' are not told in the language '{}'", name,
                   name_of(options.language));
    }
  }
  return {};
}

}  // namespace

std::string_view name_of(RecallKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }
std::string_view name_of(RecallSplit split) { return kSplits[static_cast<std::size_t>(split)]; }
std::string_view name_of(Haystack haystack) { return kHaystacks[static_cast<std::size_t>(haystack)]; }
std::string_view name_of(RecallLanguage language) { return kLanguages[static_cast<std::size_t>(language)]; }
std::optional<RecallKind> find_recall_kind(std::string_view name) { return find_name<RecallKind>(kKinds, name); }
std::optional<RecallSplit> find_recall_split(std::string_view name) { return find_name<RecallSplit>(kSplits, name); }
std::optional<Haystack> find_haystack(std::string_view name) { return find_name<Haystack>(kHaystacks, name); }
std::optional<RecallLanguage> find_recall_language(std::string_view name) {
  return find_name<RecallLanguage>(kLanguages, name);
}

Result<std::vector<RecallTask>> make_recall_tasks(const Vocabulary& vocabulary, const RecallTaskOptions& options) {
  EBB_RETURN_IF_ERROR(validate(options));
  std::vector<std::string> sentences;
  if (options.haystack == Haystack::kText && options.kind != RecallKind::kKeyValue) {
    sentences = split_sentences(options.text, options.split);
    if (sentences.empty()) return error(Code::kInvalidArgument, "the text has no sentences to make haystacks of");
  }
  // Asked facts lie evenly over all tasks, in an order of its own.
  std::vector<std::int32_t> places;
  for (std::int32_t i = 0; i < options.n_tasks; ++i) places.push_back(i);
  std::mt19937_64 random(hash_words({options.seed, 0x706C616365}).low);
  for (std::size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[random() % i]);
  std::vector<RecallTask> tasks;
  for (std::int32_t i = 0; i < options.n_tasks; ++i) {
    const std::uint64_t seed = hash_words({options.seed, static_cast<std::uint64_t>(options.kind),
                                           static_cast<std::uint64_t>(options.split), static_cast<std::uint64_t>(i)})
                                   .low;
    const auto t = static_cast<std::size_t>(i);
    const double place =
        options.places.empty() ? (places[t] + 0.5) / options.n_tasks : options.places[t % options.places.size()];
    RecallWriter writer(vocabulary, options, sentences, seed);
    EBB_ASSIGN_OR_RETURN(tasks.emplace_back(), writer.write(place));
  }
  return tasks;
}

bool says_first(std::string_view reply, std::string_view answer, std::span<const std::string> values) {
  const std::size_t at = find_word(reply, answer);
  if (at == std::string_view::npos) return false;
  return std::ranges::none_of(
      values, [&](const std::string& value) { return value != answer && find_word(reply, value) < at; });
}

bool is_right(std::string_view reply, const RecallTask& task, const RecallQuestion& question) {
  return says_first(reply, question.answer, task.values);
}

}  // namespace ebb
