#include "text/calls/json_scanner.h"

#include <random>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "text/calls/json_string.h"

namespace ebb {
namespace {

// The bytes of the value at the text's beginning; nothing if it has no end or is none.
std::string_view value_of(std::string_view text) {
  JsonScanner scanner;
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (scanner.take(text[i])) {
      case JsonScanner::Step::kMore: break;
      case JsonScanner::Step::kEnd: return text.substr(0, i + 1);
      case JsonScanner::Step::kEndBefore: return text.substr(0, i);
      case JsonScanner::Step::kBad: return {};
    }
  }
  return {};
}

TEST(JsonScanner, FindsTheEndOfAValue) {
  EXPECT_EQ(value_of("{\"a\": [1, {\"}\": \"\\\"]\"}]} tail"), "{\"a\": [1, {\"}\": \"\\\"]\"}]}");
  EXPECT_EQ(value_of("-1.5e3, 2"), "-1.5e3");
  EXPECT_EQ(value_of("true1"), "true");
  EXPECT_EQ(value_of("\"a\nb\\q\"x"), "\"a\nb\\q\"");
  EXPECT_EQ(value_of("[] []"), "[]");
  for (const char* text :
       {"{a:1}", "[1,]", "{\"a\"}", "[1 2]", "}", "tru}", "{\"a\":1,}", "[}", "{\"a\":}", " 1 ", "[", "nul"}) {
    EXPECT_EQ(value_of(text), "") << text;
  }
  EXPECT_EQ(value_of(std::string(100000, '[')), "");
}

TEST(JsonScanner, EndsWhereAParserEnds) {
  std::mt19937 random(5);
  const std::string letters = "{}[]\",:1-tn\\ ";
  int n_values = 0;
  for (int round = 0; round < 200000; ++round) {
    std::string text = random() % 2 == 0 ? "[" : "{\"";
    for (std::size_t n = random() % 8; n > 0; --n) text += letters[random() % letters.size()];
    for (std::size_t n = 1; n <= text.size(); ++n) {
      if (!nlohmann::json::accept(text.substr(0, n))) continue;
      ASSERT_EQ(value_of(text), text.substr(0, n));
      ++n_values;
      break;
    }
  }
  EXPECT_GT(n_values, 1000);
}

TEST(JsonString, WritesWhatAParserReadsAndReadsItBack) {
  std::mt19937 random(6);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (std::size_t n = random() % 20; n > 0; --n) {
      const auto code = static_cast<char32_t>(random() % (random() % 2 == 0 ? 0x80 : 0x110000));
      if (code < 0xD800 || code >= 0xE000) add_utf8(code, text);
    }
    const std::string written = to_json_string(text);
    ASSERT_EQ(nlohmann::json::parse(written).get<std::string>(), text);
    // With every character as an escape that can be one.
    const std::string escaped = nlohmann::json(text).dump(-1, ' ', true);
    for (const std::string& form : {written, escaped}) {
      JsonStringReader reader;
      std::string back;
      bool is_end = false;
      for (std::size_t i = 1; i < form.size(); ++i) is_end = reader.take(form[i], back);
      ASSERT_TRUE(is_end);
      ASSERT_EQ(back, text);
    }
  }
}

TEST(JsonString, KeepsWhatIsNoEscapeAndReplacesHalfPairs) {
  const auto read = [](std::string_view inside) {
    JsonStringReader reader;
    std::string text;
    for (const char c : inside) EXPECT_FALSE(reader.take(c, text)) << inside;
    EXPECT_TRUE(reader.take('"', text));
    return text;
  };
  EXPECT_EQ(read("\\d\\/"), "\\d/");
  EXPECT_EQ(read("\\u12x"), "\\u12x");
  EXPECT_EQ(read("\\u0\\n"), "\\u0\n");
  EXPECT_EQ(read("\\ud83dx"), "\xEF\xBF\xBDx");
  EXPECT_EQ(read("\\ude00"), "\xEF\xBF\xBD");
  EXPECT_EQ(read("\\ud83d\\ud83d\\ude00"), "\xEF\xBF\xBD\U0001F600");
}

}  // namespace
}  // namespace ebb
