#include "session/block_io.h"

#include <algorithm>
#include <new>

#include "cache/frame_slots.h"
#include "store/body_checksum.h"

namespace ebb {

// --- frames ---

bool BlockIo::is_open(BlockIndex block) const {
  if (!layout().seals()) return false;
  return hot_.n_hot_frames(block) > 0 ? hot_.is_open(block) : !hot_.is_full(block);
}

std::size_t BlockIo::frame_bytes(BlockIndex block) const {
  return is_open(block) ? deps_.memory.open_frame_bytes() : deps_.memory.frame_bytes();
}

std::size_t BlockIo::block_bytes(BlockIndex block) const { return frame_bytes(block) * hot_.shape().n_heads(); }

std::span<const FrameIndex> BlockIo::frames(BlockIndex block) const {
  return hot_.is_open(block) ? hot_.open_frames(block) : hot_.frames(block);
}

void BlockIo::read(BlockIndex block, const HeadSet& heads, std::span<std::byte> bytes) const {
  const bool open = is_open(block);
  const std::size_t n = frame_bytes(block);
  EBB_CHECK(bytes.size() >= n * static_cast<std::size_t>(heads.count()), "{} bytes for {} frames of {}", bytes.size(),
            heads.count(), n);
  heads.for_each([&](std::size_t head) {
    const FrameIndex frame = frames(block)[head];
    if (open) {
      deps_.memory.read_open(frame, bytes.first(n));
    } else {
      deps_.memory.read(frame, bytes.first(n));
    }
    bytes = bytes.subspan(n);
  });
}

void BlockIo::write(BlockIndex block, const HeadSet& heads, std::span<const std::byte> bytes) {
  const bool open = is_open(block);
  const std::size_t n = frame_bytes(block);
  heads.for_each([&](std::size_t head) {
    const FrameIndex frame = frames(block)[head];
    if (open) {
      deps_.memory.write_open(frame, bytes.first(n));
    } else {
      deps_.memory.write(frame, bytes.first(n));
    }
    bytes = bytes.subspan(n);
  });
}

void BlockIo::prepare(BlockIndex block, const HeadSet& heads) {
  heads.for_each([&](std::size_t head) { deps_.memory.prepare(hot_.frames(block)[head]); });
}

std::vector<std::int32_t> BlockIo::anchors_from(BlockIndex block, Position from) const {
  std::vector<std::int32_t> n_anchors(hot_.shape().n_heads(), hot_.anchor(block) - from);
  const std::span<const std::int32_t> advances = hot_.advances(block);
  for (std::size_t head = 0; head < advances.size(); ++head) n_anchors[head] += advances[head];
  return n_anchors;
}

// Heads that are turned alike together, since the cosines are theirs in common.
void BlockIo::turn(BlockIndex block, const HeadSet& heads, std::span<std::byte> bytes,
                   std::span<const std::int32_t> n_anchors) const {
  const std::int32_t n_tokens = hot_.span(block).n_tokens();
  const std::size_t n = frame_bytes(block);
  HeadSet alike(hot_.shape().n_heads());
  std::int32_t by = 0;
  const auto turn_alike = [&] {
    const std::span<std::byte> own = bytes.first(n * static_cast<std::size_t>(alike.count()));
    bytes = bytes.subspan(own.size());
    if (by == 0 || own.empty()) return;
    EBB_CHECK(deps_.mover != nullptr, "block {} cannot be moved: no mover", block.value());
    if (is_open(block)) {
      deps_.mover->move_open(own, alike, n_tokens, by);
    } else {
      deps_.mover->move(own, alike, n_tokens, by);
    }
  };
  heads.for_each([&](std::size_t head) {
    if (n_anchors[head] != by) {
      turn_alike();
      alike = HeadSet(hot_.shape().n_heads());
      by = n_anchors[head];
    }
    alike.add(head);
  });
  turn_alike();
}

void BlockIo::copy_rows(std::span<const std::byte> source, std::int32_t from, BlockIndex block, std::int32_t to,
                        std::int32_t n_rows) {
  FrameMemory& memory = deps_.memory;
  std::vector<std::byte> target(memory.frame_bytes());
  for (const FrameIndex frame : hot_.frames(block)) {
    memory.read(frame, target);
    copy_slots(memory.layout(), source.first(memory.frame_bytes()), from, target, to, n_rows);
    memory.write(frame, target);
    source = source.subspan(memory.frame_bytes());
  }
}

// --- records ---

Hash128 BlockIo::checksum(BlockIndex block) const {
  BodyHasher hasher(hot_.block_tokens(block));
  const std::span<const FrameIndex> frames = this->frames(block);
  const std::byte* const host = is_open(block) ? deps_.memory.open_host_bytes() : deps_.memory.host_bytes();
  const std::size_t n = frame_bytes(block);
  std::vector<std::byte> copy(host == nullptr ? n : 0);
  for (const FrameIndex frame : frames) {
    if (host != nullptr) {
      hasher.add_frame({host + frame.index() * n, n});
      continue;
    }
    deps_.memory.read(frame, copy);
    hasher.add_frame(copy);
  }
  return hasher.finish();
}

std::optional<Hash128> BlockIo::find(const Hash128& name) const {
  return deps_.store == nullptr ? std::nullopt : deps_.store->find(name);
}

bool BlockIo::is_saved(BlockIndex block) const { return find_saved(block).has_value(); }

std::optional<Hash128> BlockIo::find_saved(BlockIndex block) const {
  const std::optional<Hash128> kept = find(hot_.exact_name(block));
  const Hash128& body = hot_.info(block).body;
  return kept && (body == Hash128() || body == *kept) ? kept : std::nullopt;
}

RecordKey BlockIo::record_key(const Hash128& name) const {
  return {.model = deps_.model, .layout = layout().fingerprint(), .name = name};
}

RecordHeader BlockIo::header(BlockIndex block) const {
  return {.key = record_key(hot_.exact_name(block)),
          .body = hot_.info(block).body,
          .begin = hot_.span(block).begin,
          .anchor = hot_.anchor(block),
          .n_frames = hot_.shape().frames_per_block(),
          .frame_bytes = block_bytes(block)};
}

Status BlockIo::save(BlockIndex block) {
  if (deps_.store == nullptr) return error(Code::kNotFound, "no cold store to save block {} to", block.value());
  wait_for_copy(block);
  const Hash128 name = hot_.exact_name(block);
  // The store's threads may drop a record at any time: what was found is asked about once.
  if (const std::optional<Hash128> saved = find_saved(block); saved && deps_.store->touch(name, *saved)) return {};
  if (hot_.is_turned(block)) {
    return error(Code::kNotFound, "block {} was moved, and its own bytes are no longer kept", block.value());
  }
  const HeadSet all = hot_.shape().all_heads();
  if (hot_.hot_heads(block) != all) {
    return error(Code::kNotFound, "block {} is hot in {} of {} heads, and the others are no longer kept", block.value(),
                 hot_.n_hot_frames(block), all.count());
  }
  RecordBuilder record(header(block), hot_.block_tokens(block));
  read(block, all, record.frames());
  EBB_ASSIGN_OR_RETURN(const bool is_kept, deps_.store->put(std::move(record).seal()));
  if (is_kept) return {};
  return error(Code::kNotFound, "other bytes than those of block {} are kept under its name", block.value());
}

void BlockIo::save_behind(BlockIndex block) {
  // Frames of other devices are read by the thread that computes.
  if (deps_.store == nullptr || !is_on_host() || hot_.hot_heads(block) != hot_.shape().all_heads()) return;
  const FrameMemory& memory = deps_.memory;
  const std::span<const FrameIndex> frames = hot_.frames(block);
  deps_.store->put_behind(
      header(block), hot_.block_tokens(block),
      [&memory, own = std::vector<FrameIndex>(frames.begin(), frames.end())](std::span<std::byte> bytes) {
        for (const FrameIndex frame : own) {
          memory.read(frame, bytes.first(memory.frame_bytes()));
          bytes = bytes.subspan(memory.frame_bytes());
        }
      });
}

void BlockIo::wait_for_copy(BlockIndex block) const {
  if (deps_.store != nullptr) deps_.store->wait(hot_.exact_name(block));
}

std::vector<std::int32_t> BlockIo::frames_of(const HeadSet& heads) {
  EBB_CHECK(!heads.empty(), "frames of no head");
  std::vector<std::int32_t> frames;
  if (static_cast<std::size_t>(heads.count()) == heads.n_heads()) return frames;
  heads.for_each([&](std::size_t head) { frames.push_back(static_cast<std::int32_t>(head)); });
  return frames;
}

Result<RecordHandle> BlockIo::get(BlockIndex block, const HeadSet& heads) const {
  if (deps_.store == nullptr) return error(Code::kNotFound, "no cold store to recall block {} from", block.value());
  EBB_ASSIGN_OR_RETURN(RecordHandle record, deps_.store->get(record_key(hot_.exact_name(block)), frames_of(heads)));
  EBB_RETURN_IF_ERROR(check(block, record));
  return record;
}

Status BlockIo::check(BlockIndex block, const RecordHandle& record) const {
  const RecordHeader wanted = header(block);
  const RecordHeader& found = record->header();
  if (found.key == wanted.key && found.begin == wanted.begin && found.n_frames == wanted.n_frames &&
      found.frame_bytes == wanted.frame_bytes && std::ranges::equal(record->tokens(), hot_.block_tokens(block))) {
    if (wanted.body == Hash128() || wanted.body == found.body) return {};
    // It is sound, and another's.
    return error(Code::kNotFound, "the record of block {} has the bytes that another session computed", block.value());
  }
  deps_.store->refuse(record);
  return error(Code::kDamaged, "the record of block {} holds something else", block.value());
}

Status BlockIo::copy_out(const EncodedRecord& record, const HeadSet& heads, std::span<std::byte> bytes) {
  return record.copy_frames(
      [&](std::int32_t, std::span<const std::byte> frame) {
        std::ranges::copy(frame, bytes.begin());
        bytes = bytes.subspan(frame.size());
      },
      frames_of(heads));
}

Status BlockIo::fill(BlockIndex block, const HeadSet& heads, const EncodedRecord& record) try {
  const Position from = record.header().anchor;
  const std::size_t n = frame_bytes(block);
  if (hot_.anchor(block) != from || hot_.is_uneven(block)) {
    if (deps_.mover == nullptr) {
      return error(Code::kUnsupported, "block {} cannot be moved by {} anchors here", block.value(),
                   hot_.anchor(block) - from);
    }
    std::vector<std::byte> bytes(n * static_cast<std::size_t>(heads.count()));
    EBB_RETURN_IF_ERROR(copy_out(record, heads, bytes));
    turn(block, heads, bytes, anchors_from(block, from));
    write(block, heads, bytes);
    return {};
  }
  const std::span<const FrameIndex> frames = this->frames(block);
  FrameMemory& memory = deps_.memory;
  if (std::byte* const host = is_open(block) ? memory.open_host_bytes() : memory.host_bytes(); host != nullptr) {
    // Past the processor's cache: a turn recalls more than fits there.
    std::vector<std::byte*> into;
    into.reserve(heads.n_heads());
    heads.for_each([&](std::size_t head) { into.push_back(host + frames[head].index() * n); });
    return record.copy_frames(into, frames_of(heads));
  }
  return record.copy_frames(
      [&](std::int32_t head, std::span<const std::byte> bytes) {
        memory.write(frames[static_cast<std::size_t>(head)], bytes);
      },
      frames_of(heads));
} catch (const std::bad_alloc&) {
  return error(Code::kOutOfBudget, "no memory to recall block {}", block.value());
}

}  // namespace ebb
