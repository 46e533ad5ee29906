// Finder: what is known of a session's blocks by which they are found again when they are cold: their words, and digests of their keys.
//
// Words are listed when a block is full. Digests (model/key_digest.h) are made when a block first leaves any head, and of hot blocks
// when somebody looks: a session from which nothing leaves pays nothing. They stay while the block is cold, in memory that all
// sessions share and that is bounded (ByteRoom): a block for which there is no room has none, and is found by words alone. What looks at many
// blocks go by first (model/key_bounds.h) is kept in the same room.
//
// keep() writes digests to the cold store, where any block ever left, each in a record beside its block's: a session that comes back from its image reads those of
// cold blocks when somebody first looks. A digest that is lost is made again when its block is hot.
//
// It reads frames and texts, chooses nothing and moves nothing. Thread rule: as its session's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/byte_room.h"
#include "cache/block_shape.h"
#include "model/key_bounds.h"
#include "model/key_scorer.h"
#include "policy/cues.h"
#include "policy/selector.h"
#include "session/block_io.h"
#include "text/vocabulary.h"

namespace ebb {

// What of what was said is looked through for cues: these blocks, for those that stand there.
struct SaidIn {
  BlockIndex from;
  BlockIndex to;
  SaidWhere where = SaidWhere::kAtEnds;
};

class Finder {
 public:
  struct Deps {
    const HotSet& hot;
    const BlockIo& io;
    const Vocabulary& vocabulary;
    const BlockShape& shape;
    // Either null: no digests are made.
    const KeyScorer* scorer = nullptr;
    ByteRoom* room = nullptr;
  };
  explicit Finder(const Deps& deps) : deps_(deps), layout_(KeyDigestLayout::of(deps.io.layout())) {}
  ~Finder();
  Finder(const Finder&) = delete;
  Finder& operator=(const Finder&) = delete;

  // A block became full.
  void note_full(BlockIndex block);
  // It is about to leave some heads.
  void note_leaving(BlockIndex block);
  // This block and those behind it are forgotten, up to n_blocks.
  void forget_from(BlockIndex first, std::int32_t n_blocks);
  // All full blocks are listed when somebody first looks: those of a restored session.
  void await() { awaits_ = true; }

  [[nodiscard]] const WordIndex& words();
  // As far as known without listing those that are awaited.
  [[nodiscard]] const WordIndex& known_words() const { return words_; }
  [[nodiscard]] std::vector<CueRanking> rank(std::span<const Cue> cues);
  // Blocks, in order, in which a cue that leads stands word for word; `rankings` are of these cues.
  [[nodiscard]] std::vector<BlockIndex> find_said(std::span<const Cue> cues, std::span<const CueRanking> rankings,
                                                  const SaidIn& in) const;

  // Of a look for one sentence by words: as cost_in_tokens() has it.
  [[nodiscard]] double cost_of_words() const;
  // Of a word that tells blocks apart; 0 of others.
  [[nodiscard]] double rarity(const std::string& word) { return words().tells(word) ? words().rarity(word) : 0.0; }
  [[nodiscard]] bool is_rare(const std::string& word) { return words().is_rare(word); }

  [[nodiscard]] bool makes_digests() const { return deps_.scorer != nullptr && deps_.room != nullptr; }
  // Of full blocks that have a digest or are hot and get one now, those that anything is given; and how many there are. `rows` are queries
  // behind all of those blocks.
  struct Shares {
    std::vector<BlockShare> shares;
    std::int32_t n_scored = 0;
  };
  [[nodiscard]] Shares score(const TailQueries& queries, Span rows, DigestForm form);
  // KeyScorer's, of all blocks.
  [[nodiscard]] double cost_in_tokens(std::int32_t n_rows) const;
  [[nodiscard]] std::size_t digest_bytes() const { return n_bytes_; }
  // Those that are not there yet; what the store has no room for is let be.
  void keep();

 private:
  struct Digest {
    // [layer][KV head][KeyDigestLayout::bytes()]; empty: none.
    std::vector<std::byte> bytes;
    // No two have the same.
    std::uint64_t id = 0;
    // Of its block, when it was made. One that has another name since, and is hot, gets another digest.
    Hash128 name;
    Position anchor;
    bool is_kept = false;
    // The store was asked for it.
    bool was_sought = false;
  };

  void list_words(BlockIndex block);
  [[nodiscard]] bool holds(BlockIndex first, std::int32_t n_blocks, std::string_view text) const;
  [[nodiscard]] std::vector<BlockIndex> find_said_about(BlockIndex block, BlockIndex from, BlockIndex to,
                                                        std::string_view text) const;
  void make_digest(BlockIndex block);
  void read_digest(BlockIndex block);
  [[nodiscard]] bool take_room(Digest& digest);
  // What is kept of looks at so many blocks, for a look by sketches that goes by bounds; null: there is no room.
  [[nodiscard]] KeyBounds* take_bounds(std::size_t n_blocks);
  [[nodiscard]] RecordKey key(const Hash128& block_name) const;
  void drop(Digest& digest);

  Deps deps_;
  KeyDigestLayout layout_;
  WordIndex words_;
  bool awaits_ = false;
  std::vector<Digest> digests_;  // [block]
  std::uint64_t last_id_ = 0;
  KeyBounds bounds_;
  std::size_t n_bounds_bytes_ = 0;
  std::size_t n_bytes_ = 0;  // of digests and bounds
};

}  // namespace ebb
