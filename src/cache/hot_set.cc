#include "cache/hot_set.h"

#include <algorithm>
#include <utility>

#include "base/to_size.h"

namespace ebb {
namespace {

// Entries of each table that are edited in place between two steps; each moves those behind it. More: as many moves as a
// table has entries would cost its square. Fewer: steps that move little derive whole tables.
constexpr std::size_t kMostEdits = 4;

}  // namespace

HotSet::HotSet(const Sources& sources, const BlockShape& shape, const Hash128& identity)
    : sources_(sources),
      shape_(shape),
      identity_(identity),
      tables_(shape.n_layers, shape.n_kv_heads),
      stale_(shape.n_heads()) {
  EBB_CHECK(shape.n_layers > 0 && shape.n_kv_heads > 0 && shape.block_size > 0, "{} layers, {} heads, blocks of {}",
            shape.n_layers, shape.n_kv_heads, shape.block_size);
  for (std::int32_t l = 0; l < shape.n_layers; ++l) {
    const std::int32_t window = shape.window(LayerIndex(l));
    if (window <= 0) continue;
    auto group = std::ranges::find(groups_, window, &WindowGroup::window);
    if (group == groups_.end()) {
      groups_.push_back({.window = window, .heads = HeadSet(shape.n_heads())});
      group = groups_.end() - 1;
    }
    group->heads |= shape.heads_of(LayerIndex(l));
  }
}

HotSet::~HotSet() {
  while (!hot_.empty()) leave(hot_.back());
}

HotSet::Block& HotSet::get(BlockIndex block) {
  EBB_CHECK(block.value() >= 0 && block.value() < n_blocks(), "block {} of {}", block.value(), n_blocks());
  return blocks_[block.index()];
}

const HotSet::Block& HotSet::get(BlockIndex block) const {
  EBB_CHECK(block.value() >= 0 && block.value() < n_blocks(), "block {} of {}", block.value(), n_blocks());
  return blocks_[block.index()];
}

// --- what there is ---

Span HotSet::span(BlockIndex block) const {
  EBB_CHECK(block.value() >= 0 && block.value() < n_blocks(), "block {} of {}", block.value(), n_blocks());
  const Position begin(block.value() * shape_.block_size);
  return {begin, std::min(begin + shape_.block_size, rows_end_)};
}

std::span<const Token> HotSet::block_tokens(BlockIndex block) const {
  const Span span = intersect(this->span(block), {Position(0), end()});
  if (span.empty()) return {};  // rows for tokens to come
  return std::span(tokens_).subspan(span.begin.index(), static_cast<std::size_t>(span.n_tokens()));
}

std::int32_t HotSet::room_in_last_block() const {
  if (blocks_.empty() || blocks_.back().n_hot < shape_.frames_per_block()) return 0;
  return shape_.block_size - span(last_block()).n_tokens();
}

HeadSet HotSet::wanted_heads(BlockIndex block) const {
  HeadSet heads = shape_.all_heads();
  for (const WindowGroup& group : groups_) {
    if (block.value() < group.n_behind) heads -= group.heads;
  }
  return heads;
}

HeadSet HotSet::missing_window_heads(BlockIndex block) const {
  HeadSet heads(shape_.n_heads());
  for (const WindowGroup& group : groups_) {
    if (block.value() >= group.n_behind) heads |= group.heads;
  }
  return heads - hot_heads(block);
}

HeadSet HotSet::hot_heads(BlockIndex block) const {
  HeadSet heads(shape_.n_heads());
  const Block& b = get(block);
  for (std::size_t head = 0; head < b.frames.size(); ++head) {
    if (b.frames[head] != kNoFrame) heads.add(head);
  }
  return heads;
}

// What lies behind its window has no frames there, so that counts suffice.
bool HotSet::is_hot(BlockIndex block) const {
  std::int32_t n_wanted = shape_.frames_per_block();
  for (const WindowGroup& group : groups_) {
    if (block.value() < group.n_behind) n_wanted -= group.heads.count();
  }
  return get(block).n_hot == n_wanted;
}

bool HotSet::is_hot(BlockIndex block, std::size_t head) const {
  const Block& b = get(block);
  return !b.frames.empty() && b.frames[head] != kNoFrame;
}

std::int32_t HotSet::n_own_frames(BlockIndex block) const {
  const Block& b = get(block);
  if (!b.listed) return b.n_hot;
  return static_cast<std::int32_t>(std::ranges::count_if(
      b.frames, [&](FrameIndex frame) { return frame != kNoFrame && sources_.pool.n_users(frame) == 1; }));
}

std::int32_t HotSet::n_own_frames(BlockIndex block, std::size_t head) const {
  return is_hot(block, head) && sources_.pool.n_users(get(block).frames[head]) == 1 ? 1 : 0;
}

const FrameTables& HotSet::tables() const {
  edit_tables();
  stale_.for_each([&](std::size_t head) { tables_.entries(head).clear(); });
  if (stale_.count() > 0) {
    // Block by block, since the frames of one lie together.
    for (const BlockIndex block : hot_) {
      const Block& b = blocks_[block.index()];
      stale_.for_each([&](std::size_t head) {
        if (b.frames[head] != kNoFrame) tables_.entries(head).push_back(entry(block, head));
      });
    }
    stale_ = HeadSet(shape_.n_heads());
  }
  tables_.set_end(rows_end_);
  return tables_;
}

TableEntry HotSet::entry(BlockIndex block, std::size_t head) const {
  const Block& b = blocks_[block.index()];
  return {.frame = b.frames[head],
          .begin = span(block).begin,
          .n_tokens = span(block).n_tokens(),
          .open = b.open.empty() ? kNoFrame : b.open[head]};
}

// A step that evicts or recalls a block or two costs that many entries of each table, not all of them; and only the step
// does, whatever left and came before it.
void HotSet::note_change(BlockIndex block) {
  if (std::ranges::find(changed_, block) != changed_.end()) return;
  changed_.push_back(block);
  if (changed_.size() <= kMostEdits) return;
  stale_ = shape_.all_heads();
  changed_.clear();
}

void HotSet::edit_tables() const {
  for (std::size_t head = 0; head < shape_.n_heads() && !changed_.empty(); ++head) {
    if (stale_.contains(head)) continue;
    std::vector<TableEntry>& entries = tables_.entries(head);
    for (const BlockIndex block : changed_) {
      const Position begin(block.value() * shape_.block_size);
      const auto at = std::ranges::lower_bound(entries, begin, {}, &TableEntry::begin);
      const bool is_there = at != entries.end() && at->begin == begin;
      // One that was forgotten since is hot no more.
      if (block.value() >= n_blocks() || !is_hot(block, head)) {
        if (is_there) entries.erase(at);
      } else if (is_there) {
        *at = entry(block, head);
      } else {
        entries.insert(at, entry(block, head));
      }
    }
  }
  changed_.clear();
}

// --- tokens ---

Status HotSet::open(std::int32_t n_tokens) {
  EBB_CHECK(n_tokens > 0 && rows_end_ == end(), "rows for {} tokens behind {}, and {} has none yet", n_tokens,
            rows_end_.value(), end().value());
  EBB_CHECK(blocks_.empty() || is_full(last_block()) || blocks_.back().n_hot == shape_.frames_per_block(),
            "rows behind block {}, which is hot in {} heads of {}", last_block().value(), blocks_.back().n_hot,
            shape_.frames_per_block());
  edit_tables();
  while (n_tokens > 0) {
    if (room_in_last_block() == 0) {
      if (const Status opened = open_block(); !opened.ok()) {
        drop_rows();
        return opened;
      }
    }
    const std::int32_t n = std::min(n_tokens, room_in_last_block());
    rows_end_ = rows_end_ + n;
    note_rows(last_block());
    n_tokens -= n;
  }
  if (room_in_last_block() == 0) return {};
  const Status held = hold_open(last_block());
  if (!held.ok()) drop_rows();
  return held;
}

Status HotSet::open_block() {
  std::vector<FrameIndex> frames(shape_.n_heads());
  EBB_RETURN_IF_ERROR(sources_.pool.acquire(frames));
  const Position anchor = next_anchor_ + (rows_end_ - end());
  blocks_.push_back({.info = {.anchor = anchor, .epoch = epoch_}});
  const BlockIndex block = last_block();
  n_moved_ += is_moved(block) ? 1 : 0;
  blocks_.back().frames = std::move(frames);
  blocks_.back().n_hot = shape_.frames_per_block();
  n_hot_frames_ += shape_.frames_per_block();
  hot_.push_back(block);
  for (std::size_t head = 0; head < shape_.n_heads(); ++head) {
    if (stale_.contains(head)) continue;
    tables_.entries(head).push_back({.frame = blocks_.back().frames[head], .begin = rows_end_, .n_tokens = 0});
  }
  return {};
}

// The block has as many rows as span() says.
void HotSet::note_rows(BlockIndex block) {
  const std::int32_t n_tokens = span(block).n_tokens();
  for (std::size_t head = 0; head < shape_.n_heads(); ++head) {
    if (stale_.contains(head) || !is_hot(block, head)) continue;
    tables_.entries(head).back().n_tokens = n_tokens;
  }
}

void HotSet::append(std::span<const Token> tokens, const std::optional<Hash128>& source) {
  Position next = end();
  EBB_CHECK(next + static_cast<std::int32_t>(tokens.size()) <= rows_end_, "{} tokens at {}, and rows up to {}",
            tokens.size(), next.value(), rows_end_.value());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  next_anchor_ = next_anchor_ + static_cast<std::int32_t>(tokens.size());
  while (next < end()) {
    const BlockIndex block = block_at(next);
    const Position piece_end = std::min(end(), Position((block.value() + 1) * shape_.block_size));
    Block& b = get(block);
    if (source) {
      b.info.lineage.add(*source, piece_end - next);
    } else {
      add_lineage(block, {next, piece_end});
    }
    b.info.body = Hash128();
    b.info.is_exact = b.info.is_exact && !source && n_moved_ == 0;
    b.name.reset();
    if (piece_end.value() % shape_.block_size == 0) {
      seal(block);
      whole_.push(leaf(block, nullptr));
      visible_.push({});
      update_leaf(block);
    }
    next = piece_end;
  }
}

// Rows that were computed now, of one block.
void HotSet::add_lineage(BlockIndex block, Span rows) {
  const Hash128 visible = visible_before(block);
  while (!rows.empty()) {
    const std::int32_t n_alike = sight_.fit(rows.begin, rows.n_tokens());
    const Span alike = {rows.begin, rows.begin + n_alike};
    get(block).info.lineage.add(
        sight_.seen(visible, alike.begin,
                    std::span(tokens_).subspan(to_size(alike.begin.value()), to_size(alike.n_tokens()))),
        n_alike);
    rows.begin = alike.end;
  }
}

void HotSet::drop_rows() {
  while (!blocks_.empty() && Position((n_blocks() - 1) * shape_.block_size) >= end()) drop_last_block();
  if (rows_end_ == end()) return;
  rows_end_ = end();
  stale_ = shape_.all_heads();
}

void HotSet::drop_last_block() {
  leave(last_block());
  n_moved_ -= is_moved(last_block()) ? 1 : 0;
  rows_end_ = std::min(rows_end_, Position((n_blocks() - 1) * shape_.block_size));
  blocks_.pop_back();
}

BlockIndex HotSet::add_cold(std::span<const Token> tokens, Lineage lineage, const Hash128& body) {
  const Position anchor = next_anchor_;
  next_anchor_ = next_anchor_ + static_cast<std::int32_t>(tokens.size());
  const bool is_exact = n_moved_ == 0 && anchor == end();
  return add_cold(
      tokens, {.lineage = std::move(lineage), .body = body, .anchor = anchor, .is_exact = is_exact, .epoch = epoch_});
}

BlockIndex HotSet::add_cold(std::span<const Token> tokens, const BlockRecordInfo& info) {
  EBB_CHECK(rows_end_ == end() && end().value() % shape_.block_size == 0 && !tokens.empty() &&
                std::ssize(tokens) <= shape_.block_size,
            "{} tokens at {}", tokens.size(), end().value());
  blocks_.push_back({.info = info});
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  rows_end_ = end();
  const BlockIndex block = last_block();
  n_moved_ += is_moved(block) ? 1 : 0;
  if (is_full(block)) {
    whole_.push(leaf(block, nullptr));
    visible_.push({});
    update_leaf(block);
  }
  return block;
}

void HotSet::cut(Position end) {
  EBB_CHECK(rows_end_ == this->end() && end.value() >= 0 && end <= this->end(), "a cut at {} of {}", end.value(),
            this->end().value());
  const std::int32_t n_in_last = end.value() % shape_.block_size;
  while (n_blocks() > shape_.n_blocks(end.value())) drop_last_block();
  const auto n_full = static_cast<std::size_t>(end.value() / shape_.block_size);
  visible_.truncate(std::min(visible_.size(), n_full));
  whole_.truncate(std::min(whole_.size(), n_full));
  if (n_in_last > 0 && end < this->end()) {
    Block& b = blocks_.back();
    EBB_CHECK(b.n_hot == 0 || (!b.listed && (sources_.open_pool == nullptr || !b.open.empty())),
              "block {} is cut while its rows are sealed, or others may use them", last_block().value());
    b.info.lineage.truncate(n_in_last);
    b.info.body = Hash128();
    b.name.reset();
  }
  tokens_.resize(end.index());
  rows_end_ = end;
  stale_ = shape_.all_heads();
  if (eye_ > end) look_from(end);
}

void HotSet::set_lineage(BlockIndex block, Lineage lineage) {
  Block& b = get(block);
  EBB_CHECK(!b.listed, "block {} is computed again in frames that others may use", block.value());
  b.info.lineage = std::move(lineage);
  b.info.variant = Hash128();
  b.info.is_exact = n_moved_ == 0;
  b.turned = false;
  rename(block);
}

void HotSet::set_body(BlockIndex block, const Hash128& body, const Hash128& variant) {
  Block& b = get(block);
  b.info.body = body;
  EBB_CHECK(variant == Hash128() || !b.listed, "block {} is renamed while others may use its frames", block.value());
  if (variant != Hash128()) b.info.variant = variant;
  rename(block);
}

// --- anchors ---

void HotSet::set_anchor(BlockIndex block, Position anchor) {
  Block& b = get(block);
  if (b.info.anchor == anchor) return;
  EBB_CHECK(!b.listed, "block {} moves in frames that others may use", block.value());
  change_moves(block, [&] { b.info.anchor = anchor; });
  update_leaf(block);
}

void HotSet::set_turned(BlockIndex block, bool turned) {
  Block& b = get(block);
  EBB_CHECK(!turned || !b.listed, "block {} was turned in frames that others may use", block.value());
  b.turned = turned;
}

void HotSet::set_renewed(BlockIndex block, const Hash128& rows) {
  Block& b = get(block);
  if (b.renewed == rows) return;
  EBB_CHECK(!b.listed && b.n_hot > 0, "rows of block {}, hot in {} heads, are computed again, {} others may use",
            block.value(), b.n_hot, b.listed ? "which" : "and no");
  change_moves(block, [&] { b.renewed = rows; });
  update_leaf(block);
}

void HotSet::set_advances(BlockIndex block, std::vector<std::int32_t> advances) {
  Block& b = get(block);
  if (b.advances == advances) return;
  EBB_CHECK(!b.listed && b.n_hot > 0, "block {} lies unevenly in {} heads, {} others may use", block.value(), b.n_hot,
            b.listed ? "which" : "and no");
  EBB_CHECK(advances.empty() || advances.size() == shape_.n_heads(), "block {} advances in {} heads of {}",
            block.value(), advances.size(), shape_.n_heads());
  change_moves(block, [&] { b.advances = std::move(advances); });
  update_leaf(block);
}

void HotSet::set_variant(BlockIndex block, const Hash128& variant) {
  Block& b = get(block);
  EBB_CHECK(!b.listed, "block {} is renamed while others may use its frames", block.value());
  b.info.variant = variant;
  b.info.is_exact = false;
  rename(block);
}

}  // namespace ebb
