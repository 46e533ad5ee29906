// The selector by words (policy/select.h says how it chooses).
#include <algorithm>
#include <map>

#include "policy/resident_gate.h"

namespace ebb {
namespace {

constexpr Parameter kOfLexical[] = {
    {.name = "writing",
     .value = 1,
     .least = 0,
     .most = 1,
     .is_whole = true,
     .summary = "1: while the reply is written, its sentence is looked for when it has said a rare word; 0: not"},
    kGate};

class Lexical final : public Selector {
 public:
  explicit Lexical(bool reads_reply) : reads_reply_(reads_reply) {}

  [[nodiscard]] std::string_view name() const override { return "lexical"; }
  [[nodiscard]] SelectorAsk asks() const override { return {.words = true, .reply_words = reads_reply_}; }
  [[nodiscard]] std::vector<Considered> select(const RecallEvidence& evidence) const override {
    std::map<BlockIndex, double> scores;
    for (const CueRanking& cue : evidence.words) {
      for (const Scored& scored : cue.ranked) {
        double& most = scores[scored.block];
        most = std::max(most, cue.weight * scored.score);
      }
    }
    std::vector<Considered> all;
    double least = 0.0;
    for (const Chosen& chosen :
         select_for_cues(evidence.words, evidence.missing, evidence.max_blocks, evidence.reach)) {
      // One that came for its neighbour's sake may have no word itself.
      const auto found = scores.find(chosen.block);
      const bool is_scored = found != scores.end();
      all.push_back({.block = chosen.block,
                     .score = is_scored ? found->second : 0.0,
                     .verdict = chosen.is_hot ? Verdict::kKeep : Verdict::kRecall});
      if (!is_scored) continue;
      least = least == 0.0 ? found->second : std::min(least, found->second);
      scores.erase(found);
    }
    add_rest(scores, evidence.missing, least, all);
    return all;
  }

 private:
  bool reads_reply_;

  // Cold ones that were not chosen: those that score as well as some that were had no place.
  static void add_rest(const std::map<BlockIndex, double>& scores, std::span<const double> missing, double least,
                       std::vector<Considered>& all) {
    std::vector<Considered> rest;
    for (const auto& [block, score] : scores) {
      if (block.value() >= std::ssize(missing) || missing[block.index()] == 0.0) continue;
      const bool is_beyond = least > 0.0 && score >= least;
      rest.push_back({.block = block, .score = score, .verdict = is_beyond ? Verdict::kBeyond : Verdict::kWeak});
    }
    std::ranges::stable_sort(rest, std::greater(), &Considered::score);
    rest.resize(std::min(rest.size(), kMostTold));
    all.insert(all.end(), rest.begin(), rest.end());
  }
};

}  // namespace

const std::span<const Parameter> kLexicalParameters = kOfLexical;

std::unique_ptr<const Selector> make_lexical(const ParameterValues& values) {
  return behind_gate(values, std::make_unique<Lexical>(values.whole("writing") == 1));
}

}  // namespace ebb
