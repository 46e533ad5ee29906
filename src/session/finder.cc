#include "session/finder.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/to_size.h"
#include "policy/words.h"

namespace ebb {
namespace {

// Rows behind a block that do not say whether it is looked for. More: of what stands right before a question nothing is found by the
// question's first words. Fewer: what has just been read is found, whatever is asked.
constexpr std::int32_t kRowsBeside = 32;

KeyEstimate estimate_of(DigestForm form) {
  switch (form) {
    case DigestForm::kSketch: return KeyEstimate::kSketch;
    case DigestForm::kCuboid: return KeyEstimate::kCuboid;
    case DigestForm::kBox: return KeyEstimate::kBox;
    case DigestForm::kRepresentative: return KeyEstimate::kRepresentative;
  }
  return KeyEstimate::kSketch;
}

}  // namespace

Finder::~Finder() {
  if (deps_.room != nullptr) deps_.room->give_back(n_bytes_);
}

// --- words ---

void Finder::note_full(BlockIndex block) {
  if (!awaits_) list_words(block);  // else listed with the others
}

// A block whose text cannot be told is one that no words find.
void Finder::list_words(BlockIndex block) {
  // A word that the border cuts in two is one of this block, whole.
  constexpr std::int32_t kTokensBefore = 8;
  const Span span = deps_.hot.span(block);
  const Position from(std::max(0, span.begin.value() - kTokensBefore));
  const auto tokens = deps_.hot.tokens().subspan(from.index(), to_size(span.end - from));
  const auto n_before = to_size(span.begin - from);
  const Result<std::string> head = deps_.vocabulary.detokenize(tokens.first(n_before), SpecialTokens::kShow);
  const Result<std::string> text = deps_.vocabulary.detokenize(tokens, SpecialTokens::kShow);
  if (!head.ok() || !text.ok() || !text->starts_with(*head)) {
    const Result<std::string> own = deps_.vocabulary.detokenize(tokens.subspan(n_before), SpecialTokens::kShow);
    if (own.ok()) words_.add(block, *own);
    return;
  }
  std::size_t begin = head->size();
  while (begin > 0 && begin < text->size() && is_word_byte((*text)[begin - 1]) && is_word_byte((*text)[begin])) --begin;
  words_.add(block, std::string_view(*text).substr(begin));
}

const WordIndex& Finder::words() {
  if (std::exchange(awaits_, false)) {
    for (std::int32_t b = 0; b < deps_.hot.n_blocks(); ++b) {
      if (deps_.hot.is_full(BlockIndex(b))) list_words(BlockIndex(b));
    }
  }
  return words_;
}

std::vector<CueRanking> Finder::rank(std::span<const Cue> cues) {
  std::vector<CueRanking> rankings;
  for (const Cue& cue : cues) rankings.push_back({.weight = cue.weight, .ranked = words().rank(wanted_text(cue))});
  return rankings;
}

// What was said may go on across borders; blocks that share most words with it come first.
std::vector<BlockIndex> Finder::find_said(std::span<const Cue> cues, std::span<const CueRanking> rankings,
                                          const SaidIn& in) const {
  constexpr std::size_t kMostTried = 4;
  std::set<BlockIndex> found;
  for (std::size_t i = 0; i < leading_cues(cues).size(); ++i) {
    if (cues[i].where != in.where) continue;
    std::size_t n_tried = 0;
    const std::string_view text = bare_text(cues[i]);
    for (const Scored& scored : rankings[i].ranked) {
      if (scored.block < in.from || scored.block >= in.to) continue;
      if (++n_tried > kMostTried) break;
      const std::vector<BlockIndex> blocks = find_said_about(scored.block, in.from, in.to, text);
      found.insert(blocks.begin(), blocks.end());
      if (!blocks.empty()) break;
    }
  }
  return {found.begin(), found.end()};
}

// The fewest blocks that hold the text and have this one among them; none where it does not stand there.
std::vector<BlockIndex> Finder::find_said_about(BlockIndex block, BlockIndex from, BlockIndex to,
                                                std::string_view text) const {
  constexpr std::int32_t kMostBlocks = 3;
  for (std::int32_t n = 1; n <= kMostBlocks; ++n) {
    for (std::int32_t b = std::max(from.value(), block.value() - n + 1); b <= std::min(block.value(), to.value() - n);
         ++b) {
      if (!holds(BlockIndex(b), n, text)) continue;
      std::vector<BlockIndex> blocks;
      for (std::int32_t i = 0; i < n; ++i) blocks.emplace_back(b + i);
      return blocks;
    }
  }
  return {};
}

bool Finder::holds(BlockIndex first, std::int32_t n_blocks, std::string_view text) const {
  const BlockIndex last(first.value() + n_blocks - 1);
  if (last.value() >= deps_.hot.n_blocks()) return false;
  const Position begin = deps_.hot.span(first).begin;
  const auto tokens = deps_.hot.tokens().subspan(begin.index(), to_size(deps_.hot.span(last).end - begin));
  const Result<std::string> said = deps_.vocabulary.detokenize(tokens, SpecialTokens::kShow);
  return said.ok() && said->find(text) != std::string::npos;
}

// --- digests ---

void Finder::note_leaving(BlockIndex block) {
  if (makes_digests()) make_digest(block);
}

// Of one that is hot wherever anything but a window looks; heads that slide, which nobody scores, keep zeros.
void Finder::make_digest(BlockIndex block) {
  if (std::ssize(digests_) <= block.value()) digests_.resize(block.index() + 1);
  Digest& digest = digests_[block.index()];
  // Frames that are written to have another form.
  if (!deps_.hot.is_full(block) || !deps_.hot.is_hot(block) || deps_.io.is_open(block)) return;
  const Hash128 name = deps_.hot.exact_name(block);
  if (!digest.bytes.empty() && digest.name == name) return;
  drop(digest);
  if (!take_room(digest)) return;
  const std::size_t n_heads = deps_.shape.n_heads();
  digest.name = name;
  digest.anchor = deps_.hot.anchor(block);
  const FrameLayout& layout = deps_.io.layout();
  std::vector<std::byte> frame(deps_.io.frame_bytes(block));
  for (std::size_t head = 0; head < n_heads; ++head) {
    const LayerIndex layer(static_cast<std::int32_t>(head / to_size(deps_.shape.n_kv_heads)));
    if (deps_.shape.window(layer) > 0 || !deps_.hot.is_hot(block, head)) continue;
    HeadSet one(n_heads);
    one.add(head);
    deps_.io.read(block, one, frame);
    write_key_digest(layout_, FrameRows::keys_of(layout, frame, layout.block_size),
                     std::span(digest.bytes).subspan(head * layout_.bytes(), layout_.bytes()));
  }
}

bool Finder::take_room(Digest& digest) {
  const std::size_t n_bytes = deps_.shape.n_heads() * layout_.bytes();
  if (!deps_.room->take(n_bytes)) return false;
  n_bytes_ += n_bytes;
  digest.bytes.resize(n_bytes);
  digest.id = ++last_id_;
  return true;
}

KeyBounds* Finder::take_bounds(std::size_t n_blocks) {
  const std::size_t n_bytes = KeyBounds::bytes_of(n_blocks, deps_.shape.n_heads(), layout_);
  deps_.room->give_back(n_bounds_bytes_);
  n_bytes_ -= std::exchange(n_bounds_bytes_, 0);
  if (!deps_.room->take(n_bytes)) {
    bounds_.clear();
    return nullptr;
  }
  n_bounds_bytes_ = n_bytes;
  n_bytes_ += n_bytes;
  return &bounds_;
}

// Its own kind under a name of its own, since tiers know records by their names.
RecordKey Finder::key(const Hash128& block_name) const {
  RecordKey key = deps_.io.record_key(block_name);
  key.name = Hasher().add(block_name).add_text("key digest 2").finish();
  key.kind = RecordKind::kKeyDigest;
  return key;
}

void Finder::keep() {
  if (deps_.io.store() == nullptr || digests_.empty()) return;
  // From a session that comes back, what is hot now has left too.
  for (std::int32_t b = 0; b < deps_.hot.n_blocks(); ++b) make_digest(BlockIndex(b));
  for (std::size_t b = 0; b < digests_.size(); ++b) {
    Digest& digest = digests_[b];
    const BlockIndex block(static_cast<std::int32_t>(b));
    if (digest.bytes.empty() || digest.is_kept || !deps_.hot.is_full(block)) continue;
    RecordBuilder record({.key = key(digest.name),
                          .begin = deps_.hot.span(block).begin,
                          .anchor = digest.anchor,
                          .n_frames = static_cast<std::int32_t>(deps_.shape.n_heads()),
                          .frame_bytes = digest.bytes.size()},
                         deps_.hot.block_tokens(block));
    std::ranges::copy(digest.bytes, record.frames().begin());
    digest.is_kept = deps_.io.store()->put(std::move(record).seal()).ok();
  }
}

void Finder::read_digest(BlockIndex block) {
  Digest& digest = digests_[block.index()];
  if (!digest.bytes.empty() || deps_.io.store() == nullptr || std::exchange(digest.was_sought, true)) return;
  const Hash128 name = deps_.hot.exact_name(block);
  const Result<RecordHandle> record = deps_.io.store()->get(key(name));
  if (!record.ok()) return;
  const RecordHeader& header = (*record)->header();
  const bool fits = (*record)->match(key(name)).ok() && header.frame_bytes == deps_.shape.n_heads() * layout_.bytes() &&
                    std::cmp_equal(header.n_frames, deps_.shape.n_heads());
  if (!fits || !take_room(digest)) return;
  std::size_t n_copied = 0;
  const Status copied = (*record)->copy_frames([&](std::int32_t, std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, digest.bytes.begin() + static_cast<std::ptrdiff_t>(n_copied));
    n_copied += bytes.size();
  });
  digest.name = name;
  digest.anchor = header.anchor;
  digest.is_kept = copied.ok();
  if (copied.ok()) return;
  deps_.io.store()->refuse(*record);
  drop(digest);
}

void Finder::drop(Digest& digest) {
  if (!digest.bytes.empty()) deps_.room->give_back(digest.bytes.size());
  n_bytes_ -= digest.bytes.size();
  digest = {.was_sought = digest.was_sought};
}

void Finder::forget_from(BlockIndex first, std::int32_t n_blocks) {
  for (std::int32_t b = first.value(); b < n_blocks; ++b) words_.remove(BlockIndex(b));
  for (std::size_t b = first.index(); b < digests_.size(); ++b) drop(digests_[b]);
  if (first.index() < digests_.size()) digests_.resize(first.index());
}

double Finder::cost_in_tokens(std::int32_t n_rows) const {
  return makes_digests() ? deps_.scorer->cost_in_tokens(n_rows, to_size(deps_.hot.n_blocks()), layout_) : 0.0;
}

double Finder::cost_of_words() const {
  // Products in the time that a ranking takes, and for each block what is walked through: by measurement, as KeyScorer's.
  constexpr double kPerRanking = 3e6;
  constexpr double kPerBlock = 3e3;
  return deps_.scorer == nullptr ? 0.0 : deps_.scorer->in_tokens(kPerRanking + kPerBlock * deps_.hot.n_blocks());
}

Finder::Shares Finder::score(const TailQueries& queries, Span rows, DigestForm form) {
  if (!makes_digests() || rows.empty()) return {};
  std::vector<BlockIndex> blocks;
  std::vector<KeyScorer::Block> scored;
  for (std::int32_t b = 0; b < deps_.hot.n_blocks(); ++b) {
    const BlockIndex block(b);
    if (deps_.hot.span(block).end > rows.begin) break;
    make_digest(block);
    read_digest(block);
    const Digest& digest = digests_[block.index()];
    if (digest.bytes.empty()) continue;
    blocks.push_back(block);
    scored.push_back({.digests = digest.bytes,
                      .digest_id = digest.id,
                      .anchor = digest.anchor,
                      .n_turned = deps_.hot.anchor(block) - digest.anchor,
                      // Heads that look for nothing look at the first tokens.
                      .is_cold = !deps_.hot.is_hot(block) && block.value() > 0,
                      .first_row = std::max(0, deps_.hot.span(block).end + kRowsBeside - rows.begin)});
  }
  const KeyEstimate estimate = estimate_of(form);
  const bool by_bounds =
      estimate == KeyEstimate::kSketch && deps_.scorer->needs_bounds(rows.n_tokens(), scored.size(), layout_);
  KeyBounds* const kept = by_bounds ? take_bounds(scored.size()) : nullptr;
  const std::vector<float> scores = deps_.scorer->score(queries, rows, scored, layout_, estimate, kept);
  const std::size_t n_heads = deps_.shape.n_heads();
  Shares found{.n_scored = static_cast<std::int32_t>(blocks.size())};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto own = std::span(scores).subspan(i * n_heads, n_heads);
    if (std::ranges::all_of(own, [](float score) { return score == 0.0F; })) continue;
    // Of one that is hot in some heads, those look at it already.
    const bool is_hot = deps_.hot.is_hot(blocks[i]);
    BlockShare share{.block = blocks[i], .by_head = {own.begin(), own.end()}};
    for (std::size_t head = 0; head < n_heads; ++head) {
      if (!is_hot && deps_.hot.is_hot(blocks[i], head)) share.by_head[head] = 0.0F;
      share.share = std::max(share.share, double{share.by_head[head]});
    }
    found.shares.push_back(std::move(share));
  }
  return found;
}

}  // namespace ebb
