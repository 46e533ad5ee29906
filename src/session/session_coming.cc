// How a session's blocks come: back from the cold store, into holes, into windows; computed again; into a prompt.
#include <algorithm>
#include <map>
#include <tuple>

#include "session/reliance_records.h"
#include "session/session.h"

namespace ebb {

// --- waves ---

std::int32_t Session::n_missing(const Wave& wave, std::size_t i) const {
  return (hot().missing_heads(wave.blocks[i]) & wave.wanted[i]).count();
}

std::int32_t Session::n_frames(const Wave& wave) const {
  std::int32_t n = 0;
  for (std::size_t i = 0; i < wave.blocks.size(); ++i) n += n_missing(wave, i);
  return n;
}

void Session::end_wave(Wave wave, Acts& acts) {
  // Those that would come at the tail need anchors, and all of them frames, before any gets some: what leaves or moves for
  // one must not be another.
  std::int32_t n_frames = 0;
  for (int i = 0; i < 2; ++i) {
    std::int32_t n_tokens = 0;
    n_frames = this->n_frames(wave);
    for (const BlockIndex block : wave.blocks) {
      if (!keeper_.keeps_anchor(block)) n_tokens += hot().span(block).n_tokens();
    }
    const std::int64_t epoch = hot().epoch();
    if (n_tokens > 0 && !make_anchors_for(n_tokens, acts).ok()) return;
    if (hot().epoch() == epoch) break;
  }
  if (n_free_frames() < n_frames) make_room(n_frames, acts);
  std::int32_t n_free = n_free_frames();
  Wave fits{.fetch = std::move(wave.fetch), .is_placed = wave.is_placed};
  for (std::size_t i = 0; i < wave.blocks.size(); ++i) {
    n_free -= n_missing(wave, i);
    if (n_free < 0) break;
    fits.blocks.push_back(wave.blocks[i]);
    fits.records.push_back(wave.records[i]);
    fits.heads.push_back(wave.heads[i]);
    fits.wanted.push_back(wave.wanted[i]);
  }
  Acts came;
  keeper_.end_wave(std::move(fits), came);
  for (const BlockIndex block : came.recalled) {
    keeper_.hot().notes(block).recovery = 1.0;
    keeper_.hot().notes(block).last_access = n_steps_;
  }
  acts += came;
}

Acts Session::recall(std::span<const BlockIndex> blocks) {
  Acts acts;
  if (options_.remains == Remains::kNothing) return acts;
  // Half of the budget stays for what comes.
  const auto n_most = static_cast<std::size_t>(std::max(1, budget_.n_blocks(deps_.shape) / 2));
  std::vector<BlockIndex> wanted;
  for (const BlockIndex block : blocks) {
    if (wanted.size() < n_most && std::ranges::find(wanted, block) == wanted.end()) wanted.push_back(block);
  }
  // What is hot and wanted must not leave for what comes; and neighbours that move together stay neighbours.
  std::ranges::sort(wanted);
  const Holds before = holds_;
  holds_.kept.insert(holds_.kept.end(), wanted.begin(), wanted.end());
  std::erase_if(wanted, [&](BlockIndex block) { return hot().is_hot(block); });
  if (options_.remains == Remains::kTokens) {
    acts.lost = wanted;
    wanted.clear();
  }
  for (std::span<const BlockIndex> rest = wanted; !rest.empty();) {
    const auto some = rest.first(std::min(rest.size(), kWaveBlocks));
    rest = rest.subspan(some.size());
    end_wave(begin_wave(some, ReadBy::kCaller), acts);
  }
  settle_anchors(acts);
  holds_ = before;
  return acts;
}

Acts Session::refill(std::int32_t n_left_blocks, std::span<const Cue> cues, Holes holes) {
  Acts acts;
  const std::int32_t n_left = n_left_blocks * deps_.shape.frames_per_block();
  std::vector<BlockIndex> some;
  for (const BlockIndex block : choose_holes(cues, holes)) {
    if (n_free_frames() - n_left < deps_.shape.frames_per_block()) break;
    some.assign(1, block);
    end_wave(begin_wave(some, ReadBy::kCaller), acts);
  }
  acts.lost.clear();
  settle_anchors(acts);
  return acts;
}

Status Session::wake_last(Acts& acts) {
  const BlockIndex last = hot().last_block();
  const std::int32_t n_missing = hot().missing_heads(last).count();
  if (n_free_frames() < n_missing) make_room(n_missing, acts);
  if (n_free_frames() < n_missing) return error(Code::kOutOfBudget, "no room for the last block");
  return keeper_.wake_last(acts);
}

std::vector<BlockIndex> Session::choose_holes(std::span<const Cue> cues, Holes holes) {
  struct Candidate {
    bool is_pinned = false;
    double score = 0.0;
    BlockIndex block;
  };
  std::vector<Candidate> candidates;
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    const BlockIndex block(b);
    if (hot().is_hot(block)) continue;
    const bool is_pin = is_pinned(block);
    if (is_cleared(block) && !is_pin) continue;
    if (holes == Holes::kOfEpoch && hot().info(block).epoch != hot().epoch() && !is_pin) continue;
    if (keeper_.io().is_saved(block)) candidates.push_back({.is_pinned = is_pin, .block = block});
  }
  if (candidates.empty()) return {};
  std::map<BlockIndex, double> scores;
  for (const CueRanking& cue : finder_.rank(cues)) {
    for (const Scored& scored : cue.ranked) {
      double& most = scores[scored.block];
      most = std::max(most, cue.weight * scored.score);
    }
  }
  for (Candidate& candidate : candidates) {
    if (const auto found = scores.find(candidate.block); found != scores.end()) candidate.score = found->second;
  }
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.is_pinned, a.score, a.block.value()) > std::tuple(b.is_pinned, b.score, b.block.value());
  });
  std::vector<BlockIndex> blocks;
  for (const Candidate& candidate : candidates) blocks.push_back(candidate.block);
  return blocks;
}

std::vector<BlockIndex> Session::find_missing(Holes holes) const {
  std::vector<BlockIndex> blocks;
  if (options_.remains == Remains::kNothing) return blocks;
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    const BlockIndex block(b);
    if (hot().is_hot(block) || keeper_.io().is_saved(block) || is_cleared(block)) continue;
    if (holes == Holes::kOfEpoch && hot().info(block).epoch != hot().epoch()) continue;
    blocks.push_back(block);
  }
  return blocks;
}

// What windows showed to the tokens that are forgotten, they show again to those that come: of blocks that are hot in any
// head, or that have none but such as slide.
void Session::recall_window(Acts& acts) {
  const std::vector<std::int32_t>& windows = deps_.shape.windows;
  const auto n_sliding = std::ranges::count_if(windows, [](std::int32_t window) { return window > 0; });
  if (n_sliding == 0) return;
  const bool all_slide = std::cmp_equal(n_sliding, deps_.shape.n_layers);
  std::vector<BlockIndex> seen;
  std::int32_t n_frames = 0;
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    const BlockIndex block(b);
    if (hot().is_hot(block) || !hot().is_full(block) || (hot().n_hot_frames(block) == 0 && !all_slide)) continue;
    if (hot().missing_window_heads(block).empty()) continue;
    n_frames += hot().missing_heads(block).count();
    if (n_frames <= n_free_frames()) seen.push_back(block);
  }
  Acts came;
  for (std::span<const BlockIndex> rest = seen; !rest.empty();) {
    const auto some = rest.first(std::min(rest.size(), kWaveBlocks));
    rest = rest.subspan(some.size());
    end_wave(begin_wave(some, ReadBy::kCaller), came);
  }
  // They were hot as far as anyone looked. What is lost is missed, and named so: not all of the block is computed again for it.
  acts.evicted.insert(acts.evicted.end(), came.evicted.begin(), came.evicted.end());
  acts.recall_ms += came.recall_ms;
}

// --- computing again ---

void Session::look_from(Position eye, Acts& acts) {
  keeper_.look_from(eye);
  if (eye < end()) recall_window(acts);
}

Status Session::begin_recompute(BlockIndex block, bool keeps_open, Acts& acts) {
  const std::int32_t n_frames = deps_.shape.frames_per_block() - hot().n_hot_frames(block);
  // Not down to the low mark: of several that come at once, one must not leave for another.
  if (n_free_frames() < n_frames) make_room(n_frames, acts);
  if (n_free_frames() < n_frames) return error(Code::kOutOfBudget, "no room for block {}", block.value());
  return keeper_.begin_recompute(block, keeps_open);
}

void Session::end_recompute(BlockIndex block, Lineage lineage, Acts& acts) {
  // Its rows saw what is hot now, and nobody noted on what they rely.
  if (reliances_) reliances_->forget(hot().span(block));
  keeper_.end_recompute(block, std::move(lineage), acts);
  keeper_.hot().notes(block).last_access = n_steps_;
}

// --- renewing ---

// Rows of a sealed block share codes with others', and none of a state is kept that began in a block's middle.
bool Session::can_renew() const {
  return options_.renewed_tokens > 0 && deps_.open_pool == nullptr && deps_.state == nullptr &&
         options_.remains == Remains::kBytes;
}

Status Session::begin_renewal(BlockIndex block, std::int32_t n_rows, Acts& acts) {
  look_from(hot().span(block).begin, acts);
  if (hot().is_shared(block)) evict_for_pool(deps_.shape.frames_per_block(), acts);
  // Room for a copy may be made of the block itself.
  if (hot().hot_heads(block) != deps_.shape.all_heads()) {
    return error(Code::kOutOfBudget, "block {} is not hot in every head", block.value());
  }
  if (reliances_) reliances_->forget(hot().span(block));
  return keeper_.begin_renewal(block, n_rows);
}

// --- a prompt's tokens ---

void Session::append(std::span<const Token> tokens) {
  const std::int32_t first = end().value() / block_size();
  if (reliances_) reliances_->add({end(), end() + static_cast<std::int32_t>(tokens.size())}, step_reliances_->take());
  const std::vector<BlockIndex> full = keeper_.append(tokens);
  note_full(full);
  for (const BlockIndex block : full) {
    if (reliances_) RelianceRecords(hot(), keeper_.io()).keep(block, *reliances_);
  }
  for (std::int32_t b = first; b < n_blocks(); ++b) keeper_.hot().notes(BlockIndex(b)).last_access = n_steps_;
}

Adoption Session::find_adoption(std::span<const Token> pending, std::int32_t max_blocks) {
  const auto size = static_cast<std::size_t>(block_size());
  // What is held more firmly than the prompt does not leave for it.
  const std::int32_t n_most = plan_adoption(room(), std::max(0, max_blocks), deps_.shape);
  std::size_t n_blocks = std::min(static_cast<std::size_t>(n_most), pending.size() / size);
  const std::int32_t n_anchors_left = n_ctx_train() - hot().next_anchor().value();
  n_blocks = std::min({n_blocks, kWaveBlocks, static_cast<std::size_t>(std::max(0, n_anchors_left)) / size});
  if (n_blocks == 0 || !options_.adopts || options_.remains != Remains::kBytes || end().value() % block_size() != 0) {
    return {};
  }
  const std::span<const Token> tokens = pending.first(n_blocks * size);
  Adoption whole = keeper_.find_blocks(tokens, true);
  if (!whole.names.empty()) return whole;
  return keeper_.find_blocks(tokens, false);
}

Adopted Session::adopt(Adoption adoption, std::span<const Token> pending, Acts& acts) {
  const std::int32_t per_block = deps_.shape.frames_per_block();
  const auto n_names = static_cast<std::int32_t>(adoption.names.size());
  if (n_free_frames() < n_names * per_block) make_room(n_names * per_block, acts);
  const std::int32_t n_fit = std::clamp(n_free_frames() / per_block, 0, n_names);
  adoption.names.resize(static_cast<std::size_t>(n_fit));
  adoption.records.resize(static_cast<std::size_t>(n_fit));
  const std::size_t n_before = acts.adopted.size();
  const Adopted adopted = keeper_.adopt(std::move(adoption), pending, acts);
  // Where fewer came than were looked for, windows had moved on too far.
  if (adopted.n_tokens() < n_fit * block_size()) recall_window(acts);
  for (std::size_t i = n_before; i < acts.adopted.size(); ++i) {
    keeper_.hot().notes(acts.adopted[i]).last_access = n_steps_;
    note_full({&acts.adopted[i], 1});
    if (reliances_) RelianceRecords(hot(), keeper_.io()).read(acts.adopted[i], *reliances_);
  }
  return adopted;
}

std::int32_t Session::copy_alike(std::span<const Token> pending, Acts& acts) {
  if (!options_.adopts || pending.empty()) return 0;
  const std::int32_t n_rows = hot().room_in_last_block();
  if (n_rows == 0 && (n_free_frames() < deps_.shape.frames_per_block() || !may_open())) return 0;
  const std::int32_t n_anchors_left = n_ctx_train() - hot().next_anchor().value();
  if (n_anchors_left < block_size()) return 0;
  Acts came;
  const std::int32_t n_tokens = keeper_.copy_alike(pending, came);
  note_full(came.adopted);
  acts += came;
  return n_tokens;
}

// Codes of a sealed block share scales between tokens, which one of them cannot take along; and none takes a state along.
bool Session::can_graft() const {
  return deps_.store != nullptr && deps_.mover != nullptr && deps_.open_pool == nullptr && deps_.state == nullptr &&
         options_.remains == Remains::kBytes;
}

std::vector<Donor> Session::donors(Position edit) {
  std::vector<Donor> donors;
  // From the edit's block on: a run may stand anywhere behind it.
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    const BlockIndex block(b);
    // One that cannot be saved is computed again (law 8).
    if (b >= edit.value() / block_size() && hot().is_hot(block)) (void)keeper_.save(block);
    donors.push_back({.name = hot().exact_name(block), .begin = hot().span(block).begin});
  }
  return donors;
}

void Session::note_reliances() {
  if (reliances_ || deps_.gives_sums_only || !can_graft()) return;
  step_reliances_ = std::make_unique<StepReliances>(block_size());
  reliances_.emplace(step_reliances_->n_slice_tokens());
}

StepReliances* Session::begin_reliances() {
  if (step_reliances_) step_reliances_->begin();
  return step_reliances_.get();
}

void Session::rely(Span rows, const std::optional<std::vector<std::int32_t>>& on) {
  if (reliances_ && on) reliances_->add(rows, std::span(*on));
}

Status Session::graft(const Donor& donor, std::int32_t slot, std::span<const Token> wanted) {
  const BlockIndex first = hot().block_at(end());
  EBB_RETURN_IF_ERROR(keeper_.graft(donor, slot, wanted));
  ++n_steps_;
  keeper_.hot().notes(first).last_access = n_steps_;
  if (hot().is_full(first)) note_full({&first, 1});
  return {};
}

}  // namespace ebb
