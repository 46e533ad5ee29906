#include "policy/rare_words.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"

namespace ebb {
namespace {

// BM25's usual constants. A larger k1 lets repetition count for more; a larger b punishes long blocks more.
constexpr double kSaturation = 1.2;
constexpr double kLengthWeight = 0.75;

bool is_word_byte(unsigned char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}

char fold(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Adds a run such as "config_server" whole, and its parts where it has several.
void add_run(std::string_view run, std::vector<std::string>& words) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : run) {
    if (c == '_') {
      if (!part.empty()) parts.push_back(std::move(part));
      part.clear();
    } else {
      part += fold(c);
    }
  }
  if (!part.empty()) parts.push_back(std::move(part));
  if (parts.size() > 1) {
    std::string whole;
    for (const char c : run) whole += fold(c);
    words.push_back(std::move(whole));
  }
  for (std::string& p : parts) words.push_back(std::move(p));
}

}  // namespace

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::size_t i = 0;
  while (i < text.size()) {
    std::size_t end = i;
    while (end < text.size() && (is_word_byte(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
    if (end > i) add_run(text.substr(i, end - i), words);
    i = std::max(end, i + 1);
  }
  return words;
}

void WordIndex::add(BlockIndex block, std::string_view text) {
  EBB_CHECK(!contains(block), "block {} indexed twice", block.value());
  Document document{.block = block};
  for (std::string& word : split_words(text)) {
    ++document.n_words;
    ++document.counts[std::move(word)];
  }
  for (const auto& [word, count] : document.counts) ++n_documents_with_[word];
  n_words_ += document.n_words;
  documents_.push_back(std::move(document));
}

bool WordIndex::contains(BlockIndex block) const {
  return std::any_of(documents_.begin(), documents_.end(), [&](const Document& d) { return d.block == block; });
}

std::vector<Scored> WordIndex::rank(std::string_view question) const {
  const std::vector<std::string> words = split_words(question);
  const std::set<std::string> distinct(words.begin(), words.end());
  const auto n = static_cast<double>(documents_.size());
  const double mean_words = std::max(1.0, static_cast<double>(n_words_) / std::max(1.0, n));

  std::vector<Scored> ranked;
  for (const Document& document : documents_) {
    double score = 0.0;
    for (const std::string& word : distinct) {
      const auto count = document.counts.find(word);
      if (count == document.counts.end()) continue;
      const double n_with = n_documents_with_.at(word);
      // A word of every block tells none apart; the first block of a session is alone and is told apart by any.
      if (n_with == n && n > 1) continue;
      const double idf = std::log(1.0 + (n - n_with + 0.5) / (n_with + 0.5));
      const double f = count->second;
      const double norm = 1.0 - kLengthWeight + kLengthWeight * document.n_words / mean_words;
      score += idf * f * (kSaturation + 1.0) / (f + kSaturation * norm);
    }
    if (score > 0.0) ranked.push_back({document.block, score});
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score > b.score : a.block > b.block;
  });
  return ranked;
}

}  // namespace ebb
