// Snapshots: what a session's sequence state was at the borders of its blocks, and the way back to it.
//
// At each border that a step passes, a snapshot is taken and saved as a record of its own kind. Its name hashes that of the
// border before and the exact name of the block between them, as it was called then: the state behind a border has seen every
// token before it, also those of blocks that were holes, of which the block's own name says nothing. So whoever computed the
// same finds it, and nobody takes another's for it (law 4). One name has one body, as with blocks (law 2).
//
//   border   0          1          2          3
//            |- block 0 -|- block 1 -|- block 2 -|- open ...        name(i + 1) = hash(name(i), exact name of block i)
//            reset      taken      taken      taken     ^ end: where the state stands
//
// A cut goes back to the last border whose snapshot is to be had, and what lies between is computed again: without any, from
// the first token (law 8). Evicting and recalling blocks touches nothing here.
//
// In memory are the last kHeldSnapshots, shared with a tier that has them, and while a block is computed again the state that
// waits; all others lie in the cold store. It knows no frames and no turns. Thread rule: as its session's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/status.h"
#include "cache/hot_set.h"
#include "model/sequence_state.h"
#include "store/cold_store.h"

namespace ebb {

// Snapshots that a session holds whatever the store does. Fewer: without a store, an edit of the last message computes
// everything again. More: memory beside every budget, for each session.
inline constexpr std::size_t kHeldSnapshots = 2;

class Snapshots {
 public:
  struct Deps {
    SequenceState& state;
    // Null: nothing is saved.
    ColdStore* store = nullptr;
    Hash128 model;
    std::int32_t block_size = 0;
  };
  struct Border {
    Hash128 name;
    // What its record must have; zero: what the name says is enough.
    Hash128 body;

    friend bool operator==(const Border&, const Border&) = default;
  };

  // Before the first token.
  explicit Snapshots(const Deps& deps);

  // Where the state stands.
  [[nodiscard]] Position end() const { return end_; }
  // Behind each full block, in order.
  [[nodiscard]] const std::vector<Border>& borders() const { return borders_; }

  // --- steps ---
  void begin_step(std::int32_t n_rows);
  void drop_step() { deps_.state.drop_step(); }
  // The step passed the border behind this block, whose name is final.
  void take(const Hash128& exact_name);
  void end_step(Position end);
  // The rows of a block are computed again, from the state before it; until end_again() the session's own waits. kNotFound,
  // and nothing changes, where that one is not to be had.
  Status begin_again(BlockIndex block);
  void end_again();

  // --- going back ---
  // To `end` at most: returns where the state stands then.
  Position roll_back(Position end);
  // What the store has lost of those that are held.
  void save();
  // Those of an image; the state still stands before the first token, until it is rolled "back" to one of them.
  void restore(std::vector<Border> borders);

  // --- adopting ---
  // How many of these blocks, behind the last border, the state can go along with, and what is to be read for it; nothing where
  // it can with none.
  struct Reach {
    std::size_t n_blocks = 0;
    RecordKey key;
  };
  [[nodiscard]] std::optional<Reach> find_reach(std::span<const HotSet::NamedBlock> blocks) const;
  // These blocks stand behind the last border now; `read` is what was found for them, or null. Returns how far the state
  // came along.
  Position adopt(std::span<const HotSet::NamedBlock> blocks, const RecordHandle& read);

 private:
  [[nodiscard]] Hash128 name_behind(const Hash128& border, const Hash128& exact_name) const;
  [[nodiscard]] Hash128 last_name() const { return borders_.empty() ? Hash128() : borders_.back().name; }
  [[nodiscard]] RecordKey key(const Hash128& name) const;
  [[nodiscard]] std::optional<Hash128> find(const Hash128& name) const;
  [[nodiscard]] RecordHandle make_record(const Hash128& name, std::size_t i) const;
  void hold(RecordHandle record);
  [[nodiscard]] RecordHandle get(const Hash128& name);
  bool load(std::int32_t n_borders);

  Deps deps_;
  std::vector<Border> borders_;
  std::vector<RecordHandle> held_;  // the newest last
  Position end_;
  // What belongs to the step under way.
  std::size_t n_taken_ = 0;
  // What waits while a block is computed again.
  std::vector<std::byte> waiting_;
};

}  // namespace ebb
