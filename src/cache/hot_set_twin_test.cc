// Random operations on hot sets of one pool, each in lock step with its naive twin.
#include "cache/hot_set_twin_test.h"

#include <array>
#include <memory>

namespace ebb {

// --- tokens ---

void HotSetTwin::say() {
  if (n_blocks() > 9) return;
  const std::int32_t last = n_blocks() - 1;
  if (last >= 0 && !is_full(last) && n_hot(last) < world_.shape.frames_per_block() && !come(last, missing(last)))
    return;
  const auto n = 1 + static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(2 * size() + 1));
  const std::int32_t n_new = world_.shape.n_blocks(end().value() + n) - n_blocks();
  const bool opens = world_.seals && n_new > 0 && (end().value() + n) % size() != 0;
  const bool fits = world_.pool.n_free() >= n_new * world_.shape.frames_per_block() &&
                    (!opens || world_.open_pool.n_free() >= world_.shape.frames_per_block());
  ASSERT_EQ(hot_.open(n).ok(), fits);
  if (!fits) return;
  hot_.check_invariants();
  if (random_() % 6 == 0) return hot_.drop_rows();
  const int source = random_() % 30 == 0 ? 1 + static_cast<int>(random_() % 3) : 0;
  const std::vector<Token> tokens = any_tokens(n);
  const std::int32_t n_old = n_blocks();
  add_blocks(n);
  for (std::int32_t b = n_old; b < n_blocks(); ++b) std::ranges::copy(hot_.frames(BlockIndex(b)), at(b).frames.begin());
  for (std::span<const Token> rest = tokens; !rest.empty();) {
    const std::int32_t b = end().value() / size();
    const auto own = rest.first(std::min(rest.size(), static_cast<std::size_t>(begin(b + 1) - end())));
    rest = rest.subspan(own.size());
    append(b, own, source);
  }
  look_from(end());
}

void HotSetTwin::add_blocks(std::int32_t n_tokens) {
  const Position all = end() + n_tokens;
  while (n_blocks() < world_.shape.n_blocks(all.value())) {
    const Position anchor = next_anchor_ + (begin(n_blocks()) - end());
    blocks_.push_back({.frames = std::vector<FrameIndex>(n_heads(), kNoFrame),
                       .open = std::vector<bool>(n_heads(), false),
                       .listed = std::vector<bool>(n_heads(), false),
                       .anchor = anchor,
                       .born = anchor});
  }
}

// Tokens of one block.
void HotSetTwin::append(std::int32_t b, std::span<const Token> tokens, int source) {
  if (source == 0) {
    hot_.append(tokens);
  } else {
    hot_.append(tokens, Hash128{.low = static_cast<std::uint64_t>(source)});
  }
  Block& block = at(b);
  const int seen = source == 0 ? seen_before(b) : world_.number(fmt::format("source {}", source));
  block.seen.insert(block.seen.end(), tokens.size(), seen);
  block.body = 0;
  block.is_exact = block.is_exact && source == 0 && !is_any_moved();
  next_anchor_ = next_anchor_ + static_cast<std::int32_t>(tokens.size());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  block.open.assign(n_heads(), world_.seals && !is_full(b));
  if (!is_full(b)) return;
  write(b, world_.shape.all_heads());
  publish(b);
}

// Whole blocks by names that were foretold: the twin foretells them too.
void HotSetTwin::adopt(bool whole) {
  if (end().value() % size() != 0 || n_blocks() > 9) return;
  const std::vector<Token> tokens = any_tokens(3 * size());
  const std::size_t n_known = random_() % 4;
  const std::int32_t shift = next_anchor_ - end();
  std::vector<std::string> leaves = leaves_before(n_blocks(), whole);
  std::vector<Block> found;
  const auto find_body = [&](const HotSet::NamedBlock& named, std::span<const Token> own) -> std::optional<Hash128> {
    if (found.size() == n_known) return std::nullopt;
    const Position first(static_cast<std::int32_t>(leaves.size()) * size());
    found.push_back({.seen = std::vector(own.size(), world_.number(seen_words(leaves, shift)))});
    const std::string words = name_words(first, own, found.back().seen, 0);
    world_.expect_one_to_one(words, named.name);
    world_.expect_one_to_one(fmt::format("place {}: {}", first.value(), seen_words(leaves, shift)),
                             hot_.place_name(first, named.visible));
    found.back().body = body(words, first + shift);
    leaves.push_back(whole_words(world_.number(words), found.back().body, shift));
    return body_hash(found.back().body);
  };
  const std::vector<HotSet::NamedBlock> names = hot_.names_behind(tokens, whole, find_body);
  ASSERT_EQ(names.size(), found.size());
  if (random_() % 3 != 0) return;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto own = std::span(tokens).subspan(i * static_cast<std::size_t>(size()), static_cast<std::size_t>(size()));
    Lineage lineage;
    lineage.add(names[i].visible, size());
    hot_.add_cold(own, lineage, names[i].body);
    const bool is_exact = !is_any_moved() && next_anchor_ == end();
    add_blocks(size());
    blocks_.back().seen = found[i].seen;
    blocks_.back().body = found[i].body;
    blocks_.back().is_exact = is_exact;
    tokens_.insert(tokens_.end(), own.begin(), own.end());
    next_anchor_ = next_anchor_ + size();
  }
  look_from(end());
}

void HotSetTwin::cut(Position end) {
  const std::int32_t b = end.value() / size();
  const bool is_split = end.value() % size() != 0 && end < this->end();
  if (is_split) {
    const bool is_sealed = world_.seals && is_full(b);
    if (is_sealed || !own(b)) leave(b, world_.shape.all_heads());
  }
  hot_.cut(end);
  tokens_.resize(end.index());
  blocks_.resize(static_cast<std::size_t>(world_.shape.n_blocks(end.value())));
  if (is_split) {
    at(b).seen.resize(static_cast<std::size_t>(end.value() % size()));
    at(b).body = 0;
  }
  next_anchor_ = blocks_.empty() ? Position(0) : blocks_.back().anchor + (end - begin(n_blocks() - 1));
  hot_.set_next_anchor(next_anchor_);
  if (eye_ > end) eye_ = end;
}

void HotSetTwin::compute_again(std::int32_t b) {
  if (b < 0) return;
  leave(b, world_.shape.all_heads());
  look_from(begin(b));
  if (come(b, world_.shape.all_heads(), false)) {
    Lineage lineage;
    std::vector<int> seen;
    while (seen.size() < at(b).seen.size()) {
      const std::size_t n = 1 + random_() % (at(b).seen.size() - seen.size());
      lineage.add(hot_.visible_before(BlockIndex(b)), static_cast<std::int32_t>(n));
      seen.insert(seen.end(), n, seen_before(b));
      if (const std::int32_t other = any_block(); other != b) leave(other, any_heads());
    }
    hot_.set_lineage(BlockIndex(b), lineage);
    Block& block = at(b);
    block.seen = seen;
    block.variant = 0;
    block.turned = false;
    block.is_exact = !is_any_moved();
    block.born = block.anchor;
    if (is_full(b)) write(b, world_.shape.all_heads());
    publish(b);
  }
  look_from(end());
}

// --- frames ---

void HotSetTwin::leave(std::int32_t b, const HeadSet& heads) {
  if (b < 0) return;
  hot_.leave(BlockIndex(b), heads);
  heads.for_each([&](std::size_t head) {
    at(b).frames[head] = kNoFrame;
    at(b).open[head] = false;
    at(b).listed[head] = false;
  });
}

bool HotSetTwin::come(std::int32_t b, HeadSet heads, bool takes_listed) {
  if (b < 0) return false;
  heads &= missing(b);
  Listed listed = this->listed(b);
  if (!takes_listed) listed.frames.assign(n_heads(), kNoFrame);
  const HeadSet fill =
      heads_where([&](std::size_t head) { return heads.contains(head) && listed.frames[head] == kNoFrame; });
  const bool fits = world_.pool.n_free() >= fill.count();
  const Result<HeadSet> came = hot_.come(BlockIndex(b), heads, takes_listed);
  EXPECT_EQ(came.ok(), fits);
  if (!came.ok()) return false;
  EXPECT_EQ(*came, fill);
  heads.for_each([&](std::size_t head) {
    at(b).frames[head] = fill.contains(head) ? hot_.frames(BlockIndex(b))[head] : listed.frames[head];
    at(b).listed[head] = !fill.contains(head);
  });
  if (n_hot(b) > 0 && !is_full(b) && !hold_open(b)) {
    leave(b, heads);
    return false;
  }
  if (n_hot(b) > 0) at(b).turned = at(b).anchor != at(b).born;
  if (n_hot(b) > 0 && is_full(b)) {
    write(b, fill);
    // The bytes that are computed again are not there yet.
    if (takes_listed) publish(b);
  }
  return true;
}

bool HotSetTwin::hold_open(std::int32_t b) {
  if (!world_.seals) return true;
  const auto n_lacking = n_hot(b) - std::ranges::count(at(b).open, true);
  const bool fits = world_.open_pool.n_free() >= n_lacking;
  EXPECT_EQ(hot_.hold_open(BlockIndex(b)).ok(), fits);
  if (!fits) return false;
  for (std::size_t head = 0; head < n_heads(); ++head) at(b).open[head] = is_hot(b, head);
  return true;
}

bool HotSetTwin::own(std::int32_t b) {
  if (b < 0) return false;
  const auto n_others = std::ranges::count_if(
      at(b).frames, [&](FrameIndex frame) { return frame != kNoFrame && world_.pool.n_users(frame) > 1; });
  EXPECT_EQ(hot_.n_own_frames(BlockIndex(b)), n_hot(b) - n_others);
  std::vector<FrameIndex> before = at(b).frames;
  std::set<FrameIndex> others;
  for (const FrameIndex frame : before) {
    if (frame != kNoFrame && world_.pool.n_users(frame) > 1) others.insert(frame);
  }
  const bool fits = world_.pool.n_free() >= n_others;
  EXPECT_EQ(hot_.make_own(BlockIndex(b)).ok(), fits);
  if (!fits) return false;
  for (std::size_t head = 0; head < n_heads(); ++head) {
    if (others.contains(before[head])) at(b).frames[head] = hot_.frames(BlockIndex(b))[head];
    at(b).listed[head] = false;
  }
  if (is_full(b)) write(b, heads_where([&](std::size_t head) { return is_hot(b, head); }));
  return true;
}

void HotSetTwin::publish(std::int32_t b) {
  if (!is_full(b)) return;
  at(b).body = body(name_words(b), at(b).born);
  hot_.set_body(BlockIndex(b), body_hash(at(b).body), {});
  if (n_hot(b) > 0) hot_.set_turned(BlockIndex(b), at(b).turned);
  const Listed listed = this->listed(b);
  hot_.publish(BlockIndex(b));
  if (at(b).turned || listed.is_other) return;
  for (std::size_t head = 0; head < n_heads(); ++head) {
    if (!is_hot(b, head)) continue;
    if (listed.frames[head] != kNoFrame) at(b).frames[head] = listed.frames[head];
    at(b).listed[head] = true;
  }
}

void HotSetTwin::write(std::int32_t b, const HeadSet& heads) {
  const std::vector<int> bytes = this->bytes(b);
  heads.for_each([&](std::size_t head) { world_.written[at(b).frames[head]] = bytes[head]; });
}

void HotSetTwin::look_from(Position eye) {
  std::vector<BlockIndex> passing;
  eye_ = eye;
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    const HeadSet hidden = heads_where([&](std::size_t head) { return is_hot(b, head) && !is_wanted(b, head); });
    if (hidden.empty()) continue;
    passing.emplace_back(b);
    hidden.for_each([&](std::size_t head) {
      at(b).frames[head] = kNoFrame;
      at(b).listed[head] = false;
    });
  }
  EXPECT_EQ(hot_.find_passing(eye), passing);
  hot_.look_from(eye);
}

// --- anchors and names ---

void HotSetTwin::move(std::int32_t b) {
  if (b < 0 || !is_full(b) || !own(b)) return;
  const Position anchor = begin(b) + 100 * static_cast<std::int32_t>(random_() % 2);
  hot_.set_anchor(BlockIndex(b), anchor);
  at(b).anchor = anchor;
  at(b).turned = n_hot(b) > 0 && anchor != at(b).born;
  hot_.set_turned(BlockIndex(b), at(b).turned);
  write(b, heads_where([&](std::size_t head) { return is_hot(b, head); }));
  publish(b);
}

void HotSetTwin::vary(std::int32_t b) {
  if (b < 0 || !is_full(b) || n_hot(b) == 0 || !own(b)) return;
  Block& block = at(b);
  block.variant = 1 + static_cast<int>(random_() % 2);
  block.born = block.anchor;
  block.turned = false;
  block.is_exact = false;
  hot_.set_variant(BlockIndex(b), {.low = static_cast<std::uint64_t>(block.variant)});
  write(b, heads_where([&](std::size_t head) { return is_hot(b, head); }));
  publish(b);
}

// --- comparing ---

void HotSetTwin::compare() {
  hot_.check_invariants();
  ASSERT_EQ(hot_.n_blocks(), n_blocks());
  ASSERT_EQ(hot_.end(), end());
  ASSERT_EQ(hot_.rows_end(), end());
  ASSERT_EQ(hot_.next_anchor(), next_anchor_);
  std::vector<BlockIndex> hot_blocks;
  std::vector<std::vector<TableEntry>> tables(n_heads());
  std::int32_t n_frames = 0;
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    const BlockIndex block(b);
    ASSERT_EQ(hot_.hot_heads(block), heads_where([&](std::size_t head) { return is_hot(b, head); })) << b;
    ASSERT_EQ(hot_.missing_heads(block), missing(b)) << b;
    ASSERT_EQ(hot_.is_hot(block), missing(b).empty()) << b;
    ASSERT_EQ(hot_.anchor(block), at(b).anchor) << b;
    ASSERT_EQ(hot_.info(block).is_exact, at(b).is_exact) << b;
    n_frames += n_hot(b);
    if (n_hot(b) == 0) continue;
    hot_blocks.push_back(block);
    ASSERT_TRUE(std::ranges::equal(hot_.frames(block), at(b).frames)) << b;
    const std::vector<int> bytes = is_full(b) ? this->bytes(b) : std::vector<int>();
    for (std::size_t head = 0; head < n_heads(); ++head) {
      if (!is_hot(b, head)) continue;
      ASSERT_EQ(hot_.is_open(block) && hot_.open_frames(block)[head] != kNoFrame, at(b).open[head]) << b;
      if (is_full(b)) {
        ASSERT_EQ(world_.written.at(at(b).frames[head]), bytes[head]) << b << ", head " << head;
      }
      tables[head].push_back({.frame = at(b).frames[head],
                              .begin = begin(b),
                              .n_tokens = static_cast<std::int32_t>(at(b).seen.size()),
                              .open = at(b).open[head] ? hot_.open_frames(block)[head] : kNoFrame});
    }
  }
  ASSERT_TRUE(std::ranges::equal(hot_.hot_blocks(), hot_blocks));
  ASSERT_EQ(hot_.n_hot_frames(), n_frames);
  const auto parts = [](const TableEntry& entry) {
    return std::tuple(entry.frame, entry.begin, entry.n_tokens, entry.open);
  };
  for (std::size_t head = 0; head < n_heads(); ++head) {
    ASSERT_TRUE(std::ranges::equal(hot_.tables().entries(head), tables[head], {}, parts, parts)) << "head " << head;
  }
}

void HotSetTwin::compare_names() {
  const std::int32_t n_full = end().value() / size();
  const std::vector<std::string> leaves = leaves_before(n_full);
  const auto expect_place = [&](Position at, std::int32_t shift, const Hash128& visible) {
    const auto before = std::span(leaves).first(at.index() / static_cast<std::size_t>(size()));
    world_.expect_one_to_one(fmt::format("place {}: {}", at.value(), seen_words(before, shift)),
                             hot_.place_name(at, visible));
  };
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    world_.expect_one_to_one(name_words(b), hot_.exact_name(BlockIndex(b)));
    expect_place(begin(b), at(b).anchor - begin(b), hot_.visible_before(BlockIndex(b)));
  }
  if (n_full == n_blocks()) expect_place(end(), next_anchor_ - end(), hot_.visible_behind());
}

namespace {

void live(TwinWorld& world, int n_operations) {
  std::mt19937_64 random(7);
  world.pool.shuffle_free(3);
  std::array<std::unique_ptr<HotSetTwin>, 3> twins;
  std::int64_t n_saved_frames = 0;
  for (int i = 0; i < n_operations; ++i) {
    const std::size_t any = static_cast<std::size_t>(i) < twins.size() ? static_cast<std::size_t>(i) : random() % 3;
    if (twins[any] == nullptr || random() % 200 == 0) {
      twins[any].reset();
      twins[any] = std::make_unique<HotSetTwin>(world, random());
      world.twins.clear();
      for (const auto& twin : twins) {
        if (twin != nullptr) world.twins.push_back(twin.get());
      }
    }
    twins[any]->do_something();
    twins[any]->compare_names();
    std::map<FrameIndex, std::int32_t> users;
    std::int32_t n_open = 0;
    for (HotSetTwin* const each : world.twins) {
      each->compare();
      if (i % 16 == 0) each->compare_names();
      if (testing::Test::HasFailure()) FAIL() << "operation " << i;
      each->count_frames(users, n_open);
    }
    world.pool.check_invariants();
    ASSERT_EQ(world.pool.n_hot(), std::ssize(users)) << "operation " << i;
    for (const auto& [frame, n_users] : users) {
      ASSERT_EQ(world.pool.n_users(frame), n_users) << "operation " << i;
      n_saved_frames += n_users - 1;
    }
    ASSERT_EQ(world.open_pool.n_hot(), n_open) << "operation " << i;
  }
  EXPECT_GT(n_saved_frames, n_operations / 40) << "sessions shared too little to show anything";
  for (auto& twin : twins) twin.reset();
  EXPECT_EQ(world.pool.n_hot(), 0);
  EXPECT_EQ(world.open_pool.n_hot(), 0);
  EXPECT_EQ(world.shared.size(), 0U);
}

TEST(HotSetTwins, agree_where_all_layers_see_all) {
  TwinWorld world({.n_layers = 2, .n_kv_heads = 2, .block_size = 4}, 14, false);
  live(world, 8000);
}

TEST(HotSetTwins, agree_where_layers_have_windows) {
  TwinWorld world({.n_layers = 3, .n_kv_heads = 1, .block_size = 4, .windows = {9, 0, 5}}, 14, false);
  live(world, 8000);
}

TEST(HotSetTwins, agree_where_every_layer_has_a_window) {
  TwinWorld world({.n_layers = 2, .n_kv_heads = 2, .block_size = 4, .windows = {6, 12}}, 9, false);
  live(world, 8000);
}

TEST(HotSetTwins, agree_where_full_blocks_are_sealed) {
  TwinWorld world({.n_layers = 2, .n_kv_heads = 2, .block_size = 4, .windows = {0, 7}}, 14, true);
  live(world, 8000);
}

TEST(HotSetTwins, agree_on_more_heads_than_a_word_holds) {
  TwinWorld world({.n_layers = 2, .n_kv_heads = 35, .block_size = 4, .windows = {0, 7}}, 14, false);
  live(world, 600);
}

}  // namespace
}  // namespace ebb
