#include "text/utf8_stream.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace ebb {
namespace {

const std::string kMark = "\xEF\xBF\xBD";

// An independent reader: the longest well-formed character at each place by comparing code points with their shortest
// encoding, else one mark per maximal beginning of one.
std::string encode(unsigned cp) {
  if (cp < 0x80) return {static_cast<char>(cp)};
  if (cp < 0x800) return {static_cast<char>(0xC0 | (cp >> 6)), static_cast<char>(0x80 | (cp & 63))};
  if (cp < 0x10000) {
    return {static_cast<char>(0xE0 | (cp >> 12)), static_cast<char>(0x80 | ((cp >> 6) & 63)),
            static_cast<char>(0x80 | (cp & 63))};
  }
  return {static_cast<char>(0xF0 | (cp >> 18)), static_cast<char>(0x80 | ((cp >> 12) & 63)),
          static_cast<char>(0x80 | ((cp >> 6) & 63)), static_cast<char>(0x80 | (cp & 63))};
}

// Length of the longest prefix of `bytes` that is a beginning of any encoded character, and whether it is a whole one.
std::pair<std::size_t, bool> longest_beginning(std::string_view bytes) {
  static const std::vector<std::string> characters = [] {
    std::vector<std::string> all;
    for (unsigned cp = 0; cp < 0x110000; ++cp) {
      if (cp < 0xD800 || cp > 0xDFFF) all.push_back(encode(cp));
    }
    std::sort(all.begin(), all.end());
    return all;
  }();
  std::size_t n = 0;
  bool whole = false;
  for (std::size_t length = 1; length <= std::min<std::size_t>(4, bytes.size()); ++length) {
    const std::string prefix(bytes.substr(0, length));
    const auto found = std::lower_bound(characters.begin(), characters.end(), prefix);
    if (found == characters.end() || !found->starts_with(prefix)) break;
    n = length;
    whole = *found == prefix;
  }
  return {n, whole};
}

TEST(Utf8Stream, holds_back_a_character_until_its_last_byte_at_every_split) {
  const std::string text = "a\xC3\xA9z\xE2\x82\xAC\xF0\x9F\x98\x80.";
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      Utf8Stream stream;
      std::string out;
      for (const auto& piece : {text.substr(0, first), text.substr(first, second - first), text.substr(second)}) {
        const std::string shown = stream.push(piece);
        EXPECT_TRUE(is_valid_utf8(shown)) << first << ' ' << second;
        EXPECT_LE(stream.n_held(), 3U);
        out += shown;
      }
      EXPECT_EQ(out, text);
      EXPECT_EQ(stream.flush(), "");
    }
  }
}

TEST(Utf8Stream, shows_each_character_with_the_byte_that_completes_it) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xF0\x9F"), "");
  EXPECT_EQ(stream.push("\x98"), "");
  EXPECT_EQ(stream.n_held(), 3U);
  EXPECT_EQ(stream.push("\x80"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(stream.n_held(), 0U);
}

TEST(Utf8Stream, marks_broken_bytes_once_per_maximal_beginning) {
  // The example of Unicode 15, table 3-11.
  EXPECT_EQ(to_valid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), kMark + kMark + kMark + kMark + "A");
  EXPECT_EQ(to_valid_utf8("\xC0\xAF"), kMark + kMark);                          // overlong
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80"), kMark + kMark + kMark);              // a surrogate
  EXPECT_EQ(to_valid_utf8("\xF4\x90\x80\x80"), kMark + kMark + kMark + kMark);  // past U+10FFFF
  EXPECT_EQ(to_valid_utf8("\xFF"), kMark);
  EXPECT_EQ(to_valid_utf8("\xE2\x82"), kMark);
  EXPECT_EQ(to_valid_utf8(std::string_view("\0", 1)), std::string(1, '\0'));
}

TEST(Utf8Stream, is_as_new_after_a_flush) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xE2\x82"), "");
  EXPECT_EQ(stream.flush(), kMark);
  EXPECT_EQ(stream.push("\xAC"), kMark);
  EXPECT_EQ(stream.push("x"), "x");
}

// Bytes drawn so that characters, their beginnings and rubbish all come up.
std::string random_bytes(std::mt19937& random) {
  constexpr std::string_view kLikely =
      "\xE2\x82\xAC\xF0\x9F\x98\x80\xC3\xA9\xED\xA0\x80\xF4\x90\xC0\xE0\xBF"
      "az";
  std::string bytes;
  for (auto n = random() % 24; n > 0; --n) {
    bytes += random() % 4 == 0 ? static_cast<char>(random() % 256) : kLikely[random() % kLikely.size()];
  }
  return bytes;
}

TEST(Utf8Stream, agrees_with_a_naive_reader_on_random_bytes_in_random_pieces) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    const std::string bytes = random_bytes(random);
    std::string expected;
    for (std::size_t at = 0; at < bytes.size();) {
      const auto [n, whole] = longest_beginning(std::string_view(bytes).substr(at));
      expected += whole ? bytes.substr(at, n) : kMark;
      at += std::max<std::size_t>(n, 1);
    }
    Utf8Stream stream;
    std::string out;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t n = 1 + random() % 5;
      out += stream.push(std::string_view(bytes).substr(at, n));
      ASSERT_TRUE(is_valid_utf8(out));
      at += n;
    }
    out += stream.flush();
    ASSERT_EQ(out, expected) << testing::PrintToString(bytes);
    ASSERT_EQ(is_valid_utf8(bytes), expected == bytes) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace ebb
