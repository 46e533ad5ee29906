// What a session's policy is told: of blocks, and of what attention gave them in each head.
#include <algorithm>
#include <utility>

#include "base/to_size.h"
#include "session/session.h"

namespace ebb {
namespace {

// The share of the budget that what was said last has at most as firmly as what was asked back. More: in small budgets what comes back has no
// room. Less: there, a reply's beginning leaves for it.
constexpr std::int32_t kNewestShare = 8;

// From half of the budget on, frames are read before a choice asks for them: at each step so many blocks, and as many more for each that it filled.
// More: steps take longer. Less: the first choice does.
constexpr std::int32_t kAheadShare = 2;
constexpr std::int32_t kAheadBlocks = 2;

}  // namespace

// --- blocks ---

Hold Session::hold(BlockIndex block, const Part& said, bool pins_hold) const {
  const auto is_of = [&](const std::vector<BlockIndex>& blocks) {
    return std::ranges::find(blocks, block) != blocks.end();
  };
  const Span span = hot().span(block);
  const bool is_pin = is_pinned(block);
  // The block that is still written to stays whatever happens.
  if (!hot().is_full(block) || (is_pin && pins_hold) || is_of(holds_.computing)) return Hold::kPinned;
  // What was just said weighs as much as what came back for it: a reply that does not see how it began begins again.
  const std::int32_t n_newest = std::min(options_.recent_tokens, budget_tokens() / kNewestShare);
  if (is_of(holds_.kept) || span.overlaps(holds_.question) || span.end > end() - n_newest) return Hold::kKept;
  const bool is_sink = policy_->asks().sinks && span.begin.value() < options_.sink_tokens;
  const bool is_recent = span.end > end() - options_.recent_tokens;
  // Without its instructions a model is another one.
  const bool is_system = said.source == Source::kSystem;
  return is_pin || is_sink || is_recent || is_system || span.overlaps(holds_.reply) ? Hold::kProtected : Hold::kNone;
}

Evidence Session::evidence(CountedFrames counted) const {
  const Ask ask = policy_->asks();
  const std::size_t n_heads = deps_.shape.n_heads();
  const auto n_in_layer = static_cast<std::size_t>(deps_.shape.n_kv_heads);
  const std::size_t n_in_scope = ask.scope == Scope::kSession ? n_heads : ask.scope == Scope::kLayer ? n_in_layer : 1;
  Evidence evidence{.n_layers = deps_.shape.n_layers,
                    .n_scopes = static_cast<std::int32_t>(n_heads / n_in_scope),
                    .grain = block_size(),
                    .end = end()};
  auto n_pins_left = static_cast<std::int32_t>(options_.most_pinned * budget_.n_blocks(deps_.shape));
  for (const BlockIndex block : hot().hot_blocks()) {
    const Part said = said_.merged(hot().span(block));
    const BlockNotes& notes = hot().notes(block);
    BlockEvidence row{.block = block,
                      .span = hot().span(block),
                      .hold = hold(block, said, n_pins_left > 0),
                      .source = said.source,
                      .priority = said.priority,
                      .last_access = notes.last_access,
                      .recovery = notes.recovery};
    if (ask.shares) row.attention = notes.attention;
    if (ask.focus) row.focus = focus_.similarity(finder_.known_words(), block);
    n_pins_left -= is_pinned(block) ? 1 : 0;
    evidence.blocks.push_back(row);
  }
  for (std::size_t head = 0; head < n_heads; head += n_in_scope) {
    ScopeEvidence scope = gather_scope({.first = head, .n_heads = n_in_scope}, evidence, counted);
    scope.index = static_cast<std::int32_t>(head / n_in_scope);
    evidence.scopes.push_back(std::move(scope));
  }
  return evidence;
}

// Tables and blocks both rise.
ScopeEvidence Session::gather_scope(HeadRange heads, const Evidence& evidence, CountedFrames counted) const {
  std::vector<std::int32_t> n_frames(evidence.blocks.size(), 0);
  for (std::size_t head = heads.first; head < heads.first + heads.n_heads; ++head) {
    std::size_t at = 0;
    for (const TableEntry& entry : hot().tables().entries(head)) {
      const BlockIndex block = hot().block_at(entry.begin);
      while (evidence.blocks[at].block < block) ++at;
      n_frames[at] += counted == CountedFrames::kHot ? 1 : hot().n_own_frames(block, head);
    }
  }
  ScopeEvidence scope;
  for (std::size_t i = 0; i < n_frames.size(); ++i) {
    if (n_frames[i] > 0) scope.rows.push_back({.block = static_cast<std::int32_t>(i), .n_frames = n_frames[i]});
  }
  if (attention_) {
    std::vector<BlockIndex> blocks;
    for (const ScopeRow& row : scope.rows) blocks.push_back(evidence.block(row).block);
    attention_->fill(policy_->asks(), heads.first, heads.n_heads, blocks, scope);
  }
  if (policy_->asks().frames()) fill_frames(heads, evidence, scope);
  if (policy_->asks().expected > 0) fill_expected(heads.first, evidence, scope);
  return scope;
}

// Rows of full blocks never change where they are; what leaves is forgotten, so that notes are bounded by what is hot.
void Session::note_frames() {
  if (!policy_->asks().frames()) return;
  std::erase_if(frame_notes_, [&](const auto& entry) {
    return hot().n_hot_frames(entry.first) == 0 || hot().anchor(entry.first) != entry.second.anchor ||
           hot().renewed(entry.first) != entry.second.renewed ||
           !std::ranges::equal(hot().advances(entry.first), entry.second.advances);
  });
  for (const BlockIndex block : hot().hot_blocks()) note_frame(block);
}

// Of blocks in the order in which they came, while the first choice is still some way off: what all of them take at once, others would wait for.
void Session::note_frames_ahead() {
  const std::int32_t n_filled = end() - std::exchange(end_noted_, end());
  if (!policy_->asks().frames() || kAheadShare * hot().n_hot_frames() < budget_.n_frames) return;
  std::int32_t n_left = kAheadBlocks * (1 + std::max(0, n_filled) / block_size());
  for (; n_left > 0 && n_noted_ahead_ < n_blocks() && hot().is_full(BlockIndex(n_noted_ahead_)) &&
         !hot().is_open(BlockIndex(n_noted_ahead_));
       ++n_noted_ahead_) {
    const BlockIndex block(n_noted_ahead_);
    if (hot().n_hot_frames(block) == 0 || frame_notes_.contains(block)) continue;
    note_frame(block);
    --n_left;
  }
}

void Session::note_frame(BlockIndex block) {
  // The rows of one that is computed again are not all there yet.
  const bool is_computing = std::ranges::find(holds_.computing, block) != holds_.computing.end();
  if (!hot().is_full(block) || hot().is_open(block) || is_computing) return;
  const Ask ask = policy_->asks();
  const FrameLayout& layout = deps_.memory.layout();
  FrameNotes& notes = frame_notes_[block];
  notes.anchor = hot().anchor(block);
  notes.renewed = hot().renewed(block);
  notes.advances.assign(hot().advances(block).begin(), hot().advances(block).end());
  notes.digests.resize(deps_.shape.n_heads());
  std::vector<std::byte> frame(layout.frame_bytes());
  hot().hot_heads(block).for_each([&](std::size_t head) {
    if (notes.digests[head].is_read) return;
    HeadSet one(deps_.shape.n_heads());
    one.add(head);
    read_frames(block, one, frame);
    notes.digests[head] = digest_frame(layout, frame, block_size(),
                                       {.directions = ask.keys,
                                        .ranges = ask.ranges,
                                        .value_means = ask.value_means,
                                        .lengths = ask.output_lengths ? deps_.output_lengths : nullptr,
                                        .head = head});
  });
}

void Session::fill_frames(HeadRange heads, const Evidence& evidence, ScopeEvidence& scope) const {
  const Ask ask = policy_->asks();
  const FrameLayout& layout = deps_.memory.layout();
  scope.keys.n_dims = to_size(layout.head_dim_k);
  scope.n_key_heads = heads.n_heads;
  scope.n_key_dims = heads.n_heads * scope.keys.n_dims;
  scope.values.n_dims = to_size(layout.head_dim_v);
  // Zeros where nothing is known.
  const auto add = [](bool is_asked, const std::vector<float>& from, std::size_t n, std::vector<float>& column) {
    if (!is_asked) return;
    column.insert(column.end(), from.begin(), from.end());
    column.resize(column.size() + n - from.size(), 0.0F);
  };
  const FrameDigest unread;
  for (const ScopeRow& row : scope.rows) {
    const BlockIndex block = evidence.block(row).block;
    const auto notes = frame_notes_.find(block);
    const HeadSet hot_heads = hot().hot_heads(block);
    const auto digest_of = [&](std::size_t head) -> const FrameDigest& {
      return notes == frame_notes_.end() || !hot_heads.contains(head) ? unread : notes->second.digests[head];
    };
    double n_read = 0.0;
    double norms = 0.0;
    for (std::size_t head = heads.first; head < heads.first + heads.n_heads; ++head) {
      const FrameDigest& digest = digest_of(head);
      n_read += digest.is_read ? 1.0 : 0.0;
      norms += double{digest.key_norm};
      add(ask.keys, digest.key_direction, scope.keys.n_dims, scope.key_direction);
    }
    scope.is_read.push_back(n_read > 0.0);
    if (ask.keys) scope.key_norm.push_back(norms / std::max(1.0, n_read));
    // The others are asked for by head only.
    const FrameDigest& digest = digest_of(heads.first);
    for (auto [from, to] : {std::pair(&digest.keys, &scope.keys), std::pair(&digest.values, &scope.values)}) {
      add(ask.ranges, from->least, to->n_dims, to->least);
      add(ask.ranges, from->greatest, to->n_dims, to->greatest);
      add(ask.ranges || (ask.value_means && to == &scope.values), from->mean, to->n_dims, to->mean);
    }
    if (ask.output_lengths) scope.output_length.push_back(double{digest.output_length});
  }
}

Evidence Session::evidence_for_choice(CountedFrames counted) {
  note_frames();
  note_expected();
  return evidence(counted);
}

std::vector<std::optional<double>> Session::scores() const {
  const Evidence now = evidence();
  const std::vector<double> ranks = rank_blocks(*policy_, now);
  std::vector<std::optional<double>> scores(static_cast<std::size_t>(n_blocks()));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] != kNeverLeaves) scores[now.blocks[i].block.index()] = ranks[i];
  }
  return scores;
}

void Session::set_policy(std::shared_ptr<const Policy> policy, const OutputLengths* lengths) {
  const Ask before = policy_->asks();
  deps_.output_lengths = lengths;
  options_.policy = std::move(policy);
  policy_ = with_list(options_.policy == nullptr ? deps_.policy : options_.policy, options_.budget_list);
  const Ask ask = policy_->asks();
  EBB_CHECK(!ask.output_lengths || lengths != nullptr,
            "policy {} asks for lengths behind output matrices, which nobody has", policy_->name());
  if ((ask.expected > 0) != (before.expected > 0)) begin_queries();
  if (ask == before) return;
  attention_.reset();
  if (ask.attention()) attention_.emplace(deps_.shape.n_heads(), ask, block_size(), to_size(deps_.shape.n_kv_heads));
  for (std::int32_t b = 0; b < n_blocks(); ++b) keeper_.hot().notes(BlockIndex(b)).attention = 0.0;
  frame_notes_.clear();
  n_noted_ahead_ = 0;
  expected_.clear();
  if (!ask.reread) unread_ = {Position(0), Position(0)};
}

// --- attention ---

std::int32_t Session::n_observed(std::int32_t n_rows, const AttentionNotes::Behind& behind) const {
  if (!attention_) return 0;
  const Ask ask = policy_->asks();
  const bool wants_one = deps_.gives_sums_only && (ask.window > 0 || ask.last);
  return wants_one ? 1 : attention_->n_observed(n_rows, behind);
}

void Session::end_step(const std::optional<SequenceMass>& mass) {
  ++n_steps_;
  if (mass && attention_) note_mass(*mass);
  note_frames_ahead();
}

// A state would have seen the tokens twice.
void Session::note_unread(std::int32_t n_tokens) {
  if (!policy_->asks().reread || deps_.state != nullptr) return;
  if (unread_.empty()) unread_.begin = end() - n_tokens;
  unread_.end = end();
}

// The rows that are being read lie behind all that is noted.
void Session::note_reread(const SequenceMass& mass) {
  std::vector<BlockIndex> blocks;
  for (std::int32_t layer = 0; layer < mass.n_layers(); ++layer) {
    for (std::int32_t head = 0; head < mass.n_kv_heads(); ++head) {
      const HeadMass here = mass.head(LayerIndex(layer), HeadIndex(head));
      blocks.clear();
      for (const TableEntry& entry : here.table) {
        if (entry.begin < end()) blocks.push_back(hot().block_at(entry.begin));
      }
      attention_->add_reread(static_cast<std::size_t>(layer * mass.n_kv_heads() + head), blocks,
                             here.window_max.first(blocks.size()));
    }
  }
}

void Session::note_mass(const SequenceMass& mass) {
  attention_->begin_step({.observed = mass.queries(), .n_window = mass.n_window_rows()}, block_size());
  const bool shares = policy_->asks().shares;
  if (shares) step_mass_.resize(static_cast<std::size_t>(n_blocks()), 0.0);
  std::vector<BlockIndex> blocks;
  for (std::int32_t layer = 0; layer < mass.n_layers(); ++layer) {
    for (std::int32_t head = 0; head < mass.n_kv_heads(); ++head) {
      const HeadMass here = mass.head(LayerIndex(layer), HeadIndex(head));
      blocks.clear();
      for (const TableEntry& entry : here.table) blocks.push_back(hot().block_at(entry.begin));
      attention_->add(static_cast<std::size_t>(layer * mass.n_kv_heads() + head),
                      {.blocks = blocks,
                       .sum = here.sum,
                       .window_sum = here.window_sum,
                       .window_max = here.window_max,
                       .last = here.last,
                       .slices = {here.slices.sum, here.slices.window_sum, here.slices.window_max, here.slices.last}});
      for (std::size_t e = 0; shares && e < blocks.size(); ++e) {
        step_mass_[blocks[e].index()] += static_cast<double>(here.sum[e]);
      }
    }
  }
  if (shares) note_shares();
}

void Session::note_shares() {
  double total = 0.0;
  for (const BlockIndex block : hot().hot_blocks()) total += step_mass_[block.index()];
  for (const BlockIndex block : hot().hot_blocks()) {
    BlockNotes& notes = keeper_.hot().notes(block);
    const double share = total > 0.0 ? std::exchange(step_mass_[block.index()], 0.0) / total : 0.0;
    notes.attention = follow_share(notes.attention, share);
    if (is_notable_share(share, hot().hot_blocks().size())) notes.last_access = n_steps_;
  }
}

}  // namespace ebb
