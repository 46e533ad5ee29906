#include "session/session.h"

#include <algorithm>

namespace ebb {

Session::Session(const SessionParts& parts, const SessionOptions& options)
    : parts_(parts), residency_(parts.pool, parts.shape) {
  const std::int32_t pool_blocks = parts.pool.n_frames() / parts.shape.frames_per_block();
  budget_blocks_ = std::min(options.budget_tokens / parts.shape.block_size, pool_blocks);
  EBB_CHECK(budget_blocks_ >= 1, "a budget of {} tokens holds no block of {}", options.budget_tokens,
            parts.shape.block_size);
}

std::int32_t Session::n_hot_blocks() const { return residency_.n_hot_frames() / parts_.shape.frames_per_block(); }

std::int32_t Session::n_hot_tokens() const {
  std::int32_t n_tokens = 0;
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    if (residency_.is_hot(BlockIndex(b))) n_tokens += residency_.span(BlockIndex(b)).n_tokens();
  }
  return n_tokens;
}

std::span<const Token> Session::block_tokens(BlockIndex block) const {
  const Span span = residency_.span(block);
  return std::span(tokens_).subspan(span.begin.index(), static_cast<std::size_t>(span.n_tokens()));
}

bool Session::is_full(BlockIndex block) const { return residency_.span(block).n_tokens() == block_size(); }

Result<std::string> Session::block_text(BlockIndex block) const {
  return parts_.vocabulary.detokenize(block_tokens(block), SpecialTokens::kShow);
}

Hash128 Session::exact_name(BlockIndex block) const {
  const Block& b = blocks_[block.index()];
  if (b.name) return *b.name;
  Hasher hasher;
  hasher.add(parts_.model).add(parts_.memory.layout().fingerprint());
  hasher.add(static_cast<std::uint64_t>(residency_.span(block).begin.value()));
  b.lineage.hash_into(hasher);
  hasher.add_bytes(std::as_bytes(block_tokens(block)));
  const Hash128 name = hasher.finish();
  if (is_full(block)) b.name = name;
  return name;
}

Hash128 Session::visible_before(BlockIndex block) const {
  Hasher hasher;
  for (std::int32_t b = 0; b < block.value(); ++b) {
    if (residency_.is_hot(BlockIndex(b))) hasher.add(exact_name(BlockIndex(b)));
  }
  return hasher.finish();
}

RecordKey Session::record_key(BlockIndex block) const {
  return {.model = parts_.model, .layout = parts_.memory.layout().fingerprint(), .name = exact_name(block)};
}

void Session::check_invariants() const {
  residency_.check_invariants();
  EBB_CHECK(residency_.end() == end(), "frames up to {}, tokens up to {}", residency_.end().value(), end().value());
  EBB_CHECK(blocks_.size() == static_cast<std::size_t>(n_blocks()), "{} lineages, {} blocks", blocks_.size(),
            n_blocks());
  EBB_CHECK(residency_.n_hot_frames() <= budget_blocks_ * parts_.shape.frames_per_block(),
            "{} hot frames over {} blocks", residency_.n_hot_frames(), budget_blocks_);
  for (std::int32_t b = 0; b + 1 < n_blocks(); ++b) {
    EBB_CHECK(is_full(BlockIndex(b)), "block {} is neither full nor the last", b);
  }
}

}  // namespace ebb
