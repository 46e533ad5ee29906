#include "session/block_meanings.h"

#include <algorithm>
#include <utility>

#include "base/to_size.h"

namespace ebb {
namespace {

// Tokens before a block in which the sentence that its begin cuts is looked for. More: each block's text takes longer to read. Less: long
// sentences that a border cuts are in no vector whole.
constexpr std::int32_t kTokensBefore = 48;

}  // namespace

void BlockMeanings::begin(std::span<const Cue> cues) {
  if (!is_there()) return;
  wait_.reset();
  std::map<std::string, std::shared_ptr<Meaning>> asked;
  for (const Cue& cue : cues) {
    std::string text = wanted_text(cue);
    const auto known = cues_.find(text);
    std::shared_ptr<Meaning> meaning = known != cues_.end() ? known->second : deps_.source->ask_now(text);
    asked.emplace(std::move(text), std::move(meaning));
  }
  cues_ = std::move(asked);
  has_begun_ = true;
  for (std::int32_t b = 0; b < deps_.hot.n_blocks(); ++b) ask(BlockIndex(b));
}

void BlockMeanings::note_full(BlockIndex block) {
  if (has_begun_) ask(block);
}

// One whose text cannot be told is found by nothing.
void BlockMeanings::ask(BlockIndex block) {
  if (!deps_.hot.is_full(block)) return;
  if (std::ssize(blocks_) <= block.value()) blocks_.resize(block.index() + 1);
  if (blocks_[block.index()] != nullptr) return;
  const Span span = deps_.hot.span(block);
  const Position from(std::max(0, span.begin.value() - kTokensBefore));
  const auto tokens = deps_.hot.tokens().subspan(from.index(), to_size(span.end - from));
  const Result<std::string> head =
      deps_.vocabulary.detokenize(tokens.first(to_size(span.begin - from)), SpecialTokens::kHide);
  const Result<std::string> text = deps_.vocabulary.detokenize(tokens, SpecialTokens::kHide);
  if (!head.ok() || !text.ok()) return;
  const std::size_t own_begin = text->starts_with(*head) ? head->size() : 0;
  blocks_[block.index()] = deps_.source->ask_behind(deps_.hot.exact_name(block), split_passages(*text, own_begin));
}

void BlockMeanings::forget_from(BlockIndex first) {
  if (first.index() < blocks_.size()) blocks_.resize(first.index());
}

bool BlockMeanings::is_ready(std::span<const double> missing, double most_ms) {
  if (!is_there() || cues_.empty()) return true;
  if (wait_ != nullptr) return wait_->is_ready();
  // Those for which there was no room in the queue, too.
  for (std::int32_t b = 0; b < deps_.hot.n_blocks(); ++b) ask(BlockIndex(b));
  std::vector<std::shared_ptr<Meaning>> wanted;
  for (const auto& [text, meaning] : cues_) wanted.push_back(meaning);
  const std::size_t n_cues = wanted.size();
  // The latest cold ones first. Hot ones are asked only whether they stay, which is worth no waiting.
  for (std::size_t b = std::min(blocks_.size(), missing.size()); b-- > 0;) {
    if (blocks_[b] != nullptr && missing[b] > 0.0) wanted.push_back(blocks_[b]);
  }
  if (wanted.size() == n_cues) return true;
  wait_ = deps_.source->await(std::move(wanted), most_ms, deps_.notify);
  return wait_->is_ready();
}

void BlockMeanings::wait() {
  if (wait_ != nullptr) wait_->wait();
}

std::vector<CueLikeness> BlockMeanings::rank(std::span<const Cue> cues) const {
  std::vector<CueLikeness> all;
  for (const Cue& cue : cues) {
    const auto found = cues_.find(wanted_text(cue));
    const bool is_known = found != cues_.end() && found->second->is_done() && found->second->vectors().size() > 0;
    all.push_back(is_known ? rank(cue, *found->second) : CueLikeness{.weight = cue.weight, .blocks = {}});
  }
  return all;
}

CueLikeness BlockMeanings::rank(const Cue& cue, const Meaning& meaning) const {
  constexpr double kNone = -2.0;
  std::vector<double> cosines(blocks_.size(), kNone);
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b] == nullptr || !blocks_[b]->is_done()) continue;
    const MeaningVectors& vectors = blocks_[b]->vectors();
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      const double cosine = vectors.cosine(i, meaning.vectors(), 0);
      cosines[b] = std::max(cosines[b], cosine);
      // What a border cuts stands in both.
      if (i == 0 && b > 0 && blocks_[b]->begins_before()) cosines[b - 1] = std::max(cosines[b - 1], cosine);
    }
  }
  CueLikeness likeness{.weight = cue.weight, .blocks = {}};
  for (std::size_t b = 0; b < cosines.size(); ++b) {
    if (cosines[b] == kNone) continue;
    likeness.blocks.push_back({.block = BlockIndex(static_cast<std::int32_t>(b)), .cosine = cosines[b]});
  }
  return likeness;
}

std::int32_t BlockMeanings::n_known() const {
  return static_cast<std::int32_t>(std::ranges::count_if(blocks_, [](const std::shared_ptr<Meaning>& meaning) {
    return meaning != nullptr && meaning->is_done() && meaning->vectors().size() > 0;
  }));
}

}  // namespace ebb
