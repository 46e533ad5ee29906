// Rows that are copied into a session's last block: from a block that another computed at the same place and that goes on as
// the prompt does, or from where they stood before an edit.
//
//   before    |--- kept ---|~~ edited away ~~|------- run -------|          blocks of before: donors
//   now       |--- kept ---|~ new ~|------- run -------|~~ new ~~|          the run is grafted behind what is new
//
// A graft is approximate (law 4): its K and V saw the old text. Its bytes depend on the donors, which slots of them and how
// far they were turned, and on nothing else; that is its lineage, so that no exact name ever means both.
#include <algorithm>

#include "base/clock.h"
#include "base/to_size.h"
#include "session/keeper.h"
#include "session/row_change.h"

namespace ebb {
namespace {

// Fewer are computed in less time than a block is copied.
constexpr std::int32_t kFewestRows = 4;

}  // namespace

std::int32_t Keeper::copy_alike(std::span<const Token> tokens, Acts& acts) {
  // Sealed rows cannot be had one by one, and those that are copied carry no state on.
  if (io_.layout().seals() || snapshots_ || std::ssize(tokens) < kFewestRows) return 0;
  const Stopwatch watch;
  const std::int32_t n_held = n_in_last();
  const auto n_most = std::min<std::size_t>(tokens.size(), static_cast<std::size_t>(hot_.block_size() - n_held));
  const BlockStarts::Match match = find_alike(tokens.first(n_most));
  const std::int32_t n_tokens = static_cast<std::int32_t>(match.n_common) - n_held;
  if (n_tokens < kFewestRows) return 0;
  const std::span<const Token> wanted = tokens.first(static_cast<std::size_t>(n_tokens));
  if (!load_alike(match.name, wanted) || !open(n_tokens).ok()) return 0;
  io_.copy_rows(donor_.bytes, n_held, hot_.last_block(), n_held, n_tokens);
  for (const BlockIndex block : append(wanted)) acts.adopted.push_back(block);
  acts.recall_ms += watch.elapsed_ms();
  return n_tokens;
}

// A block like the one that holds the last tokens, or none, and goes on with these.
BlockStarts::Match Keeper::find_alike(std::span<const Token> tokens) const {
  const std::int32_t n_held = n_in_last();
  // What a block of squares begins with is what it is by all its tokens.
  if (n_held == 0 && hot_.sight().has_squares(hot_.end())) return {};
  Hash128 visible;
  std::vector<Token> all;
  if (n_held == 0) {
    visible = hot_.visible_behind();
  } else {
    const BlockIndex last = hot_.last_block();
    visible = hot_.sight().seen(hot_.visible_before(last), hot_.end(), {});
    const BlockRecordInfo& info = hot_.info(last);
    const bool is_alike = info.lineage.runs().size() == 1 && info.lineage.runs().front().visible == visible;
    if (!is_alike || hot_.is_turned(last) || info.variant != Hash128()) return {};
    std::ranges::copy(hot_.block_tokens(last), std::back_inserter(all));
  }
  std::ranges::copy(tokens, std::back_inserter(all));
  const Position begin = hot_.end() - n_held;
  BlockStarts::Match match;
  if (deps_.starts != nullptr) match = deps_.starts->find(hot_.place_name(begin, visible), all);
  const auto n_whole = static_cast<std::size_t>(hot_.block_size());
  if (n_held == 0 || all.size() < n_whole || match.n_common == n_whole) return match;
  // What another process computed is not listed, but the whole block may be saved.
  Lineage lineage;
  lineage.add(visible, hot_.block_size());
  const Hash128 name = hot_.exact_name_of(begin, all, lineage, {});
  return io_.find(name) ? BlockStarts::Match{.name = name, .n_common = n_whole} : match;
}

// The bytes of a block whose rows behind the last token hold `wanted`, from frames or the cold store; false where neither has
// it any more.
bool Keeper::load_alike(const Hash128& name, std::span<const Token> wanted) {
  const std::int32_t n_held = n_in_last();
  const HotBlock* const listed = deps_.sources.shared == nullptr ? nullptr : deps_.sources.shared->find(name);
  if (listed == nullptr || listed->n_frames < hot_.shape().frames_per_block()) {
    const Donor donor = {.name = name, .begin = hot_.end() - n_held};
    return io_.has_store() && load_donor(donor, n_held, wanted, hot_.next_anchor()).ok() && donor_.n_anchors == 0;
  }
  const auto rows = std::span(listed->tokens).subspan(static_cast<std::size_t>(n_held), wanted.size());
  if (listed->anchor + n_held != hot_.next_anchor() || !std::ranges::equal(rows, wanted)) return false;
  const FrameMemory& memory = deps_.io.memory;
  donor_ = {.donor = {.name = name, .begin = hot_.end() - n_held},
            .tokens = {listed->tokens.begin(), listed->tokens.end()},
            .anchor = listed->anchor,
            .bytes = std::vector<std::byte>(listed->frames.size() * memory.frame_bytes())};
  std::span<std::byte> into = donor_.bytes;
  for (const FrameIndex frame : listed->frames) {
    memory.read(frame, into.first(memory.frame_bytes()));
    into = into.subspan(memory.frame_bytes());
  }
  return true;
}

bool Keeper::DonorBytes::has(const Donor& other, std::size_t slot, std::span<const Token> wanted, Position at) const {
  return donor.name == other.name && donor.begin == other.begin && slot + wanted.size() <= tokens.size() &&
         at - (anchor + static_cast<std::int32_t>(slot)) == n_anchors &&
         std::ranges::equal(std::span(tokens).subspan(slot, wanted.size()), wanted);
}

// The donor's frames, turned so that its tokens from `slot` on, which are `wanted`, have anchors from this one on.
Status Keeper::load_donor(const Donor& donor, std::int32_t slot, std::span<const Token> wanted, Position anchor) {
  const auto n_before = static_cast<std::size_t>(slot);
  if (donor_.has(donor, n_before, wanted, anchor)) return {};
  ColdStore& store = *io_.store();
  EBB_ASSIGN_OR_RETURN(const RecordHandle record, store.get(io_.record_key(donor.name)));
  const std::span<const Token> tokens = record->tokens();
  const RecordHeader& header = record->header();
  const std::size_t n_heads = hot_.shape().n_heads();
  const bool has_frames = std::cmp_equal(header.n_frames, n_heads) &&
                          header.frame_bytes == n_heads * deps_.io.memory.frame_bytes() && header.begin == donor.begin;
  if (!has_frames || tokens.size() < n_before + wanted.size() ||
      !std::ranges::equal(tokens.subspan(n_before, wanted.size()), wanted)) {
    store.refuse(record);
    return error(Code::kDamaged, "the record of a donor holds something else");
  }
  const std::int32_t n_anchors = anchor - (header.anchor + slot);
  if (n_anchors != 0 && !io_.can_move()) {
    return error(Code::kUnsupported, "a donor cannot be moved by {} anchors here", n_anchors);
  }
  donor_ = {.donor = donor,
            .tokens = {tokens.begin(), tokens.end()},
            .anchor = header.anchor,
            .n_anchors = n_anchors,
            .bytes = std::vector<std::byte>(header.frame_bytes)};
  const HeadSet all = hot_.shape().all_heads();
  if (const Status copied = BlockIo::copy_out(*record, all, donor_.bytes); !copied.ok()) {
    donor_ = {};
    store.refuse(record);
    return copied;
  }
  if (n_anchors != 0) deps_.io.mover->move(donor_.bytes, all, header.n_tokens, n_anchors);
  return {};
}

Status Keeper::graft(const Donor& donor, std::int32_t slot, std::span<const Token> wanted) {
  EBB_RETURN_IF_ERROR(load_donor(donor, slot, wanted, hot_.next_anchor()));
  const std::int32_t into = n_in_last();
  EBB_RETURN_IF_ERROR(open(static_cast<std::int32_t>(wanted.size())));
  io_.copy_rows(donor_.bytes, slot, hot_.last_block(), into, static_cast<std::int32_t>(wanted.size()));
  append(wanted, Hasher()
                     .add_text("graft")
                     .add(donor.name)
                     .add(static_cast<std::uint64_t>(slot))
                     .add(static_cast<std::uint64_t>(std::int64_t{donor_.n_anchors}))
                     .finish());
  return {};
}

Result<double> Keeper::change_of(const Donor& donor, std::int32_t slot, Span rows) {
  const BlockIndex block = hot_.block_at(rows.begin);
  // Windows may have slid past some of them.
  if (hot_.hot_heads(block) != hot_.shape().all_heads()) {
    return error(Code::kNotFound, "block {} is not hot in every head", block.value());
  }
  const std::int32_t at = rows.begin - hot_.span(block).begin;
  const auto wanted = hot_.block_tokens(block).subspan(to_size(at), to_size(rows.n_tokens()));
  EBB_RETURN_IF_ERROR(load_donor(donor, slot, wanted, hot_.anchor(block) + at));
  std::vector<std::byte> bytes(io_.block_bytes(block));
  io_.read(block, hot_.shape().all_heads(), bytes);
  return most_change(io_.layout(), hot_.shape(), {.bytes = donor_.bytes, .first = to_size(slot)},
                     {.bytes = bytes, .first = to_size(at)}, wanted.size());
}

}  // namespace ebb
