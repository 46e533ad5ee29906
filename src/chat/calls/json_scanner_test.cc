#include "chat/calls/json_scanner.h"

#include <random>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

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

TEST(JsonScanner, finds_the_end_of_a_value) {
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

TEST(JsonScanner, ends_where_a_parser_ends) {
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

}  // namespace
}  // namespace ebb
