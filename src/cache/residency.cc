#include "cache/residency.h"

#include <algorithm>

namespace ebb {
namespace {

bool begins_before(const TableEntry& entry, Position begin) { return entry.begin < begin; }

}  // namespace

Residency::Residency(FramePool& pool, const Shape& shape, FramePool* open_pool, HotBlocks* hot)
    : pool_(pool),
      open_pool_(open_pool),
      hot_(hot),
      shape_(shape),
      tables_(static_cast<std::size_t>(shape.frames_per_block())) {
  EBB_CHECK(shape.n_layers > 0 && shape.n_kv_heads > 0 && shape.block_size > 0, "{} layers, {} heads, blocks of {}",
            shape.n_layers, shape.n_kv_heads, shape.block_size);
}

Residency::~Residency() {
  for (std::int32_t block = 0; block < n_blocks(); ++block) evict(BlockIndex(block));
}

std::size_t Residency::slot(LayerIndex layer, HeadIndex head) const {
  return layer.index() * static_cast<std::size_t>(shape_.n_kv_heads) + head.index();
}

Residency::Block& Residency::get(BlockIndex block) {
  EBB_CHECK(block.value() >= 0 && block.value() < n_blocks(), "block {} of {}", block.value(), n_blocks());
  return blocks_[block.index()];
}

const Residency::Block& Residency::get(BlockIndex block) const {
  EBB_CHECK(block.value() >= 0 && block.value() < n_blocks(), "block {} of {}", block.value(), n_blocks());
  return blocks_[block.index()];
}

Span Residency::span(BlockIndex block) const {
  const Block& b = get(block);
  return {b.begin, b.begin + b.n_tokens};
}

bool Residency::is_hot(BlockIndex block) const { return get(block).n_hot == shape_.frames_per_block(); }

bool Residency::is_hot(BlockIndex block, LayerIndex layer, HeadIndex head) const {
  return get(block).frames[slot(layer, head)] != kNoFrame;
}

FrameIndex Residency::frame(BlockIndex block, LayerIndex layer, HeadIndex head) const {
  const FrameIndex frame = get(block).frames[slot(layer, head)];
  EBB_CHECK(frame != kNoFrame, "block {} is not hot in layer {} head {}", block.value(), layer.value(), head.value());
  return frame;
}

bool Residency::is_open(BlockIndex block) const { return !get(block).open.empty(); }

FrameIndex Residency::open_frame(BlockIndex block, LayerIndex layer, HeadIndex head) const {
  EBB_CHECK(is_open(block), "block {} is not open", block.value());
  return get(block).open[slot(layer, head)];
}

bool Residency::is_shared(BlockIndex block) const {
  return std::ranges::any_of(get(block).frames,
                             [&](FrameIndex frame) { return frame != kNoFrame && pool_.n_users(frame) > 1; });
}

Position Residency::end() const {
  return blocks_.empty() ? Position(0) : blocks_.back().begin + blocks_.back().n_tokens;
}

BlockTable Residency::table(LayerIndex layer, HeadIndex head) const { return tables_[slot(layer, head)]; }

Result<BlockIndex> Residency::open_block(Position begin) {
  EBB_CHECK(begin >= end(), "a block at {} behind {}", begin.value(), end().value());
  // Two blocks of one begin could not be told apart in the tables.
  EBB_CHECK(blocks_.empty() || blocks_.back().n_tokens > 0, "the last block is still empty; fill or drop it first");
  Block block{.begin = begin, .frames = std::vector<FrameIndex>(tables_.size())};
  EBB_RETURN_IF_ERROR(pool_.acquire(block.frames));
  block.n_hot = shape_.frames_per_block();
  n_hot_frames_ += shape_.frames_per_block();
  blocks_.push_back(std::move(block));
  for (std::size_t s = 0; s < tables_.size(); ++s) insert_entry(s, blocks_.back());
  return BlockIndex(n_blocks() - 1);
}

BlockIndex Residency::add_cold_block(Position begin, std::int32_t n_tokens) {
  EBB_CHECK(begin >= end() && n_tokens > 0 && n_tokens <= shape_.block_size, "{} tokens at {} behind {}", n_tokens,
            begin.value(), end().value());
  blocks_.push_back(
      {.begin = begin, .n_tokens = n_tokens, .frames = std::vector<FrameIndex>(tables_.size(), kNoFrame)});
  return BlockIndex(n_blocks() - 1);
}

void Residency::append(std::int32_t n_tokens) {
  EBB_CHECK(!blocks_.empty() && is_hot(BlockIndex(n_blocks() - 1)), "no open block");
  Block& block = blocks_.back();
  EBB_CHECK(n_tokens > 0 && block.n_tokens + n_tokens <= shape_.block_size, "{} + {} tokens in a block of {}",
            block.n_tokens, n_tokens, shape_.block_size);
  block.n_tokens += n_tokens;
  for (auto& table : tables_) table.back().n_tokens = block.n_tokens;
}

void Residency::evict(BlockIndex block) {
  for (std::int32_t layer = 0; layer < shape_.n_layers; ++layer) {
    for (std::int32_t head = 0; head < shape_.n_kv_heads; ++head) evict(block, LayerIndex(layer), HeadIndex(head));
  }
}

void Residency::evict(BlockIndex block, LayerIndex layer, HeadIndex head) {
  const std::size_t s = slot(layer, head);
  Block& b = get(block);
  if (b.frames[s] == kNoFrame) return;
  seal(block);
  remove_entry(s, b.begin);
  release_frame(b, s);
  b.frames[s] = kNoFrame;
  --n_hot_frames_;
  if (--b.n_hot == 0) b.hot_name.reset();
}

// What nobody uses any more is not listed.
void Residency::release_frame(const Block& block, std::size_t slot) {
  const FrameIndex frame = block.frames[slot];
  if (block.hot_name && pool_.n_users(frame) == 1) {
    const HotBlock* const listed = hot_->find(*block.hot_name);
    if (listed != nullptr && listed->frames[slot] == frame) hot_->remove(*block.hot_name);
  }
  pool_.release({&frame, 1});
}

Status Residency::admit(BlockIndex block) {
  Block& b = get(block);
  EBB_CHECK(!b.hot_name, "block {} is admitted beside frames that are not its own", block.value());
  std::vector<std::size_t> missing;
  for (std::size_t s = 0; s < b.frames.size(); ++s) {
    if (b.frames[s] == kNoFrame) missing.push_back(s);
  }
  std::vector<FrameIndex> frames(missing.size());
  EBB_RETURN_IF_ERROR(pool_.acquire(frames));
  for (std::size_t i = 0; i < missing.size(); ++i) {
    b.frames[missing[i]] = frames[i];
    insert_entry(missing[i], b);
  }
  b.n_hot += static_cast<std::int32_t>(missing.size());
  n_hot_frames_ += static_cast<std::int32_t>(missing.size());
  return {};
}

Status Residency::hold_open(BlockIndex block) {
  Block& b = get(block);
  if (open_pool_ == nullptr || !b.open.empty()) return {};
  EBB_CHECK(is_hot(block), "block {} is to be open, and is not hot", block.value());
  std::vector<FrameIndex> frames(b.frames.size());
  if (!open_pool_->acquire(frames).ok()) {
    return error(Code::kOutOfBudget,
                 "all {} blocks that may be open at once are; end other sessions, or open the engine with "
                 "more open blocks",
                 open_pool_->n_frames() / shape_.frames_per_block());
  }
  b.open = std::move(frames);
  for (std::size_t s = 0; s < tables_.size(); ++s) find_entry(s, b.begin).open = b.open[s];
  return {};
}

void Residency::seal(BlockIndex block) {
  Block& b = get(block);
  if (b.open.empty()) return;
  for (std::size_t s = 0; s < tables_.size(); ++s) find_entry(s, b.begin).open = kNoFrame;
  open_pool_->release(b.open);
  b.open.clear();
}

// --- frames of several ---

void Residency::publish(BlockIndex block, const Hash128& name, std::span<const Token> tokens, Position anchor) {
  Block& b = get(block);
  EBB_CHECK(hot_ != nullptr && is_hot(block) && b.open.empty() && !b.hot_name && b.n_tokens == shape_.block_size &&
                std::ssize(tokens) == b.n_tokens,
            "block {} of {} tokens cannot be published", block.value(), b.n_tokens);
  hot_->add(name, {.tokens = {tokens.begin(), tokens.end()}, .anchor = anchor, .frames = b.frames});
  b.hot_name = name;
}

void Residency::share(BlockIndex block, const Hash128& name) {
  Block& b = get(block);
  if (b.hot_name == name) return;
  EBB_CHECK(hot_ != nullptr && b.n_tokens == shape_.block_size, "block {} of {} tokens cannot be shared", block.value(),
            b.n_tokens);
  const HotBlock* const listed = hot_->find(name);
  EBB_CHECK(listed != nullptr, "block {} is to be shared as {}, and that is hot nowhere", block.value(), name.hex());
  // Before its own go, which may free them.
  pool_.share(listed->frames);
  const std::vector<FrameIndex> frames = listed->frames;
  evict(block);
  b.frames = frames;
  for (std::size_t s = 0; s < tables_.size(); ++s) insert_entry(s, b);
  b.n_hot = shape_.frames_per_block();
  n_hot_frames_ += b.n_hot;
  b.hot_name = name;
}

Status Residency::make_own(BlockIndex block) {
  Block& b = get(block);
  if (!b.hot_name) return {};
  EBB_CHECK(is_hot(block), "block {} under {} is hot in some heads only", block.value(), b.hot_name->hex());
  if (is_shared(block)) {
    std::vector<FrameIndex> own(b.frames.size());
    EBB_RETURN_IF_ERROR(pool_.acquire(own));
    for (std::size_t s = 0; s < tables_.size(); ++s) {
      release_frame(b, s);
      b.frames[s] = own[s];
      find_entry(s, b.begin).frame = own[s];
    }
  } else {
    hot_->remove(*b.hot_name);
  }
  b.hot_name.reset();
  return {};
}

void Residency::truncate_last(std::int32_t n_tokens) {
  EBB_CHECK(!blocks_.empty() && n_tokens >= 0 && n_tokens <= blocks_.back().n_tokens, "cut to {} tokens", n_tokens);
  if (n_tokens == 0) {
    evict(BlockIndex(n_blocks() - 1));
    blocks_.pop_back();
    return;
  }
  Block& block = blocks_.back();
  EBB_CHECK(open_pool_ == nullptr || block.n_hot == 0 || !block.open.empty() || n_tokens == block.n_tokens,
            "a sealed block of {} tokens cut to {}", block.n_tokens, n_tokens);
  EBB_CHECK(!block.hot_name || n_tokens == block.n_tokens, "a block in frames that others may use, cut to {}",
            n_tokens);
  block.n_tokens = n_tokens;
  for (std::size_t s = 0; s < tables_.size(); ++s) {
    if (block.frames[s] != kNoFrame) tables_[s].back().n_tokens = n_tokens;
  }
}

void Residency::insert_entry(std::size_t slot, const Block& block) {
  auto& table = tables_[slot];
  const auto at = std::lower_bound(table.begin(), table.end(), block.begin, begins_before);
  table.insert(at, TableEntry{.frame = block.frames[slot], .begin = block.begin, .n_tokens = block.n_tokens});
}

TableEntry& Residency::find_entry(std::size_t slot, Position begin) {
  auto& table = tables_[slot];
  const auto at = std::lower_bound(table.begin(), table.end(), begin, begins_before);
  EBB_CHECK(at != table.end() && at->begin == begin, "no entry at {}", begin.value());
  return *at;
}

void Residency::remove_entry(std::size_t slot, Position begin) {
  auto& table = tables_[slot];
  table.erase(table.begin() + (&find_entry(slot, begin) - table.data()));
}

void Residency::check_invariants() const {
  std::size_t n_entries = 0;
  for (std::size_t s = 0; s < tables_.size(); ++s) {
    Position last_end(0);
    for (const TableEntry& entry : tables_[s]) {
      EBB_CHECK(entry.begin >= last_end, "entry at {} overlaps what ends at {}", entry.begin.value(), last_end.value());
      last_end = entry.begin + entry.n_tokens;
      const auto block = std::lower_bound(blocks_.begin(), blocks_.end(), entry.begin,
                                          [](const Block& b, Position p) { return b.begin < p; });
      EBB_CHECK(block != blocks_.end() && block->begin == entry.begin && block->n_tokens == entry.n_tokens &&
                    block->frames[s] == entry.frame && entry.open == (block->open.empty() ? kNoFrame : block->open[s]),
                "entry at {} does not match its block", entry.begin.value());
    }
    n_entries += tables_[s].size();
  }
  EBB_CHECK(n_entries == static_cast<std::size_t>(n_hot_frames_), "{} entries, {} hot frames", n_entries,
            n_hot_frames_);
  std::size_t n_frames = 0;
  for (const Block& block : blocks_) {
    EBB_CHECK(block.n_tokens <= shape_.block_size, "{} tokens in a block", block.n_tokens);
    const auto n_hot =
        std::count_if(block.frames.begin(), block.frames.end(), [](FrameIndex f) { return f != kNoFrame; });
    EBB_CHECK(n_hot == block.n_hot, "{} frames of a block, {} counted", n_hot, block.n_hot);
    n_frames += static_cast<std::size_t>(n_hot);
    for (const FrameIndex frame : block.frames) {
      EBB_CHECK(frame == kNoFrame || pool_.n_users(frame) > 0, "frame {} of a block is free", frame.value());
    }
    if (!block.hot_name || n_hot < shape_.frames_per_block()) continue;
    const HotBlock* const listed = hot_->find(*block.hot_name);
    EBB_CHECK(listed != nullptr && listed->frames == block.frames && block.n_tokens == shape_.block_size,
              "the block at {} is hot as {}, and listed otherwise", block.begin.value(), block.hot_name->hex());
  }
  EBB_CHECK(n_frames == n_entries, "{} frames, {} entries", n_frames, n_entries);
}

}  // namespace ebb
