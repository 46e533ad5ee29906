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

// Share of the focus that a new message leaves. Larger: the focus is slow to follow; smaller: it forgets the task for a
// passing remark. EVOKE's value.
constexpr double kFocusKept = 0.7;
constexpr double kFocusForgotten = 1e-3;

// Words this close to a block's border speak of what stands beyond it as much as of what stands before it. More: blocks come
// back that say nothing of it. Less: half a sentence does. In a short block each word has one border, the nearer one.
constexpr std::int32_t kBorderWords = 12;

bool is_letter_or_digit(unsigned char c) {
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

bool is_word_byte(char c) { return is_letter_or_digit(static_cast<unsigned char>(c)) || c == '_'; }

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::size_t i = 0;
  while (i < text.size()) {
    std::size_t end = i;
    while (end < text.size() && is_word_byte(text[end])) ++end;
    if (end > i) add_run(text.substr(i, end - i), words);
    i = std::max(end, i + 1);
  }
  return words;
}

void WordIndex::add(BlockIndex block, std::string_view text) {
  EBB_CHECK(!contains(block), "block {} indexed twice", block.value());
  Document document;
  for (std::string& word : split_words(text)) {
    Use& use = document.uses[std::move(word)];
    if (use.count++ == 0) use.first = document.n_words;
    use.last = document.n_words++;
  }
  for (const auto& [word, use] : document.uses) ++n_documents_with_[word];
  n_words_ += document.n_words;
  documents_.emplace(block, std::move(document));
}

void WordIndex::remove(BlockIndex block) {
  const auto found = documents_.find(block);
  if (found == documents_.end()) return;
  for (const auto& [word, use] : found->second.uses) {
    if (--n_documents_with_.at(word) == 0) n_documents_with_.erase(word);
  }
  n_words_ -= found->second.n_words;
  documents_.erase(found);
}

double WordIndex::rarity(const std::string& word) const {
  const auto found = n_documents_with_.find(word);
  if (found == n_documents_with_.end()) return 0.0;
  const auto n = static_cast<double>(documents_.size());
  const double n_with = found->second;
  // A word of every block tells none apart; the first block of a session is alone and is told apart by any.
  if (n_with == n && n > 1) return 0.0;
  return std::log(1.0 + (n - n_with + 0.5) / (n_with + 0.5));
}

const WordIndex::Uses* WordIndex::find_words(BlockIndex block) const {
  const auto found = documents_.find(block);
  return found == documents_.end() ? nullptr : &found->second.uses;
}

std::vector<Scored> WordIndex::rank(std::string_view question) const {
  const std::vector<std::string> words = split_words(question);
  const std::set<std::string> distinct(words.begin(), words.end());
  const double mean_words =
      std::max(1.0, static_cast<double>(n_words_) / std::max(1.0, static_cast<double>(documents_.size())));

  std::vector<Scored> ranked;
  for (const auto& [block, document] : documents_) {
    Scored scored{.block = block};
    const double norm = 1.0 - kLengthWeight + kLengthWeight * document.n_words / mean_words;
    const std::int32_t n_border = std::min(kBorderWords, (document.n_words + 1) / 2);
    std::int32_t n = 0;
    for (const std::string& word : distinct) {
      const std::int32_t place = n++;
      const auto found = document.uses.find(word);
      if (found == document.uses.end()) continue;
      const Use& use = found->second;
      const double score = rarity(word) * use.count * (kSaturation + 1.0) / (use.count + kSaturation * norm);
      if (score == 0.0) continue;
      scored.score += score;
      scored.words.push_back({.word = place,
                              .score = score,
                              .at_begin = use.first < n_border,
                              .at_end = use.last >= document.n_words - n_border});
    }
    if (scored.score > 0.0) ranked.push_back(std::move(scored));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score > b.score : a.block > b.block;
  });
  return ranked;
}

void Focus::hear(std::string_view message) {
  for (auto& [word, weight] : weights_) weight *= kFocusKept;
  for (std::string& word : split_words(message)) weights_[std::move(word)] += 1.0 - kFocusKept;
  std::erase_if(weights_, [](const auto& entry) { return entry.second < kFocusForgotten; });
}

std::optional<double> Focus::similarity(const WordIndex& index, BlockIndex block) const {
  const WordIndex::Uses* const uses = index.find_words(block);
  if (uses == nullptr) return std::nullopt;
  double dot = 0.0;
  double of_block = 0.0;
  double of_focus = 0.0;
  for (const auto& [word, weight] : weights_) {
    const double w = weight * index.rarity(word);
    of_focus += w * w;
    if (const auto use = uses->find(word); use != uses->end()) dot += w * use->second.count * index.rarity(word);
  }
  for (const auto& [word, use] : *uses) {
    const double w = use.count * index.rarity(word);
    of_block += w * w;
  }
  if (of_block == 0.0 || of_focus == 0.0) return std::nullopt;
  return dot / std::sqrt(of_block * of_focus);
}

}  // namespace ebb
