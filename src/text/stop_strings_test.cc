#include "text/stop_strings.h"

#include <algorithm>
#include <random>

#include "gtest/gtest.h"

namespace ebb {
namespace {

StopStrings make(std::vector<std::string> strings) { return StopStrings::create(std::move(strings)).value(); }

TEST(StopStrings, holds_back_what_may_begin_a_stop_string_and_no_more) {
  StopStrings stops = make({"STOP"});
  EXPECT_EQ(stops.push("abc").text, "abc");
  EXPECT_EQ(stops.push("dST").text, "d");
  EXPECT_EQ(stops.n_held(), 2U);
  EXPECT_EQ(stops.push("ST").text, "ST");  // the first "ST" turned out to be none
  const auto output = stops.push("OPxyz");
  EXPECT_EQ(output.text, "");
  EXPECT_EQ(output.match, 0U);
}

TEST(StopStrings, cuts_at_the_match_and_swallows_the_rest) {
  StopStrings stops = make({"\n\nUser:"});
  const auto output = stops.push("yes\n\nUser: and more");
  EXPECT_EQ(output.text, "yes");
  EXPECT_EQ(output.match, 0U);
  EXPECT_TRUE(stops.matched());
  EXPECT_EQ(stops.push("more").text, "");
  EXPECT_EQ(stops.flush().text, "");
  stops.reset();
  EXPECT_EQ(stops.push("again").text, "again");
}

TEST(StopStrings, takes_the_earliest_match_even_if_a_later_one_is_complete_first) {
  StopStrings stops = make({"abcd", "c"});
  EXPECT_FALSE(stops.push("xabc").match);  // "abcd" may still come, and begins earlier
  EXPECT_EQ(stops.push("d").match, 0U);

  StopStrings other = make({"abcd", "c"});
  EXPECT_EQ(other.push("xabc").text, "x");
  const auto output = other.push("e");
  EXPECT_EQ(output.match, 1U);
  EXPECT_EQ(output.text, "ab");
}

TEST(StopStrings, takes_the_longest_of_those_at_one_place) {
  StopStrings stops = make({"ab", "abc", "abx"});
  EXPECT_FALSE(stops.push("-ab").match);
  EXPECT_EQ(stops.push("c").match, 1U);

  StopStrings ended = make({"ab", "abc"});
  EXPECT_EQ(ended.push("-ab").text, "-");
  EXPECT_EQ(ended.flush().match, 0U);
}

TEST(StopStrings, gives_out_what_was_held_back_at_the_end) {
  StopStrings stops = make({"STOP"});
  EXPECT_EQ(stops.push("xSTO").text, "x");
  EXPECT_EQ(stops.flush().text, "STO");
}

TEST(StopStrings, passes_everything_without_stop_strings) {
  StopStrings stops = make({});
  EXPECT_EQ(stops.push("anything").text, "anything");
  EXPECT_EQ(stops.n_held(), 0U);
}

TEST(StopStrings, refuses_empty_long_and_too_many_strings) {
  EXPECT_EQ(StopStrings::create({"a", ""}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(StopStrings::create({std::string(StopStrings::kMaxStringBytes + 1, 'x')}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(StopStrings::create(std::vector<std::string>(StopStrings::kMaxStrings + 1, "x")).status().code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(StopStrings::create({std::string(StopStrings::kMaxStringBytes, 'x')}).ok());
}

struct Found {
  std::string text;
  std::optional<std::string> stop;
  bool operator==(const Found&) const = default;
};

Found find_naively(const std::vector<std::string>& stops, const std::string& text) {
  for (std::size_t place = 0; place < text.size(); ++place) {
    std::optional<std::string> longest;
    for (const std::string& stop : stops) {
      if (text.compare(place, stop.size(), stop) == 0 && (!longest || stop.size() > longest->size())) longest = stop;
    }
    if (longest) return {text.substr(0, place), longest};
  }
  return {text, std::nullopt};
}

std::string random_text(std::mt19937& random, std::size_t n) {
  std::string text;
  while (text.size() < n) text += static_cast<char>('a' + random() % 2);
  return text;
}

// What has been shown must be the longest text that no continuation can take back.
void expect_nothing_held_needlessly(const std::vector<std::string>& strings, const StopStrings& stops,
                                    const std::string& seen) {
  const std::string held = seen.substr(seen.size() - stops.n_held());
  if (held.empty()) return;
  const bool may_begin = std::any_of(strings.begin(), strings.end(), [&](const std::string& stop) {
    return stop.size() > held.size() && stop.starts_with(held);
  });
  EXPECT_TRUE(may_begin) << "held '" << held << "' after '" << seen << "'";
}

TEST(StopStrings, agrees_with_a_naive_search_on_random_texts_in_random_pieces) {
  std::mt19937 random(7);
  for (int round = 0; round < 30000; ++round) {
    std::vector<std::string> strings;
    for (auto n = 1 + random() % 4; n > 0; --n) strings.push_back(random_text(random, 1 + random() % 6));
    const std::string text = random_text(random, random() % 24);

    StopStrings stops = make(strings);
    Found found;
    std::string seen;
    const auto take = [&](const StopStrings::Output& output) {
      found.text += output.text;
      if (output.match) found.stop = strings[*output.match];
    };
    for (std::size_t at = 0; at < text.size() && !stops.matched();) {
      const std::string piece = text.substr(at, random() % 4);
      take(stops.push(piece));
      seen += piece;
      at += piece.size();
      if (!stops.matched()) expect_nothing_held_needlessly(strings, stops, seen);
    }
    take(stops.flush());
    ASSERT_EQ(found, find_naively(strings, text)) << text << " / " << testing::PrintToString(strings);
  }
}

}  // namespace
}  // namespace ebb
