// What blocks are called: by people, by what they hold and saw, and by the cold store.
#include <algorithm>
#include <charconv>

#include "session/session.h"

namespace ebb {
namespace {

// How far an anchor lies from its position, where it does; what is computed beside a moved block is not what it would be.
void add_shift(std::int32_t shift, Hasher& hasher) {
  if (shift != 0) hasher.add(static_cast<std::uint64_t>(static_cast<std::int64_t>(shift)));
}

}  // namespace

std::string Session::block_name(BlockIndex block) const {
  const Part part = said_.merged(residency_.span(block));
  const std::int32_t first = part.span.begin.value() / block_size();
  return fmt::format("{}#{}", part.name, block.value() - first);
}

std::vector<BlockIndex> Session::blocks_of_parts(std::string_view name) const {
  std::vector<BlockIndex> blocks;
  for (const Span span : said_.find(name)) {
    const std::int32_t last = std::min((span.end.value() + block_size() - 1) / block_size(), n_blocks());
    for (std::int32_t b = span.begin.value() / block_size(); b < last; ++b) {
      if (blocks.empty() || blocks.back() < BlockIndex(b)) blocks.emplace_back(b);
    }
  }
  return blocks;
}

std::vector<BlockIndex> Session::find_blocks(std::string_view name) const {
  std::vector<BlockIndex> blocks = blocks_of_parts(name);
  const std::size_t mark = name.rfind('#');
  if (!blocks.empty() || mark == std::string_view::npos) return blocks;

  std::size_t index = 0;
  const std::string_view digits = name.substr(mark + 1);
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (failure != std::errc() || end != digits.data() + digits.size()) return {};
  const std::vector<BlockIndex> all = blocks_of_parts(name.substr(0, mark));
  return index < all.size() ? std::vector{all[index]} : std::vector<BlockIndex>{};
}

Hash128 Session::exact_name(BlockIndex block) const {
  const Block& b = blocks_[block.index()];
  if (b.name) return *b.name;
  const Hash128 name = exact_name_of(residency_.span(block).begin, block_tokens(block), b.lineage, b.moves);
  if (is_full(block)) b.name = name;
  return name;
}

Hash128 Session::exact_name_of(Position begin, std::span<const Token> tokens, const Lineage& lineage,
                               const Hash128& moves) const {
  Hasher hasher;
  add_begin(begin, hasher);
  lineage.hash_into(hasher);
  // What never moved has the name that every session gives it.
  if (moves != Hash128()) hasher.add(moves);
  return hasher.add_bytes(std::as_bytes(tokens)).finish();
}

Hash128 Session::place_name(Position begin, const Hash128& visible) const {
  Hasher hasher;
  add_begin(begin, hasher);
  return hasher.add(visible).finish();
}

// What all names of blocks that begin there have in common.
void Session::add_begin(Position begin, Hasher& hasher) const {
  hasher.add(parts_.model).add(parts_.memory.layout().fingerprint());
  if (!options_.tenant.empty()) hasher.add_text(options_.tenant);
  hasher.add(static_cast<std::uint64_t>(begin.value()));
}

Hash128 Session::visible_before(BlockIndex block) const {
  Hasher hasher;
  add_visible(block.value(), hasher);
  add_shift(anchor(block) - residency_.span(block).begin, hasher);
  return hasher.finish();
}

Hash128 Session::visible_behind() const {
  Hasher hasher;
  add_visible(n_blocks(), hasher);
  add_shift(next_anchor_ - end(), hasher);
  return hasher.finish();
}

void Session::add_visible(std::int32_t n_blocks, Hasher& hasher) const {
  for (std::int32_t b = 0; b < n_blocks; ++b) {
    const BlockIndex block(b);
    if (!residency_.is_hot(block)) continue;
    hasher.add(exact_name(block));
    add_shift(anchor(block) - residency_.span(block).begin, hasher);
  }
}

RecordKey Session::record_key(BlockIndex block) const {
  return {.model = parts_.model, .layout = parts_.memory.layout().fingerprint(), .name = exact_name(block)};
}

RecordHeader Session::record_header(BlockIndex block) const {
  const Block& b = blocks_[block.index()];
  const std::int32_t n_frames = parts_.shape.frames_per_block();
  const Hash128 layout = parts_.memory.layout().fingerprint();
  Hasher lineage;
  b.lineage.hash_into(lineage);
  return {.key = record_key(block),
          .content = Hasher().add(parts_.model).add(layout).add_bytes(std::as_bytes(block_tokens(block))).finish(),
          .lineage = lineage.finish(),
          .begin = residency_.span(block).begin,
          .anchor = b.anchor,
          .n_frames = n_frames,
          .frame_bytes = block_bytes(block)};
}

}  // namespace ebb
