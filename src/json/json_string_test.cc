#include "json/json_string.h"

#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ebb {
namespace {

TEST(JsonString, writes_what_a_parser_reads_and_reads_it_back) {
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

TEST(JsonString, keeps_what_is_no_escape_and_replaces_half_pairs) {
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
