// Test support: a hot set in lock step with a naive twin that derives everything anew from what was done to each block.
//
//   names     the twin writes down in words what each token saw; names and words must go together one to one, across
//             all sessions and histories: two blocks have one name exactly if they hold and saw the same
//   frames    each block's frames, head by head: those that others have listed, or new ones; the rest as they were
//   bytes     what was last written into each frame; a whole block's frames hold what its name and anchor mean (law 2)
//   tables    derived from the frames, in position order
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "cache/hot_set.h"

namespace ebb {

class HotSetTwin;

// What twins have in common.
struct TwinWorld {
  TwinWorld(BlockShape of, std::int32_t n_blocks, bool seals_blocks)
      : shape(std::move(of)),
        seals(seals_blocks),
        pool(n_blocks * shape.frames_per_block() + 1),
        open_pool(2 * shape.frames_per_block()) {}

  // One number for each text.
  int number(const std::string& text) {
    return numbers.try_emplace(text, 1 + static_cast<int>(numbers.size())).first->second;
  }
  void expect_one_to_one(const std::string& words, const Hash128& name) {
    ASSERT_EQ(name_of.try_emplace(words, name).first->second, name) << "two names of " << words;
    ASSERT_EQ(words_of.try_emplace(name, words).first->second, words) << "one name of two";
  }

  BlockShape shape;
  bool seals = false;
  FramePool pool;
  FramePool open_pool;
  HotBlocks shared;
  std::vector<HotSetTwin*> twins;
  std::map<FrameIndex, int> written;
  std::map<std::string, int> numbers;
  std::map<std::string, Hash128> name_of;
  std::map<Hash128, std::string> words_of;
};

class HotSetTwin {
 public:
  HotSetTwin(TwinWorld& world, std::uint64_t seed)
      : world_(world),
        hot_({.pool = world.pool, .open_pool = world.seals ? &world.open_pool : nullptr, .shared = &world.shared},
             world.shape),
        random_(seed) {}

  void do_something() {
    const std::uint64_t choice = random_() % 24;
    if (choice < 6) return say();
    if (choice < 10) return leave(any_block(), any_heads());
    if (choice < 14) return (void)come(any_block(), any_heads());
    if (choice < 15) return look_from(Position(static_cast<std::int32_t>(random_() % (tokens_.size() + 1))));
    if (choice < 16)
      return cut(end() - static_cast<std::int32_t>(random_() % (tokens_.size() / (1 + random_() % 3) + 1)));
    if (choice < 18) return compute_again(any_block());
    if (choice < 19) return (void)own(any_block());
    if (choice < 21) return move(any_block());
    if (choice < 22) return random_() % 4 == 0 ? vary(any_block()) : say();
    adopt(random_() % 2 == 0);
  }

  void compare();
  void compare_names();
  // Adds how often each frame is used, and counts open ones.
  void count_frames(std::map<FrameIndex, std::int32_t>& users, std::int32_t& n_open) const {
    for (const Block& b : blocks_) {
      for (const FrameIndex frame : b.frames) {
        if (frame != kNoFrame) ++users[frame];
      }
      n_open += static_cast<std::int32_t>(std::ranges::count(b.open, true));
    }
  }

 private:
  struct Block {
    std::vector<FrameIndex> frames;
    std::vector<bool> open;
    std::vector<bool> listed;
    std::vector<int> seen;  // of each token, in words that have this number
    Position anchor;
    Position born;
    int variant = 0;
    int body = 0;  // 0: not known
    bool turned = false;
    bool is_exact = true;
  };

  // --- the twin's own view ---

  [[nodiscard]] std::int32_t size() const { return world_.shape.block_size; }
  [[nodiscard]] std::size_t n_heads() const { return world_.shape.n_heads(); }
  [[nodiscard]] std::int32_t n_blocks() const { return static_cast<std::int32_t>(blocks_.size()); }
  [[nodiscard]] Position end() const { return Position(static_cast<std::int32_t>(tokens_.size())); }
  [[nodiscard]] Position begin(std::int32_t b) const { return Position(b * size()); }
  [[nodiscard]] bool is_full(std::int32_t b) const { return end() >= begin(b + 1); }
  [[nodiscard]] Block& at(std::int32_t b) { return blocks_[static_cast<std::size_t>(b)]; }
  [[nodiscard]] const Block& at(std::int32_t b) const { return blocks_[static_cast<std::size_t>(b)]; }
  [[nodiscard]] bool is_hot(std::int32_t b, std::size_t head) const { return at(b).frames[head] != kNoFrame; }
  [[nodiscard]] bool is_wanted(std::int32_t b, std::size_t head) const {
    const std::int32_t window =
        world_.shape.window(LayerIndex(static_cast<std::int32_t>(head) / world_.shape.n_kv_heads));
    return window == 0 || !is_full(b) || begin(b + 1) - 1 > eye_ - window;
  }
  [[nodiscard]] std::int32_t n_hot(std::int32_t b) const {
    return static_cast<std::int32_t>(n_heads()) - static_cast<std::int32_t>(std::ranges::count(at(b).frames, kNoFrame));
  }
  template <class Holds>
  [[nodiscard]] HeadSet heads_where(const Holds& holds) const {
    HeadSet heads(n_heads());
    for (std::size_t head = 0; head < n_heads(); ++head) {
      if (holds(head)) heads.add(head);
    }
    return heads;
  }
  [[nodiscard]] HeadSet missing(std::int32_t b) const {
    return heads_where([&](std::size_t head) { return is_wanted(b, head) && !is_hot(b, head); });
  }

  [[nodiscard]] std::string name_words(Position begin, std::span<const Token> tokens, std::span<const int> seen,
                                       int variant) const {
    std::string words = fmt::format("block at {}, variant {}:", begin.value(), variant);
    for (std::size_t i = 0; i < tokens.size(); ++i) words += fmt::format(" {} saw {}", tokens[i].value(), seen[i]);
    return words;
  }
  [[nodiscard]] std::string name_words(std::int32_t b) const {
    const auto first = begin(b).index();
    return name_words(begin(b), std::span(tokens_).subspan(first, at(b).seen.size()), at(b).seen, at(b).variant);
  }
  [[nodiscard]] static std::string whole_words(int name, int body, std::int32_t shift) {
    return fmt::format("{} of {} by {}", name, body, shift);
  }
  // What a full block is to those behind it.
  [[nodiscard]] std::string leaf_words(std::int32_t b, bool whole) {
    const HeadSet none = missing(b);
    if (!whole && !none.empty() && n_hot(b) == 0) return "nothing";
    std::string words = whole_words(world_.number(name_words(b)), at(b).body, at(b).anchor - begin(b));
    if (!whole) none.for_each([&](std::size_t head) { words += fmt::format(" but {}", head); });
    return words;
  }
  [[nodiscard]] static std::string seen_words(std::span<const std::string> leaves, std::int32_t shift) {
    return fmt::format("by {}, [{}]", shift, fmt::join(leaves, "; "));
  }
  [[nodiscard]] std::vector<std::string> leaves_before(std::int32_t b, bool whole = false) {
    std::vector<std::string> leaves;
    for (std::int32_t i = 0; i < b; ++i) leaves.push_back(leaf_words(i, whole));
    return leaves;
  }
  [[nodiscard]] int seen_before(std::int32_t b) {
    return world_.number(seen_words(leaves_before(b), at(b).anchor - begin(b)));
  }
  // The bytes of each head of a full block, as numbers.
  [[nodiscard]] std::vector<int> bytes(std::int32_t b) {
    const int name = world_.number(name_words(b));
    std::vector<int> bytes;
    for (std::size_t head = 0; head < n_heads(); ++head) {
      bytes.push_back(world_.number(fmt::format("bytes of {} at {}, head {}", name, at(b).anchor.value(), head)));
    }
    return bytes;
  }
  // What they are together, where nothing turned them.
  [[nodiscard]] int body(const std::string& name, Position born) {
    return world_.number(fmt::format("bytes of {} at {}", name, born.value()));
  }
  [[nodiscard]] static Hash128 body_hash(int body) { return {.low = static_cast<std::uint64_t>(body)}; }
  [[nodiscard]] bool is_any_moved() const {
    for (std::int32_t b = 0; b < n_blocks(); ++b) {
      if (at(b).anchor != begin(b)) return true;
    }
    return false;
  }

  // The frame that is listed for a head of the block, and whether its name is listed as something else.
  struct Listed {
    std::vector<FrameIndex> frames;
    bool is_other = false;
  };
  [[nodiscard]] Listed listed(std::int32_t b) const {
    Listed listed{.frames = std::vector<FrameIndex>(n_heads(), kNoFrame)};
    const std::string words = name_words(b);
    for (const HotSetTwin* const twin : world_.twins) {
      if (b >= twin->n_blocks() || twin->name_words(b) != words) continue;
      const Block& other = twin->at(b);
      if (std::ranges::count(other.listed, true) == 0) continue;
      listed.is_other |= other.anchor != at(b).anchor || other.born != at(b).born;
      for (std::size_t head = 0; head < n_heads(); ++head) {
        if (other.listed[head]) listed.frames[head] = other.frames[head];
      }
    }
    if (listed.is_other || !is_full(b)) listed.frames.assign(n_heads(), kNoFrame);
    return listed;
  }

  // --- what is done to both ---

  std::int32_t any_block() {
    return blocks_.empty() ? -1 : static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(n_blocks()));
  }
  HeadSet any_heads() {
    const std::uint64_t most = random_() % 3;
    return heads_where([&](std::size_t) { return most == 0 || random_() % 3 < most; });
  }
  // Mostly what others say too.
  std::vector<Token> any_tokens(std::int32_t n) {
    std::vector<Token> tokens;
    const std::int32_t text = random_() % 30 == 0 ? 1000 : 0;
    for (std::int32_t i = 0; i < n; ++i) tokens.emplace_back(text + end().value() + i);
    return tokens;
  }

  void say();
  void adopt(bool whole);
  void add_blocks(std::int32_t n_tokens);
  void append(std::int32_t b, std::span<const Token> tokens, int source);
  void leave(std::int32_t b, const HeadSet& heads);
  bool come(std::int32_t b, HeadSet heads, bool takes_listed = true);
  bool own(std::int32_t b);
  bool hold_open(std::int32_t b);
  void publish(std::int32_t b);
  void write(std::int32_t b, const HeadSet& heads);
  void look_from(Position eye);
  void cut(Position end);
  void compute_again(std::int32_t b);
  void move(std::int32_t b);
  void vary(std::int32_t b);

  TwinWorld& world_;
  HotSet hot_;
  std::mt19937_64 random_;
  std::vector<Token> tokens_;
  std::vector<Block> blocks_;
  Position eye_;
  Position next_anchor_;
};

}  // namespace ebb
