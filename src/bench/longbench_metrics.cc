#include "bench/longbench_metrics.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <vector>

namespace ebb {
namespace {

constexpr std::array<std::string_view, 3> kMetrics = {"qa_f1", "rouge_l", "classification"};

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && !is_space(text[end])) ++end;
    if (end > begin) words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::map<std::string, int> count_plain_words(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::ispunct(byte) == 0) plain += static_cast<char>(std::tolower(byte));
  }
  std::map<std::string, int> counts;
  for (const std::string_view word : split_words(plain)) {
    if (word != "a" && word != "an" && word != "the") ++counts[std::string(word)];
  }
  return counts;
}

int sum_of(const std::map<std::string, int>& counts) {
  int sum = 0;
  for (const auto& [word, n] : counts) sum += n;
  return sum;
}

// --- ROUGE-L ---

using Sentence = std::vector<std::string_view>;
using Words = std::set<std::string_view>;

// A stretch of nothing but white space between full stops is a sentence of one empty word, as the package has it.
std::vector<Sentence> split_at_full_stops(std::string_view text) {
  std::vector<Sentence> sentences;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('.', begin), text.size());
    if (end > begin) {
      Sentence words = split_words(text.substr(begin, end - begin));
      if (words.empty()) words.emplace_back();
      sentences.push_back(std::move(words));
    }
    begin = end + 1;
  }
  return sentences;
}

Words words_of(const std::vector<Sentence>& sentences) {
  Words words;
  for (const Sentence& sentence : sentences) words.insert(sentence.begin(), sentence.end());
  return words;
}

// Those of a longest common subsequence; of several, the one that is found by walking back from both ends and giving up the
// reply's word first.
void add_common_words(const Sentence& answer, const Sentence& reply, Words& common) {
  const std::size_t n_columns = reply.size() + 1;
  std::vector<std::uint32_t> lengths((answer.size() + 1) * n_columns, 0);
  const auto at = [&](std::size_t i, std::size_t j) -> std::uint32_t& { return lengths[i * n_columns + j]; };
  for (std::size_t i = 1; i <= answer.size(); ++i) {
    for (std::size_t j = 1; j <= reply.size(); ++j) {
      at(i, j) = answer[i - 1] == reply[j - 1] ? at(i - 1, j - 1) + 1 : std::max(at(i - 1, j), at(i, j - 1));
    }
  }
  std::size_t i = answer.size();
  std::size_t j = reply.size();
  while (i > 0 && j > 0) {
    if (answer[i - 1] == reply[j - 1]) {
      common.insert(answer[i - 1]);
      --i;
      --j;
    } else if (at(i - 1, j) > at(i, j - 1)) {
      --i;
    } else {
      --j;
    }
  }
}

}  // namespace

std::string_view name_of(LongBenchMetric metric) { return kMetrics[static_cast<std::size_t>(metric)]; }

double qa_f1(std::string_view reply, std::string_view answer) {
  const std::map<std::string, int> said = count_plain_words(reply);
  const std::map<std::string, int> right = count_plain_words(answer);
  int n_common = 0;
  for (const auto& [word, n] : said) {
    const auto found = right.find(word);
    if (found != right.end()) n_common += std::min(n, found->second);
  }
  if (n_common == 0) return 0.0;
  const double precision = static_cast<double>(n_common) / sum_of(said);
  const double recall = static_cast<double>(n_common) / sum_of(right);
  return 2.0 * precision * recall / (precision + recall);
}

double rouge_l(std::string_view reply, std::string_view answer) {
  const std::vector<Sentence> said = split_at_full_stops(reply);
  const std::vector<Sentence> right = split_at_full_stops(answer);
  if (said.empty() || right.empty()) return 0.0;
  Words common;
  for (const Sentence& of_answer : right) {
    for (const Sentence& of_reply : said) add_common_words(of_answer, of_reply, common);
  }
  const auto n_common = static_cast<double>(common.size());
  const double recall = n_common / static_cast<double>(words_of(right).size());
  const double precision = n_common / static_cast<double>(words_of(said).size());
  // The package keeps the sum of nothing in common above 0 so.
  return 2.0 * precision * recall / (precision + recall + 1e-8);
}

double classification(std::string_view reply, std::string_view answer, std::span<const std::string> classes) {
  const auto n_named = std::ranges::count_if(classes, [&](const std::string& name) {
    const bool is_part_of_answer = name != answer && answer.find(name) != std::string_view::npos;
    return reply.find(name) != std::string_view::npos && !is_part_of_answer;
  });
  const bool names_answer =
      reply.find(answer) != std::string_view::npos && std::ranges::find(classes, answer) != classes.end();
  return names_answer ? 1.0 / static_cast<double>(n_named) : 0.0;
}

}  // namespace ebb
