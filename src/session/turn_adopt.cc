// What a turn's prompt has in common with what was computed before: whole blocks that are hot or saved under their exact
// names come in without a forward pass, whichever session computed them, and of the open block and the next the rows that
// go on alike.
#include <algorithm>

#include "base/clock.h"
#include "session/turn.h"

namespace ebb {
namespace {

// Fewer are computed in less time than a block is copied.
constexpr std::int32_t kFewestRows = 4;

}  // namespace

void Turn::adopt_saved() {
  EBB_CHECK(n_step_ == 0, "blocks are adopted between steps");
  if (!session_.options_.adopts || session_.options_.remains != Remains::kBytes || n_recomputing() > 0) return;
  if (room_in_last_block() > 0) adopt_rows();
  if (session_.n_blocks() == 0 || session_.is_full(last_block())) adopt_blocks();
}

void Turn::adopt_blocks() {
  const Stopwatch watch;
  std::vector<Arrival> arrivals;
  while (can_append_block(arrivals.size())) {
    const BlockIndex block = append_cold(arrivals.size());
    const bool has_room = session_.is_listed(block) || n_free_blocks() > 1;
    Result<Arrival> found = has_room ? begin_recall(block) : error(Code::kOutOfBudget, "no room for a record");
    if (!found.ok()) {
      drop_last_block();
      break;
    }
    arrivals.push_back(std::move(found).value());
  }
  bring_in_all(arrivals);
  const auto bad = std::ranges::find_if(arrivals, [](const Arrival& arrival) { return !arrival.status.ok(); });
  if (bad != arrivals.end() && bad->status.code() != Code::kOutOfBudget) session_.parts_.store->refuse(bad->record);
  for (auto lost = bad; lost != arrivals.end(); ++lost) drop_last_block();
  arrivals.erase(bad, arrivals.end());
  std::erase_if(stats_.shared, [&](BlockIndex block) { return block.value() >= session_.n_blocks(); });
  for (const Arrival& arrival : arrivals) {
    publish(arrival.block);
    session_.index_words(arrival.block);
    session_.blocks_[arrival.block.index()].last_access = session_.n_steps_;
    ++session_.stats_.n_recalled_blocks;
    stats_.adopted.push_back(arrival.block);
    stats_.n_adopted += session_.block_size();
    (arrival.record == nullptr ? stats_.n_shared : stats_.n_recalled_exact) += session_.block_size();
  }
  pending_.erase(pending_.begin(), pending_.begin() + std::ssize(arrivals) * session_.block_size());
  session_.stats_.peak_hot_blocks = std::max(session_.stats_.peak_hot_blocks, session_.n_hot_blocks());
  end_ = session_.end();
  stats_.recall_ms += watch.elapsed_ms();
}

// Whether a whole block more of what is pending fits without evicting, and leaves a token to compute and room for it.
bool Turn::can_append_block(std::size_t n_appended) const {
  const std::int32_t n_left = n_pending() - static_cast<std::int32_t>(n_appended) * session_.block_size();
  return n_left > session_.block_size() && session_.budget_blocks_ - session_.n_hot_blocks() > 1 &&
         session_.next_anchor_.value() + session_.block_size() <= session_.n_ctx_train();
}

// The next whole block of what is pending, with the name that it would have had it been computed now.
BlockIndex Turn::append_cold(std::size_t n_appended) {
  const std::int32_t n_tokens = session_.block_size();
  const BlockIndex block = session_.residency_.add_cold_block(session_.end(), n_tokens);
  session_.blocks_.push_back({.anchor = session_.next_anchor_, .epoch = session_.epoch_});
  session_.blocks_.back().lineage.add(session_.visible_before(block), n_tokens);
  const auto from = pending_.begin() + static_cast<std::ptrdiff_t>(n_appended) * n_tokens;
  session_.tokens_.insert(session_.tokens_.end(), from, from + n_tokens);
  session_.next_anchor_ = session_.next_anchor_ + n_tokens;
  return block;
}

// Where a block that another computed at the same place goes on as what is pending does, its rows are what would be
// computed: of the open block, or of one that begins behind the last. Sealed rows cannot be had one by one.
void Turn::adopt_rows() {
  if (!session_.options_.adopts || session_.parts_.open_pool != nullptr || n_recomputing() > 0) return;
  const bool is_open = room_in_last_block() > 0;
  const std::int32_t n_held = is_open ? session_.residency_.span(last_block()).n_tokens() : 0;
  const std::int32_t n_most = std::min(n_pending() - 1, session_.block_size() - n_held);
  if (n_most < kFewestRows || (!is_open && n_free_blocks() < 1)) return;
  if (session_.next_anchor_.value() + n_most > session_.n_ctx_train()) return;
  const Stopwatch watch;
  const BlockStarts::Match match = find_rows(n_held, n_most);
  const std::int32_t n_tokens = static_cast<std::int32_t>(match.n_common) - n_held;
  if (n_tokens < kFewestRows || !load_rows(match.name, n_held, n_tokens)) return;
  const Position to = session_.end();
  place(n_tokens);
  copy_from_donor(n_held, to, n_tokens);
  advance(n_tokens, std::nullopt);
  stats_.n_adopted += n_tokens;
  stats_.n_recalled_exact += n_tokens;
  stats_.recall_ms += watch.elapsed_ms();
}

// A block like the one that holds the last n_held tokens, or none, and goes on with up to n_most that are pending.
BlockStarts::Match Turn::find_rows(std::int32_t n_held, std::int32_t n_most) const {
  Hash128 visible = session_.visible_behind();
  std::vector<Token> tokens;
  if (n_held > 0) {
    const Session::Block& open = session_.blocks_.back();
    visible = session_.visible_before(last_block());
    const bool is_alike = open.lineage.runs().size() == 1 && open.lineage.runs().front().visible == visible;
    if (!is_alike || open.turned || open.moves != Hash128()) return {};
    std::ranges::copy(session_.block_tokens(last_block()), std::back_inserter(tokens));
  }
  tokens.insert(tokens.end(), pending_.begin(), pending_.begin() + n_most);
  const Position begin = session_.end() - n_held;
  BlockStarts::Match match;
  if (session_.parts_.starts != nullptr)
    match = session_.parts_.starts->find(session_.place_name(begin, visible), tokens);
  const auto n_whole = static_cast<std::size_t>(session_.block_size());
  if (n_held == 0 || tokens.size() < n_whole || match.n_common == n_whole) return match;
  // What another process computed is not listed, but the whole block may be saved.
  Lineage lineage;
  lineage.add(visible, session_.block_size());
  const Hash128 name = session_.exact_name_of(begin, tokens, lineage, Hash128());
  const bool is_saved = session_.parts_.store != nullptr && session_.parts_.store->contains(name);
  return is_saved ? BlockStarts::Match{.name = name, .n_common = n_whole} : match;
}

// The bytes of a block whose rows from slot n_held on hold what is pending, from frames or the cold store; false where
// neither has it any more.
bool Turn::load_rows(const Hash128& name, std::int32_t n_held, std::int32_t n_tokens) {
  const std::span<const Token> wanted = std::span(pending_).first(static_cast<std::size_t>(n_tokens));
  const HotBlock* const hot = session_.parts_.hot == nullptr ? nullptr : session_.parts_.hot->find(name);
  if (hot == nullptr) {
    const Donor donor = {.name = name, .begin = session_.end() - n_held};
    return session_.parts_.store != nullptr && load_donor(donor, n_held, wanted).ok() && donor_.n_anchors == 0;
  }
  const auto rows = std::span(hot->tokens).subspan(static_cast<std::size_t>(n_held), wanted.size());
  if (hot->anchor + n_held != session_.next_anchor_ || !std::ranges::equal(rows, wanted)) return false;
  const FrameMemory& memory = session_.parts_.memory;
  donor_ = {.name = name, .n_anchors = 0, .bytes = std::vector<std::byte>(hot->frames.size() * memory.frame_bytes())};
  std::span<std::byte> into = donor_.bytes;
  for (const FrameIndex frame : hot->frames) {
    memory.read(frame, into.first(memory.frame_bytes()));
    into = into.subspan(memory.frame_bytes());
  }
  return true;
}

void Turn::drop_last_block() {
  const std::int32_t n_tokens = session_.block_size();
  session_.residency_.truncate_last(0);
  session_.blocks_.pop_back();
  session_.tokens_.resize(session_.tokens_.size() - static_cast<std::size_t>(n_tokens));
  session_.next_anchor_ = session_.next_anchor_ - n_tokens;
}

}  // namespace ebb
