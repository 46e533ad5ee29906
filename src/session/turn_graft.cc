// What a turn's prompt has in common with what the session held before an edit: runs of tokens that stood behind other
// text, or elsewhere, come in without a forward pass, from the records that their blocks have in the cold store.
//
//   before    |--- kept ---|~~ edited away ~~|------- run -------|          blocks of before: donors
//   now       |--- kept ---|~ new ~|------- run -------|~~ new ~~|          the run is grafted behind what is new
//
// A graft is approximate (law 4): its K and V saw the old text. Its bytes depend on the donors, which slots of them and how
// far they were turned, and on nothing else; that is its lineage, so that no exact name ever means both.
#include <algorithm>

#include "base/clock.h"
#include "cache/frame_slots.h"
#include "session/turn.h"

namespace ebb {
namespace {

// Tokens that a run has at least. Fewer: steps are cut into small ones for little. More: short unchanged stretches between
// edits are computed again.
constexpr std::int32_t kLeastGraft = 32;

}  // namespace

std::deque<Turn::Graft> Turn::plan_grafts(Position edit, std::span<const Token> rest, std::int32_t n_recomputed) {
  std::deque<Graft> grafts;
  // Codes of a sealed block share scales between tokens, which one of them cannot take along.
  if (session_.parts_.store == nullptr || session_.parts_.mover == nullptr || session_.parts_.open_pool != nullptr ||
      session_.options_.remains != Remains::kBytes) {
    return grafts;
  }
  const std::int32_t block_size = session_.block_size();
  const std::span<const Token> before = std::span(session_.tokens_).subspan(edit.index());
  for (const TokenRun& run : find_runs(before, rest, kLeastGraft)) {
    const std::int32_t shift = run.from - run.to;
    const Span to = {edit + run.to, edit + run.to + run.n_tokens};
    for (std::int32_t b = to.begin.value() / block_size; Position(b * block_size) < to.end; ++b) {
      const Span piece = intersect(to, {Position(b * block_size), Position((b + 1) * block_size)});
      const Position first = piece.begin + n_recomputed;
      if (first < piece.end) grafts.push_back({.to = {first, piece.end}, .from = first + shift});
    }
  }
  // From the edit's block on: a run may stand anywhere behind it.
  donors_.clear();
  for (std::int32_t b = 0; b < session_.n_blocks(); ++b) {
    const BlockIndex block(b);
    // One that cannot be saved is computed again (law 8).
    if (b >= edit.value() / block_size && session_.residency_.is_hot(block)) (void)save(block);
    donors_.push_back({.name = session_.exact_name(block), .begin = session_.residency_.span(block).begin});
  }
  return grafts;
}

// As far as they go on from where the session ends.
Status Turn::take_grafts() {
  const Stopwatch watch;
  while (!grafts_.empty() && grafts_.front().to.begin <= session_.end()) {
    Graft& next = grafts_.front();
    const std::int32_t n_had = session_.end() - next.to.begin;
    next = {.to = {session_.end(), next.to.end}, .from = next.from + n_had};
    if (next.to.n_tokens() <= 0) {
      grafts_.pop_front();
      continue;
    }
    EBB_RETURN_IF_ERROR(take_graft(next));
  }
  stats_.recall_ms += watch.elapsed_ms();
  return {};
}

// What of it one donor has and the block under way holds. What is not to be had is left to be computed.
Status Turn::take_graft(Graft& graft) {
  EBB_RETURN_IF_ERROR(make_anchors_for(graft.to.n_tokens()));
  // Before the donor is turned: what leaves may close up, and what comes then has other anchors.
  if (room_in_last_block() == 0) {
    make_room(1);
    if (n_free_blocks() < 1) return no_room();
  }
  const std::int32_t block_size = session_.block_size();
  const Donor& donor = donors_[static_cast<std::size_t>(graft.from.value() / block_size)];
  const std::int32_t from = graft.from - donor.begin;
  const std::int32_t room = room_in_last_block() > 0 ? room_in_last_block() : block_size;
  const std::int32_t n_tokens = std::min({graft.to.n_tokens(), block_size - from, room});
  const std::span<const Token> wanted = std::span(pending_).first(static_cast<std::size_t>(n_tokens));
  if (!load_donor(donor, from, wanted).ok()) {
    ++session_.stats_.n_missed_recalls;
    graft = {.to = {graft.to.begin + n_tokens, graft.to.end}, .from = graft.from + n_tokens};
    return {};
  }
  const Position to = session_.end();
  place(n_tokens);
  copy_from_donor(from, to, n_tokens);
  const Hash128 name = Hasher()
                           .add_text("graft")
                           .add(donor.name)
                           .add(static_cast<std::uint64_t>(from))
                           .add(static_cast<std::uint64_t>(std::int64_t{donor_.n_anchors}))
                           .finish();
  stats_.n_grafted += n_tokens;
  ++session_.n_steps_;
  advance(n_tokens, name);
  return {};
}

// The donor's frames, turned so that its tokens from `slot` on, which are `wanted`, have the next anchors.
Status Turn::load_donor(const Donor& donor, std::int32_t slot, std::span<const Token> wanted) {
  ColdStore& store = *session_.parts_.store;
  const RecordKey key = {
      .model = session_.parts_.model, .layout = session_.parts_.memory.layout().fingerprint(), .name = donor.name};
  EBB_ASSIGN_OR_RETURN(const RecordHandle record, store.get(key));
  const auto n_before = static_cast<std::size_t>(slot);
  const std::span<const Token> tokens = record->tokens();
  const std::int32_t n_frames = session_.residency_.shape().frames_per_block();
  const RecordHeader& header = record->header();
  const bool has_frames =
      std::cmp_equal(header.n_frames, n_frames) &&
      header.frame_bytes == static_cast<std::size_t>(n_frames) * session_.parts_.memory.frame_bytes();
  if (!has_frames || tokens.size() < n_before + wanted.size() ||
      !std::ranges::equal(tokens.subspan(n_before, wanted.size()), wanted)) {
    store.refuse(record);
    return error(Code::kDamaged, "the record of a donor holds something else");
  }
  const std::int32_t n_anchors = session_.next_anchor_ - (record->header().anchor + slot);
  if (donor_.name == donor.name && donor_.n_anchors == n_anchors) return {};
  if (n_anchors != 0 && session_.parts_.mover == nullptr) {
    return error(Code::kUnsupported, "a donor cannot be moved by {} anchors here", n_anchors);
  }
  donor_ = {.name = donor.name, .n_anchors = n_anchors, .bytes = {}};
  donor_.bytes.reserve(record->header().frame_bytes);
  const Status copied = record->copy_frames([&](std::int32_t, std::span<const std::byte> frame) {
    donor_.bytes.insert(donor_.bytes.end(), frame.begin(), frame.end());
  });
  if (!copied.ok()) {
    donor_ = {};
    store.refuse(record);
    return copied;
  }
  if (n_anchors != 0) session_.parts_.mover->move(donor_.bytes, record->header().n_tokens, n_anchors);
  return {};
}

// Slots of the donor into the last block, from position `to` on.
void Turn::copy_from_donor(std::int32_t from, Position to, std::int32_t n_tokens) {
  FrameMemory& memory = session_.parts_.memory;
  const std::int32_t into = to - session_.residency_.span(last_block()).begin;
  std::vector<std::byte> target(memory.frame_bytes());
  std::span<const std::byte> source = donor_.bytes;
  for (const FrameIndex frame : frames_of(last_block())) {
    memory.read(frame, target);
    copy_slots(memory.layout(), source.first(memory.frame_bytes()), from, target, into, n_tokens);
    memory.write(frame, target);
    source = source.subspan(memory.frame_bytes());
  }
}

}  // namespace ebb
