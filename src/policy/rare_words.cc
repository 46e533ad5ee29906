#include "policy/rare_words.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"
#include "base/split_text.h"
#include "policy/sentences.h"

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

// Blocks that a ranking tells of. More: a choice takes longer. Fewer: of many that share the question's words the one that answers is not
// among them.
constexpr std::size_t kMostRanked = 256;
// A block that has less than this share of the best one's score need not be told. Higher: blocks are missing that another choice may want.
constexpr double kLeastShare = 0.1;

// Bytes up to the first and the last mark that ends a sentence; both 0 where none does.
std::pair<std::size_t, std::size_t> sentence_ends(std::string_view text) {
  std::size_t first = 0;
  std::size_t last = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = sentence_mark_bytes(text, at);
    at += std::max<std::size_t>(n, 1);
    if (n == 0) continue;
    if (first == 0) first = at;
    last = at;
  }
  return {first, last};
}

std::int32_t count_words(std::string_view text) { return static_cast<std::int32_t>(split_words(text).size()); }

double score_of(double rarity, std::int32_t count, std::int32_t n_words, double mean_words) {
  const double norm = 1.0 - kLengthWeight + kLengthWeight * n_words / mean_words;
  return rarity * count * (kSaturation + 1.0) / (count + kSaturation * norm);
}

}  // namespace

void WordIndex::add(BlockIndex block, std::string_view text) {
  EBB_CHECK(!contains(block), "block {} indexed twice", block.value());
  Document document;
  for (std::string& word : split_words(text)) {
    Use& use = document.uses[std::move(word)];
    if (use.count++ == 0) use.first = document.n_words;
    use.last = document.n_words++;
  }
  const auto [first, last] = sentence_ends(text);
  document.n_first = first == 0 ? document.n_words : count_words(text.substr(0, first));
  document.n_ended = last == 0 ? 0 : document.n_words - count_words(text.substr(last));
  document.ends_whole = last > 0 && trimmed(text.substr(last)).empty();
  for (auto& [word, use] : document.uses) {
    std::vector<Posting>& postings = postings_[word];
    use.posting = postings.size();
    postings.push_back({.block = block, .use = use, .n_words = document.n_words});
    ++n_touched_;
  }
  n_words_ += document.n_words;
  documents_.emplace(block, std::move(document));
}

void WordIndex::remove(BlockIndex block) {
  const auto found = documents_.find(block);
  if (found == documents_.end()) return;
  for (const auto& [word, use] : found->second.uses) {
    const auto of_word = postings_.find(word);
    std::vector<Posting>& postings = of_word->second;
    // The last one takes its place.
    if (const Posting& last = postings.back(); last.block != block) {
      documents_.at(last.block).uses.at(word).posting = use.posting;
      postings[use.posting] = last;
      ++n_touched_;
    }
    postings.pop_back();
    ++n_touched_;
    if (postings.empty()) postings_.erase(of_word);
  }
  n_words_ -= found->second.n_words;
  documents_.erase(found);
}

double WordIndex::rarity(const std::string& word) const {
  const auto found = postings_.find(word);
  return found == postings_.end() ? 0.0 : rarity(found->second.size());
}

bool WordIndex::stands_in_few(const std::string& word, std::size_t part) const {
  constexpr std::size_t kFew = 3;
  const auto found = postings_.find(word);
  return found != postings_.end() && found->second.size() <= std::max(kFew, documents_.size() / part);
}

double WordIndex::rarity(std::size_t n_documents_with) const {
  const auto n = static_cast<double>(documents_.size());
  const auto n_with = static_cast<double>(n_documents_with);
  // A word of every block tells none apart; the first block of a session is alone and is told apart by any.
  if (n_with == n && n > 1) return 0.0;
  return std::log(1.0 + (n - n_with + 0.5) / (n_with + 0.5));
}

const WordIndex::Uses* WordIndex::find_words(BlockIndex block) const {
  const auto found = documents_.find(block);
  return found == documents_.end() ? nullptr : &found->second.uses;
}

double WordIndex::mean_words() const {
  return std::max(1.0, static_cast<double>(n_words_) / std::max(1.0, static_cast<double>(documents_.size())));
}

// The rarest first.
std::vector<WordIndex::Term> WordIndex::terms_of(std::string_view question) const {
  const std::vector<std::string> words = split_words(question);
  std::set<std::string> distinct(words.begin(), words.end());
  // What the question says in two words texts may say in one: "golden mill", "goldenmill".
  for (std::size_t w = 1; w < words.size(); ++w) {
    std::string joined = words[w - 1] + words[w];
    if (postings_.contains(joined)) distinct.insert(std::move(joined));
  }
  std::vector<Term> terms;
  std::int32_t place = -1;
  for (const std::string& word : distinct) {
    ++place;
    const auto found = postings_.find(word);
    const double word_rarity = found == postings_.end() ? 0.0 : rarity(found->second.size());
    if (word_rarity == 0.0) continue;
    terms.push_back({.place = place, .rarity = word_rarity, .word = &found->first, .postings = &found->second});
  }
  std::ranges::stable_sort(terms, std::ranges::greater(), &Term::rarity);
  return terms;
}

// Of common words, which by themselves could not bring a block near the best one, only blocks that have a rarer one too are looked
// at (MaxScore: Turtle and Flood 1995).
std::vector<BlockIndex> WordIndex::find_best(const std::vector<Term>& terms) const {
  double n_left = 0.0;
  for (const Term& term : terms) n_left += term.rarity * (kSaturation + 1.0);
  std::vector<double> sums(documents_.empty() ? 0 : documents_.rbegin()->first.index() + 1, 0.0);
  std::vector<BlockIndex> blocks;
  double best = 0.0;
  const double mean = mean_words();
  for (const Term& term : terms) {
    if (n_left < kLeastShare * best) break;
    n_left -= term.rarity * (kSaturation + 1.0);
    for (const Posting& posting : *term.postings) {
      double& sum = sums[posting.block.index()];
      if (sum == 0.0) blocks.push_back(posting.block);
      sum += score_of(term.rarity, posting.use.count, posting.n_words, mean);
      best = std::max(best, sum);
    }
  }
  std::erase_if(blocks, [&](BlockIndex block) { return sums[block.index()] + n_left < kLeastShare * best; });
  if (blocks.size() <= kMostRanked) return blocks;
  const auto comes_before = [&](BlockIndex a, BlockIndex b) {
    return sums[a.index()] != sums[b.index()] ? sums[a.index()] > sums[b.index()] : a > b;
  };
  std::ranges::nth_element(blocks, blocks.begin() + kMostRanked, comes_before);
  blocks.resize(kMostRanked);
  return blocks;
}

Scored WordIndex::score(BlockIndex block, const std::vector<Term>& terms) const {
  const Document& document = documents_.at(block);
  const std::int32_t n_border = std::min(kBorderWords, (document.n_words + 1) / 2);
  const auto before = documents_.find(BlockIndex(block.value() - 1));
  const bool begins_whole = before != documents_.end() && before->second.ends_whole;
  Scored scored{.block = block};
  for (const Term& term : terms) {
    const auto found = document.uses.find(*term.word);
    if (found == document.uses.end()) continue;
    const Use& use = found->second;
    const double score = score_of(term.rarity, use.count, document.n_words, mean_words());
    scored.score += score;
    const bool at_begin = use.first < n_border;
    const bool at_end = use.last >= document.n_words - n_border;
    scored.words.push_back({.word = term.place,
                            .score = score,
                            .at_begin = at_begin,
                            .at_end = at_end,
                            .is_cut_at_begin = !begins_whole && use.first < document.n_first,
                            .is_cut_at_end = use.last >= document.n_ended});
  }
  return scored;
}

std::vector<Scored> WordIndex::rank(std::string_view question) const {
  const std::vector<Term> terms = terms_of(question);
  std::vector<Scored> ranked;
  for (const BlockIndex block : find_best(terms)) ranked.push_back(score(block, terms));
  std::ranges::sort(ranked, [](const Scored& a, const Scored& b) {
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
