// BlockIo: moves the bytes of blocks between frames and records of the cold store.
//
// It reads and writes frames that a hot set says a block has, in the form that the block has (open or sealed), and
// turns keys to other anchors on the way. What is hot it never changes, what is evicted or recalled it does not decide.
//
// Buffers hold the frames of some heads of one block, by rising head, one after the other. A record is always of all
// heads: a block that is hot in some only, and has no record, cannot be saved.
//
// Thread rule: as its hot set's; fill() may run for different blocks at once.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/frame_memory.h"
#include "cache/hot_set.h"
#include "model/key_rotation.h"
#include "store/cold_store.h"

namespace ebb {

class BlockIo {
 public:
  struct Deps {
    FrameMemory& memory;
    // Null: no bytes are kept of what is evicted.
    ColdStore* store = nullptr;
    // Null: blocks cannot be moved to other anchors.
    const BlockMover* mover = nullptr;
    Hash128 model;
  };

  BlockIo(const Deps& deps, const HotSet& hot) : deps_(deps), hot_(hot) {}

  [[nodiscard]] const FrameLayout& layout() const { return deps_.memory.layout(); }
  [[nodiscard]] bool can_move() const { return deps_.mover != nullptr; }
  [[nodiscard]] bool has_store() const { return deps_.store != nullptr; }
  // Several threads may fill frames at once.
  [[nodiscard]] bool is_on_host() const { return deps_.memory.host_bytes() != nullptr; }

  // --- frames ---
  // Whether a block's rows are, or would be if it were hot, in open frames.
  [[nodiscard]] bool is_open(BlockIndex block) const;
  // The bytes of one frame of the block, in the form that it has.
  [[nodiscard]] std::size_t frame_bytes(BlockIndex block) const;
  // The bytes of all of the block's frames.
  [[nodiscard]] std::size_t block_bytes(BlockIndex block) const;
  // Those of heads in which it is hot.
  void read(BlockIndex block, const HeadSet& heads, std::span<std::byte> bytes) const;
  void write(BlockIndex block, const HeadSet& heads, std::span<const std::byte> bytes);
  // Before new frames of a block are computed into.
  void prepare(BlockIndex block, const HeadSet& heads);
  // By how many anchors keys that lie at `from` are turned to where the block's lie, [layer][KV head].
  [[nodiscard]] std::vector<std::int32_t> anchors_from(BlockIndex block, Position from) const;
  // Turns bytes that read() gave, or a record holds, by so many anchors, [layer][KV head].
  void turn(BlockIndex block, const HeadSet& heads, std::span<std::byte> bytes,
            std::span<const std::int32_t> n_anchors) const;
  // Rows of a whole block's bytes into the frames of the last one, which is hot in every head.
  void copy_rows(std::span<const std::byte> source, std::int32_t from, BlockIndex block, std::int32_t to,
                 std::int32_t n_rows);

  // --- records ---
  // What the frames of a block hold, which is hot in every head: the body checksum that its record would have.
  [[nodiscard]] Hash128 checksum(BlockIndex block) const;
  // The body that is kept, or about to be, under a name; nothing where none is.
  [[nodiscard]] std::optional<Hash128> find(const Hash128& name) const;
  // Whether what is kept under the block's name is what the block's name means.
  [[nodiscard]] bool is_saved(BlockIndex block) const;
  // Now; waits where the store's queue is full. kNotFound where there is nothing to save, or nowhere.
  Status save(BlockIndex block);
  // The store's thread copies the frames of a full block, which must not change until wait_for_copy().
  void save_behind(BlockIndex block);
  void wait_for_copy(BlockIndex block) const;
  [[nodiscard]] RecordKey record_key(const Hash128& name) const;
  // The record of a block, with the frames of these heads at least: sound as far as its header and tokens go.
  [[nodiscard]] Result<RecordHandle> get(BlockIndex block, const HeadSet& heads) const;
  // Whether a record that was read is the block's. One that is of no such block is refused; one that has other bytes of
  // it stays for whom it serves.
  [[nodiscard]] Status check(BlockIndex block, const RecordHandle& record) const;
  // New frames of a block in these heads, from its record, turned to the block's anchor. Writes nothing but those
  // frames. kDamaged when the bytes were not what was saved, kOutOfBudget when memory is short.
  Status fill(BlockIndex block, const HeadSet& heads, const EncodedRecord& record);
  void refuse(const RecordHandle& record) const { deps_.store->refuse(record); }
  // The frames of some heads as a record has them.
  static Status copy_out(const EncodedRecord& record, const HeadSet& heads, std::span<std::byte> bytes);
  // The frame numbers of heads, as records count them; none where they are all, which a store reads, and keeps nearer, whole.
  [[nodiscard]] static std::vector<std::int32_t> frames_of(const HeadSet& heads);

  [[nodiscard]] ColdStore* store() const { return deps_.store; }

 private:
  [[nodiscard]] std::span<const FrameIndex> frames(BlockIndex block) const;
  [[nodiscard]] RecordHeader header(BlockIndex block) const;
  // What is kept under the block's name, where that is what the name means.
  [[nodiscard]] std::optional<Hash128> find_saved(BlockIndex block) const;

  Deps deps_;
  const HotSet& hot_;
};

}  // namespace ebb
