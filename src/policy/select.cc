#include "policy/select.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace ebb {
namespace {

// The least share of the best score that a block must be worth. Lower: blocks come back that share a common word.
// Higher: a fact that is said in two places is half recalled.
constexpr double kWorth = 0.5;
// The share of a block's worth that each of its neighbours has for its sake.
constexpr double kNeighbour = 0.5;
// What each step nearer adds to that, where blocks are so small that several lie within reach.
constexpr double kNearer = 0.01;
// A neighbour that is worth such a share of the other by its own words goes on with it, and what stands beside it is worth as much. Lower: what
// shares a common word brings its neighbours. Higher: of identifiers that a border cuts what stands behind stays away.
constexpr double kGoesOn = 0.2;
// The share that a neighbour has of what words near the border gave. Below 1, so that a block comes before its
// neighbour.
constexpr double kBeyond = 0.9;
// What a neighbour to which no sentence goes on counts beside what has words of its own. Higher: where room is little, what stands beside one fact comes
// before the next one.
constexpr double kAside = 0.5;
// What a word is worth once a chosen block has it, in however many of them. Lower: what is said in several places comes back from one of them.
// Higher: blocks that repeat the question's form take the room of the one that answers it.
constexpr double kRepeated = 0.75;

// The least share of the best cue's best block, hot or not, that another cue's must be worth, each by its weight. Lower: sentences that ask for
// nothing bring back what shares a common word. Higher: of several things asked for, those told in common words stay away.
constexpr double kCueWorth = 0.25;

// What a cue's next choice counts beside the one before it. Lower: what stands in two blocks, with the border in between, comes half where
// messages before it, or sentences beside it, ask for something too. Higher: those find nothing where room is little.
constexpr double kNextTurn = 0.8;

// Blocks of which little is missing take few frames: so many times more of them may come.
constexpr std::int32_t kPartlyHot = 4;

// The candidates of one kind, hot or cold, and what each is worth beside those that were chosen.
class Candidates {
 public:
  Candidates(std::span<const Scored> ranked, std::span<const double> missing, std::int32_t reach, bool hot)
      : ranked_(ranked), missing_(missing), reach_(reach), hot_(hot) {
    for (const Scored& scored : ranked) {
      if (is_candidate(scored.block.value())) {
        scored_.emplace(scored.block, &scored);
      } else {
        // Of what is not to be chosen the nearest alone: it may be there all by itself.
        raise_neighbours(scored, 1, false);
      }
    }
  }

  // Of those that are worth `least` the one that is worth most, ties to the later block; none if no candidate is.
  std::optional<BlockWorth> take(double least) {
    std::optional<BlockWorth> best;
    const auto offer = [&](const BlockWorth& other) {
      if (best && (other.worth < best->worth || (other.worth == best->worth && other.block < best->block))) return;
      best = other;
    };
    for (const auto& [block, beside] : beside_) {
      if (!beside.is_cut && beside.worth < least) continue;
      offer({.block = block,
             .worth = beside.goes_on ? beside.worth : kAside * beside.worth,
             .is_aside = !beside.goes_on});
    }
    // Nothing is worth more than it scored, and the best come first. What it scored is to be enough: that others said the same first puts it
    // behind them, and does not keep it away.
    for (const Scored& scored : ranked_) {
      if (scored.score < std::max(least, best ? best->worth : 0.0)) break;
      if (scored_.contains(scored.block)) offer({.block = scored.block, .worth = worth_of(scored)});
    }
    if (best) choose(best->block, least);
    return best;
  }

 private:
  [[nodiscard]] bool is_candidate(std::int32_t b) const {
    return b >= 0 && b < std::ssize(missing_) && (missing_[static_cast<std::size_t>(b)] == 0.0) == hot_;
  }
  [[nodiscard]] double worth_of(const Scored& scored) const {
    double worth = 0.0;
    for (const WordScore& word : scored.words) worth += word.score * (said_.contains(word.word) ? kRepeated : 1.0);
    return worth;
  }
  void choose(BlockIndex block, double least) {
    const auto node = beside_.extract(block);
    const Beside beside = node.empty() ? Beside{} : node.mapped();
    chosen_.insert(block);
    const auto found = scored_.find(block);
    if (found == scored_.end()) return;
    const Scored& scored = *found->second;
    scored_.erase(found);
    raise_neighbours(scored, reach_, worth_of(scored) >= least);
    if (beside.is_nearest && worth_of(scored) >= kGoesOn * beside.worth / kNeighbour) {
      raise(block.value() + 1, {.worth = beside.worth});
      raise(block.value() - 1, {.worth = beside.worth});
    }
    for (const WordScore& word : scored.words) said_.insert(word.word);
  }

  // By what it scored, which is not less for what was said elsewhere: of several that tell the same, the neighbours of each are worth as much. Behind
  // it so many: what words speak of stands behind them more often than before.
  void raise_neighbours(const Scored& scored, std::int32_t reach, bool comes_whole) {
    Border begin;
    Border end;
    for (const WordScore& word : scored.words) {
      if (word.at_begin) begin.near += word.score;
      if (word.at_end) end.near += word.score;
      if (word.is_cut_at_begin) begin.cut += word.score;
      if (word.is_cut_at_end) end.cut += word.score;
    }
    const auto worth = [&](std::int32_t i) { return kNeighbour * (1.0 + kNearer * (reach - i)) * scored.score; };
    const std::int32_t b = scored.block.value();
    const auto raise_nearest = [&](std::int32_t nearest, const Border& border) {
      const auto is_much = [&](double of_border) { return kBeyond * of_border >= kWorth * scored.score; };
      raise(nearest, {.worth = std::max(worth(1), kBeyond * border.near),
                      .is_nearest = true,
                      .is_cut = comes_whole && (is_much(border.near) || is_much(border.cut)),
                      .goes_on = is_much(border.cut)});
    };
    raise_nearest(b - 1, begin);
    raise_nearest(b + 1, end);
    for (std::int32_t i = 2; i <= reach; ++i) raise(b + i, {.worth = worth(i)});
  }

  // What words near one of a block's borders gave, and those of them whose sentence goes on behind it.
  struct Border {
    double near = 0.0;
    double cut = 0.0;
  };

  // What a block is worth for its neighbour's sake.
  struct Beside {
    double worth = 0.0;
    bool is_nearest = false;
    // The border between them cuts what was chosen: it comes whole, however much better something else was.
    bool is_cut = false;
    // A sentence of what was chosen goes on there.
    bool goes_on = false;
  };

  void raise(std::int32_t b, const Beside& beside) {
    if (!is_candidate(b) || chosen_.contains(BlockIndex(b))) return;
    Beside& most = beside_[BlockIndex(b)];
    const bool is_cut = most.is_cut || beside.is_cut;
    const bool goes_on = most.goes_on || beside.goes_on;
    if (beside.worth > most.worth) most = beside;
    most.is_cut = is_cut;
    most.goes_on = goes_on;
  }

  std::span<const Scored> ranked_;
  std::span<const double> missing_;
  const std::int32_t reach_;
  const bool hot_;
  std::map<BlockIndex, const Scored*> scored_;
  std::map<BlockIndex, Beside> beside_;
  std::set<std::int32_t> said_;  // words of those that were chosen
  std::set<BlockIndex> chosen_;
};

double best_of(std::span<const Scored> ranked, std::span<const double> missing, bool hot) {
  double best = 0.0;
  for (const Scored& scored : ranked) {
    if ((missing[scored.block.index()] == 0.0) == hot) best = std::max(best, scored.score);
  }
  return best;
}

}  // namespace

Selection select_blocks(std::span<const Scored> ranked, std::span<const double> missing, std::int32_t max_blocks,
                        std::int32_t reach, double least) {
  least = std::max(least, kWorth * best_of(ranked, missing, false));
  Selection selection;
  for (const bool hot : {false, true}) {
    Candidates candidates(ranked, missing, reach, hot);
    std::vector<BlockWorth>& chosen = hot ? selection.keep : selection.recall;
    double n_left = max_blocks;
    while (n_left > 0.0 && std::ssize(chosen) < kPartlyHot * max_blocks) {
      const std::optional<BlockWorth> choice = candidates.take(least);
      if (!choice) break;
      n_left -= hot ? 1.0 : missing[choice->block.index()];
      chosen.push_back(*choice);
    }
  }
  return selection;
}

namespace {

std::vector<Chosen> all_by_turns(std::span<const double> weights, std::span<const Selection> found) {
  using Turns = std::vector<std::pair<double, Chosen>>;
  Turns first;
  Turns aside;
  Turns behind;
  for (std::size_t cue = 0; cue < found.size(); ++cue) {
    const auto& [recall, keep] = found[cue];
    double weight = weights[cue];
    std::size_t n_kept = 0;
    for (const BlockWorth& cold : recall) {
      Turns& turns = cold.is_aside ? aside : first;
      turns.emplace_back(weight, Chosen{.block = cold.block});
      // One for one at most, and those that no cold one is worth more than.
      if (n_kept < keep.size() && keep[n_kept].worth >= cold.worth) {
        turns.emplace_back(weight, Chosen{.block = keep[n_kept++].block, .is_hot = true});
      }
      weight *= kNextTurn;
    }
    for (; n_kept < keep.size(); ++n_kept) {
      behind.emplace_back(weight, Chosen{.block = keep[n_kept].block, .is_hot = true});
      weight *= kNextTurn;
    }
  }
  std::vector<Chosen> all;
  for (Turns* turns : {&first, &aside, &behind}) {
    std::ranges::stable_sort(*turns, std::ranges::greater(), &Turns::value_type::first);
    for (const auto& [weight, chosen] : *turns) all.push_back(chosen);
  }
  return all;
}

}  // namespace

std::vector<Chosen> take_turns(std::span<const double> weights, std::span<const Selection> found,
                               std::span<const double> missing, std::int32_t max_blocks) {
  struct Room {
    double n_left = 0.0;
    std::int32_t n_chosen = 0;
  };
  Room cold{.n_left = static_cast<double>(max_blocks)};
  Room hot = cold;
  std::vector<Chosen> all;
  std::set<BlockIndex> taken;
  for (const Chosen& chosen : all_by_turns(weights, found)) {
    Room& room = chosen.is_hot ? hot : cold;
    if (room.n_left <= 0.0 || room.n_chosen >= kPartlyHot * max_blocks) continue;
    if (!taken.insert(chosen.block).second) continue;
    ++room.n_chosen;
    room.n_left -= chosen.is_hot ? 1.0 : missing[chosen.block.index()];
    all.push_back(chosen);
  }
  return all;
}

std::vector<Chosen> select_for_cues(std::span<const CueRanking> rankings, std::span<const double> missing,
                                    std::int32_t max_blocks, std::int32_t reach) {
  double best = 0.0;
  for (const CueRanking& cue : rankings) {
    for (const Scored& scored : cue.ranked) best = std::max(best, cue.weight * scored.score);
  }
  std::vector<double> weights;
  std::vector<Selection> found;
  for (const CueRanking& cue : rankings) {
    const double least = cue.is_linked ? 0.0 : kCueWorth * best / cue.weight;
    weights.push_back(cue.weight);
    found.push_back(select_blocks(cue.ranked, missing, max_blocks, reach, least));
  }
  return take_turns(weights, found, missing, max_blocks);
}

}  // namespace ebb
