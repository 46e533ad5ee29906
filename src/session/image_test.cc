#include "session/image.h"

#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "base/byte_io.h"

namespace ebb {
namespace {

constexpr std::size_t kVersionAt = 8;

SessionImage counted() {
  return {.tokens = {Token(1), Token(2)},
          .n_turns = 3,
          .stats = {.n_evicted_blocks = 28, .n_saved_blocks = 27, .n_recalled_blocks = 7, .n_rebases = 1}};
}

std::vector<std::byte> with_checksum(std::span<const std::byte> body) {
  ByteWriter out;
  out.put_bytes(body);
  out.put(hash_bytes(body));
  return std::move(out.bytes());
}

// What `encode_image` gave, with another version and without its checksum.
std::vector<std::byte> body_of_version(std::uint32_t version) {
  std::vector<std::byte> bytes = encode_image(counted());
  bytes.erase(bytes.end() - sizeof(Hash128), bytes.end());
  std::memcpy(bytes.data() + kVersionAt, &version, sizeof version);
  return bytes;
}

TEST(SessionImages, carry_the_sessions_counters) {
  const Result<SessionImage> image = decode_image(encode_image(counted()));
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(image->stats.n_evicted_blocks, 28);
  EXPECT_EQ(image->stats.n_saved_blocks, 27);
  EXPECT_EQ(image->stats.n_recalled_blocks, 7);
  EXPECT_EQ(image->stats.n_rebases, 1);
  EXPECT_EQ(image->tokens, counted().tokens);
}

TEST(SessionImages, carry_every_field_of_a_block) {
  SessionImage image = counted();
  Lineage lineage;
  lineage.add({7, 8}, 1);
  lineage.add({9, 10}, 1);
  const BlockRecordInfo info = {
      .lineage = lineage, .variant = {1, 2}, .body = {3, 4}, .anchor = Position(48), .is_exact = false, .epoch = 5};
  image.blocks.push_back({.info = info, .pinned = true});
  image.next_anchor = Position(50);
  image.epoch = 6;
  const Result<SessionImage> read = decode_image(encode_image(image));
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->blocks.size(), 1U);
  EXPECT_EQ(read->blocks[0].info.lineage.runs(), lineage.runs());
  EXPECT_EQ(read->blocks[0].info.variant, info.variant);
  EXPECT_EQ(read->blocks[0].info.body, info.body);
  EXPECT_EQ(read->blocks[0].info.anchor, info.anchor);
  EXPECT_EQ(read->blocks[0].info.is_exact, info.is_exact);
  EXPECT_EQ(read->blocks[0].info.epoch, info.epoch);
  EXPECT_TRUE(read->blocks[0].pinned);
  EXPECT_EQ(read->next_anchor, image.next_anchor);
  EXPECT_EQ(read->epoch, image.epoch);
}

TEST(SessionImages, of_another_version_are_refused_with_the_one_that_is_read) {
  for (const std::uint32_t version : {0U, 1U, 4U, 9U}) {
    const Result<SessionImage> image = decode_image(with_checksum(body_of_version(version)));
    EXPECT_EQ(image.status().code(), Code::kUnsupported);
    EXPECT_NE(image.status().message().find("reads versions 5 to 8"), std::string::npos) << image.status().message();
  }
}

// Notes of two blocks by two slices each, whose window nobody asked for.
SessionImage with_slices() {
  SessionImage image = counted();
  image.attention = {.entries = {{.head = 0, .block = 0, .total = 3.0F, .n_queries = 2.0F},
                                 {.head = 0, .block = 1, .total = 7.0F, .n_queries = 1.0F}},
                     .is_pooled = true,
                     .slices = {.n_slices = 2,
                                .end = 40,
                                .total = {1.0F, 2.0F, 3.0F, 4.0F},
                                .n_queries = {2.0F, 2.0F, 1.0F, 1.0F},
                                .last = {0.5F, 0.25F, 0.0F, 0.125F}}};
  return image;
}

TEST(SessionImages, carry_what_was_noted_of_slices) {
  const SessionImage image = with_slices();
  const Result<SessionImage> read = decode_image(encode_image(image));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->attention.entries.size(), 2U);
  EXPECT_TRUE(read->attention.is_pooled);
  EXPECT_EQ(read->attention.slices.n_slices, 2);
  EXPECT_EQ(read->attention.slices.end, 40);
  for (const auto column : AttentionImage::columns()) {
    EXPECT_EQ(read->attention.slices.*column, image.attention.slices.*column);
  }
}

// Whose checksum is right all the same.
TEST(SessionImages, whose_slices_are_not_all_there_are_refused) {
  std::vector<std::byte> bytes = encode_image(with_slices());
  bytes.resize(bytes.size() - sizeof(Hash128));
  // Columns, what says which, and behind them how many numbers a query has and tokens a slice that relies on others.
  const std::size_t n_rest = 12 * sizeof(float) + 5 * sizeof(std::int32_t);
  for (const std::size_t n_less : {std::size_t{1}, sizeof(float), 8 * sizeof(float), n_rest - 1}) {
    const auto shorter = std::span(bytes).first(bytes.size() - n_less);
    EXPECT_EQ(decode_image(with_checksum(shorter)).status().code(), Code::kDamaged) << n_less;
  }
  for (const std::int32_t n_slices : {-2, 3, 1 << 20}) {
    std::vector<std::byte> other = bytes;
    std::memcpy(other.data() + other.size() - n_rest, &n_slices, sizeof n_slices);
    EXPECT_EQ(decode_image(with_checksum(other)).status().code(), Code::kDamaged) << n_slices;
  }
}

QueryImage some_queries() {
  return {.n_dims = 2, .n_queries = {5, 7}, .sums = {1, 2, 3, 4}, .products = {1.5, -2.5, 3.5, 4.5, -5.5, 1.0 / 3.0}};
}

TEST(SessionImages, carry_notes_on_queries_bit_by_bit) {
  SessionImage image = counted();
  image.queries = some_queries();
  image.borders.push_back({.name = {1, 2}, .body = {3, 4}});
  const Result<SessionImage> read = decode_image(encode_image(image));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->queries.n_dims, 2);
  EXPECT_EQ(read->queries.n_queries, image.queries.n_queries);
  EXPECT_EQ(read->queries.sums, image.queries.sums);
  EXPECT_EQ(read->queries.products, image.queries.products);
  EXPECT_EQ(read->borders.size(), 1U) << "what comes behind them";
  EXPECT_EQ(decode_image(encode_image(counted()))->queries.n_dims, 0);
}

TEST(SessionImages, carry_what_slices_rely_on) {
  SessionImage image = counted();
  image.reliances = *Reliances::restore(16, Position(40), {std::vector<std::int32_t>{}, std::nullopt, {{0, 1}}});
  image.borders.push_back({.name = {1, 2}, .body = {3, 4}});
  const std::vector<std::byte> bytes = encode_image(image);
  const Result<SessionImage> read = decode_image(bytes);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_TRUE(read->reliances);
  EXPECT_EQ(read->reliances->end(), Position(40));
  EXPECT_TRUE(read->reliances->of(0)->empty());
  EXPECT_EQ(read->reliances->of(1), std::nullopt);
  EXPECT_TRUE(std::ranges::equal(*read->reliances->of(2), std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(read->borders.size(), 1U) << "what comes behind them";
  EXPECT_FALSE(decode_image(encode_image(counted()))->reliances);
  // Whatever they are damaged to, nothing but a refusal comes of it.
  const std::size_t end = bytes.size() - sizeof(Hash128) - 36;
  for (std::size_t at = end - 28; at < end; ++at) {
    for (const unsigned value : {0U, 1U, 127U, 128U, 255U}) {
      std::vector<std::byte> body(bytes.begin(), bytes.end() - sizeof(Hash128));
      body[at] = std::byte(value);
      const Result<SessionImage> damaged = decode_image(with_checksum(body));
      EXPECT_TRUE(damaged.ok() || damaged.status().code() == Code::kDamaged) << at << " " << value;
    }
  }
}

TEST(SessionImages, of_the_version_before_do_not_say_what_slices_rely_on) {
  std::vector<std::byte> body = body_of_version(7);
  body.resize(body.size() - sizeof(std::int32_t));
  const Result<SessionImage> image = decode_image(with_checksum(body));
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(image->tokens, counted().tokens);
  EXPECT_FALSE(image->reliances);
}

TEST(SessionImages, of_the_sixth_version_have_totals_that_are_not_pooled) {
  std::vector<std::byte> body = body_of_version(6);
  body.resize(body.size() - sizeof(std::int32_t));
  const auto n_behind = static_cast<std::ptrdiff_t>(2 * sizeof(std::uint32_t));
  body.erase(body.end() - n_behind - sizeof(std::uint32_t), body.end() - n_behind);
  const Result<SessionImage> image = decode_image(with_checksum(body));
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(image->tokens, counted().tokens);
  EXPECT_FALSE(image->attention.is_pooled);
}

TEST(SessionImages, of_the_first_version_are_read_without_notes_on_slices_and_queries) {
  std::vector<std::byte> body = body_of_version(5);
  // Whether totals are pooled, how many slices there are, numbers a query has and tokens a slice that relies on others: none.
  body.resize(body.size() - 4 * sizeof(std::uint32_t));
  const Result<SessionImage> image = decode_image(with_checksum(body));
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(image->tokens, counted().tokens);
  EXPECT_EQ(image->attention.slices.n_slices, 0);
  EXPECT_EQ(image->queries.n_dims, 0);
}

TEST(SessionImages, with_more_queries_than_bytes_are_refused_before_anything_is_allocated) {
  SessionImage image = counted();
  image.queries = some_queries();
  std::vector<std::byte> body = encode_image(image);
  body.resize(body.size() - sizeof(Hash128));
  // Before the last number: 6 products, 4 sums and 2 counts of 8 bytes each.
  const std::size_t n_heads_at = body.size() - 12 * 8 - 2 * sizeof(std::uint32_t);
  const auto refused = [&](std::size_t at, std::uint32_t value) {
    std::vector<std::byte> damaged = body;
    std::memcpy(damaged.data() + at, &value, sizeof value);
    EXPECT_EQ(decode_image(with_checksum(damaged)).status().code(), Code::kDamaged) << at << " " << value;
  };
  for (const std::uint32_t n_heads : {0U, 1U, 3U, 0xFFFFFFFFU}) refused(n_heads_at, n_heads);
  for (const std::uint32_t n_dims : {0U, 1U, 3U, 1025U, 0xFFFFFFFFU}) refused(n_heads_at - 4, n_dims);
}

TEST(SessionImages, damaged_anywhere_are_refused) {
  const std::vector<std::byte> bytes = encode_image(with_slices());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::vector<std::byte> damaged = bytes;
    damaged[at] ^= std::byte{1};
    EXPECT_EQ(decode_image(damaged).status().code(), Code::kDamaged) << at;
    EXPECT_EQ(decode_image(std::span(bytes).first(at)).status().code(), Code::kDamaged) << at;
  }
}

TEST(SessionImages, counters_that_no_session_reaches_are_cut_so_that_counting_goes_on) {
  SessionImage image = counted();
  image.stats.n_evicted_blocks = std::numeric_limits<std::int64_t>::max();
  image.stats.n_saved_blocks = -5;
  const Result<SessionImage> read = decode_image(encode_image(image));
  ASSERT_TRUE(read.ok());
  EXPECT_LT(read->stats.n_evicted_blocks, std::numeric_limits<std::int64_t>::max() / 2);
  EXPECT_EQ(read->stats.n_saved_blocks, 0);
}

}  // namespace
}  // namespace ebb
