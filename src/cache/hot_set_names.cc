// What a hot set's blocks are called, by what they hold and saw.
#include "cache/hot_set.h"

namespace ebb {
namespace {

std::uint64_t bits(std::int32_t n) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(n)); }

// A hash and how far an anchor lies from its position: what is computed beside a moved block is not what it would be.
Hash128 with_shift(const Hash128& hash, std::int32_t shift) { return hash_words({hash.low, hash.high, bits(shift)}); }

// What a block is to those behind it.
Hash128 whole_leaf(const Hash128& name, const Hash128& body, std::int32_t shift) {
  return hash_words({name.low, name.high, body.low, body.high, bits(shift)});
}

}  // namespace

Hash128 HotSet::exact_name(BlockIndex block) const {
  const Block& b = get(block);
  if (b.name) return *b.name;
  const Hash128 name = exact_name_of(span(block).begin, block_tokens(block), b.info.lineage, b.info.variant);
  if (has_all_tokens(block)) b.name = name;
  return name;
}

Hash128 HotSet::exact_name_of(Position begin, std::span<const Token> tokens, const Lineage& lineage,
                              const Hash128& variant) const {
  Hasher hasher;
  hasher.add(identity_).add(bits(begin.value()));
  lineage.hash_into(hasher);
  // What never moved has the name that every session gives it.
  if (variant != Hash128()) hasher.add(variant);
  return hasher.add_bytes(std::as_bytes(tokens)).finish();
}

Hash128 HotSet::place_name(Position begin, const Hash128& visible) const {
  return Hasher().add(identity_).add(bits(begin.value())).add(visible).finish();
}

Hash128 HotSet::visible_before(BlockIndex block) const {
  return with_shift(visible_.hash(block.index()), shift(block));
}

Hash128 HotSet::visible_behind() const {
  return sight_.seen(with_shift(visible_.hash(blocks_.size()), next_anchor_ - end()), end(), {});
}

std::vector<HotSet::NamedBlock> HotSet::names_behind(std::span<const Token> tokens, bool whole,
                                                     const FindBody& find_body) const {
  const auto size = static_cast<std::size_t>(shape_.block_size);
  PrefixHash::Peaks peaks = (whole ? whole_ : visible_).peaks(blocks_.size());
  const std::int32_t shift = next_anchor_ - end();
  std::vector<NamedBlock> names;
  for (Position begin = end(); tokens.size() >= size; begin = begin + shape_.block_size) {
    // A block whose rows do not all look at the same has no name before it is computed.
    if (sight_.fit(begin, shape_.block_size) < shape_.block_size) break;
    const Hash128 visible = sight_.seen(with_shift(peaks.hash(), shift), begin, tokens.first(size));
    Lineage lineage;
    lineage.add(visible, shape_.block_size);
    NamedBlock block = {.name = exact_name_of(begin, tokens.first(size), lineage, {}), .visible = visible};
    const std::optional<Hash128> body = find_body(block, tokens.first(size));
    if (!body) break;
    block.body = *body;
    names.push_back(block);
    peaks.push(whole_leaf(block.name, block.body, shift));
    tokens = tokens.subspan(size);
  }
  return names;
}

void HotSet::rename(BlockIndex block) {
  get(block).name.reset();
  if (block.index() < whole_.size()) whole_.set(block.index(), leaf(block, nullptr));
  update_leaf(block);
}

// What a full block is to those behind it: nothing where it is hot nowhere that they look; all of it, or all but `missing`.
Hash128 HotSet::leaf(BlockIndex block, const HeadSet* missing) const {
  Hash128 whole = whole_leaf(exact_name(block), get(block).info.body, shift(block));
  if (const std::span<const std::int32_t> advances = this->advances(block); !advances.empty()) {
    const Hash128 uneven = hash_bytes(std::as_bytes(advances));
    whole = hash_words({whole.low, whole.high, uneven.low, uneven.high, 1});
  }
  if (is_renewed(block)) whole = hash_words({whole.low, whole.high, renewed(block).low, renewed(block).high, 2});
  if (missing == nullptr || missing->empty()) return whole;
  const Hash128 but = hash_bytes(std::as_bytes(std::span(missing->words())));
  return hash_words({whole.low, whole.high, but.low, but.high});
}

void HotSet::update_leaf(BlockIndex block) {
  if (block.index() >= visible_.size()) return;
  whole_.set(block.index(), leaf(block, nullptr));
  if (is_hot(block)) return visible_.set(block.index(), leaf(block, nullptr));
  const HeadSet missing = missing_heads(block);
  const bool is_seen = get(block).n_hot > 0;
  visible_.set(block.index(), is_seen ? leaf(block, &missing) : Hash128());
}

// What others may use is listed under the block's name, and what is listed there and not its own is not in its frames.
void HotSet::check_sharing(BlockIndex block) const {
  const Block& b = get(block);
  EBB_CHECK((!b.turned && !is_uneven(block) && !is_renewed(block)) || !b.listed,
            "block {} is hot for others as what it is not", block.value());
  if (sources_.shared == nullptr) return;
  const HotBlock* const listed = has_all_tokens(block) ? sources_.shared->find(exact_name(block)) : nullptr;
  for (std::size_t head = 0; head < b.frames.size(); ++head) {
    if (b.frames[head] == kNoFrame) continue;
    const bool is_listed = listed != nullptr && listed->frames[head] == b.frames[head];
    EBB_CHECK(is_listed || sources_.pool.n_users(b.frames[head]) == 1,
              "block {} has another's frame in head {}, and it is not listed", block.value(), head);
    EBB_CHECK(!is_listed || (b.listed && listed == find_listed(block)),
              "block {} is listed in head {} and does not know it, or as what it is not", block.value(), head);
  }
}

void HotSet::check_invariants() const {
  std::int32_t n_frames = 0;
  std::vector<BlockIndex> hot;
  for (std::int32_t i = 0; i < n_blocks(); ++i) {
    const BlockIndex block(i);
    const Block& b = get(block);
    EBB_CHECK(i + 1 == n_blocks() || is_full(block), "block {} is neither full nor the last", i);
    EBB_CHECK(hot_heads(block).count() == b.n_hot, "{} frames of block {}, {} counted", hot_heads(block).count(), i,
              b.n_hot);
    EBB_CHECK((hot_heads(block) - wanted_heads(block)).empty(), "block {} is hot behind a window", i);
    n_frames += b.n_hot;
    if (b.n_hot > 0) hot.push_back(block);
    if (b.n_hot > 0 && !is_full(block)) {
      for (std::size_t head = 0; sources_.open_pool != nullptr && head < b.frames.size(); ++head) {
        EBB_CHECK(!b.open.empty() && (b.frames[head] == kNoFrame) == (b.open[head] == kNoFrame),
                  "block {} is neither full nor open in head {}", i, head);
      }
    }
    EBB_CHECK(b.advances.empty() || b.n_hot > 0, "block {} is hot nowhere and lies unevenly", i);
    EBB_CHECK(!is_renewed(block) || b.n_hot > 0, "block {} is hot nowhere, and rows of it were computed again", i);
    if (b.n_hot > 0 && !has_all_tokens(block)) {
      EBB_CHECK(b.advances.empty(), "tokens are to join block {}, which lies unevenly", i);
      const Position next = anchor(block) + (end() - span(block).begin);
      EBB_CHECK(next == next_anchor_, "the last block goes on at anchor {}, and new tokens at {}", next.value(),
                next_anchor_.value());
    }
    for (const FrameIndex frame : b.frames) {
      EBB_CHECK(frame == kNoFrame || sources_.pool.n_users(frame) > 0, "frame {} of block {} is free", frame.value(),
                i);
    }
    check_sharing(block);
  }
  EBB_CHECK(n_frames == n_hot_frames_ && hot == hot_, "{} hot frames, {} counted", n_frames, n_hot_frames_);
  const FrameTables& tables = this->tables();
  std::size_t n_entries = 0;
  for (std::size_t head = 0; head < shape_.n_heads(); ++head) {
    Position last_end(0);
    for (const TableEntry& entry : tables.entries(head)) {
      const Block& b = get(block_at(entry.begin));
      EBB_CHECK(entry.begin >= last_end && entry.span() == span(block_at(entry.begin)) &&
                    b.frames[head] == entry.frame && entry.open == (b.open.empty() ? kNoFrame : b.open[head]),
                "the entry at {} does not match its block", entry.begin.value());
      last_end = entry.span().end;
    }
    n_entries += tables.entries(head).size();
  }
  EBB_CHECK(n_entries == static_cast<std::size_t>(n_frames), "{} entries, {} frames", n_entries, n_frames);
  EBB_CHECK(visible_.size() == static_cast<std::size_t>(end().value() / shape_.block_size), "{} leaves up to {}",
            visible_.size(), end().value());
}

}  // namespace ebb
