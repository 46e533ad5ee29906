#include "policy/behind_question.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "policy/sentences.h"
#include "policy/words.h"

namespace ebb {
namespace {

// Of a cue its last bytes are looked for: of one that lies across blocks a passage may not have the first.
constexpr std::size_t kEndBytes = 24;

// Behind the cue's end in the block's own text, the sentence that the block's end cuts; nothing where none is.
std::optional<std::string_view> find_cut_sentence(const Passage& passage, std::string_view cue) {
  const std::string_view end_of_cue = cue.substr(cue.size() - std::min(cue.size(), kEndBytes));
  const std::string_view text = passage.text;
  const std::size_t at = text.substr(0, passage.end).rfind(end_of_cue);
  if (at == text.npos || end_of_cue.empty()) return std::nullopt;
  const std::size_t behind = at + end_of_cue.size();
  if (behind <= passage.begin) return std::nullopt;
  std::optional<std::string_view> cut;
  for_each_sentence(text.substr(behind), [&](std::string_view sentence, std::size_t begin) {
    if (behind + begin < passage.end && behind + begin + sentence.size() > passage.end) cut = sentence;
  });
  return cut;
}

bool tells_of(std::string_view sentence, std::string_view cue, const WordIndex& index) {
  const std::vector<std::string> wanted = split_words(cue);
  return std::ranges::any_of(split_words(sentence), [&](const std::string& word) {
    return index.tells(word) && std::ranges::find(wanted, word) != wanted.end();
  });
}

void put_in(const Scored& scored, std::vector<Scored>& ranked) {
  const auto known = std::ranges::find(ranked, scored.block, &Scored::block);
  if (known != ranked.end() && known->score >= scored.score) return;
  if (known != ranked.end()) ranked.erase(known);
  const auto place = std::ranges::find_if(ranked, [&](const Scored& other) { return other.score < scored.score; });
  ranked.insert(place, scored);
}

}  // namespace

void leave_out_questions(std::span<const Cue> cues, std::vector<CueRanking>& found, std::span<const BlockIndex> asking,
                         const BlockTexts& texts) {
  const auto asks = [&](BlockIndex block) { return std::ranges::find(asking, block) != asking.end(); };
  const std::size_t n_leading = leading_cues(cues).size();
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::vector<Scored>& ranked = found[i].ranked;
    std::vector<Scored> next;
    for (const Scored& scored : ranked) {
      const BlockIndex behind(scored.block.value() + 1);
      if (i >= n_leading || !asks(scored.block) || asks(behind)) continue;
      const Passage passage = texts.passage(scored.block);
      const auto cut = find_cut_sentence(passage, bare_text(cues[i]));
      if (cut && tells_of(*cut, cues[i].text, texts.words))
        next.push_back({.block = behind, .score = scored.score, .words = scored.words});
    }
    std::erase_if(ranked, [&](const Scored& scored) { return asks(scored.block); });
    for (const Scored& scored : next) put_in(scored, ranked);
  }
}

}  // namespace ebb
