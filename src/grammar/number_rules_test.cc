#include "grammar/number_rules.h"

#include <random>

#include "fmt/format.h"
#include "grammar/grammar_match_test.h"
#include "gtest/gtest.h"

namespace ebb {
namespace {

std::optional<NumberBound> bound(std::int64_t thousandths, bool exclusive) {
  const std::int64_t size = thousandths < 0 ? -thousandths : thousandths;
  return NumberBound{
      .value = *Decimal::parse(fmt::format("{}{}.{:03}", thousandths < 0 ? "-" : "", size / 1000, size % 1000)),
      .exclusive = exclusive};
}

TEST(NumberRules, read_decimals_however_they_are_written) {
  const auto text = [](std::string_view number) {
    const auto decimal = Decimal::parse(number);
    return !decimal ? "none" : fmt::format("{}{}.{}", decimal->negative ? "-" : "", decimal->whole, decimal->fraction);
  };
  EXPECT_EQ(text("0"), "0.");
  EXPECT_EQ(text("-0.0"), "0.");
  EXPECT_EQ(text("-12.50"), "-12.5");
  EXPECT_EQ(text("1.25e2"), "125.");
  EXPECT_EQ(text("1.25e-3"), "0.00125");
  EXPECT_EQ(text("1e+17"), "100000000000000000.");
  EXPECT_EQ(text("1e18"), "none");
  EXPECT_EQ(text("1e-17"), "none");
  EXPECT_EQ(text("1e999999999999"), "none");
}

TEST(NumberRules, compare_decimals) {
  const auto order = [](std::string_view a, std::string_view b) {
    return Decimal::parse(a)->compare(*Decimal::parse(b));
  };
  EXPECT_EQ(order("1", "1.0"), 0);
  EXPECT_EQ(order("9", "10"), -1);
  EXPECT_EQ(order("-9", "-10"), 1);
  EXPECT_EQ(order("-1", "0"), -1);
  EXPECT_EQ(order("0.15", "0.2"), -1);
  EXPECT_EQ(order("0.5", "0.51"), -1);
}

TEST(NumberRules, let_in_exactly_the_integers_between_random_bounds) {
  std::mt19937 random(3);
  for (int round = 0; round < 150; ++round) {
    const auto draw = [&] { return static_cast<std::int64_t>(random() % 400) - 200; };
    const std::int64_t least = draw() * (random() % 2 == 0 ? 1 : 37);
    const std::int64_t most = least + static_cast<std::int64_t>(random() % 1500);
    const bool strict = random() % 2 == 0;
    const auto expression = integer_between(bound(least * 1000, strict), bound(most * 1000, false));
    if (!expression) {
      EXPECT_TRUE(strict && least == most);
      continue;
    }
    GrammarMatch grammar("root ::= " + *expression);
    ASSERT_EQ(grammar.error(), "");
    for (std::int64_t i = least - 20; i <= most + 20; i += 1 + static_cast<std::int64_t>(random() % 7)) {
      ASSERT_EQ(grammar.matches(std::to_string(i)), i >= least + (strict ? 1 : 0) && i <= most)
          << i << " in " << least << ".." << most << ": " << *expression;
    }
    EXPECT_FALSE(grammar.matches("00"));
    EXPECT_FALSE(grammar.matches("-0"));
  }
}

TEST(NumberRules, let_in_exactly_the_decimals_between_random_bounds) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t step = random() % 2 == 0 ? 1 : 250;
    const std::int64_t least = (static_cast<std::int64_t>(random() % 8000) - 4000) / step * step;
    const std::int64_t most = least + static_cast<std::int64_t>(random() % 3000) / step * step;
    const bool above = random() % 2 == 0;
    const bool below = random() % 2 == 0;
    const bool open = random() % 4 == 0;
    const auto expression = number_between(bound(least, above), open ? std::nullopt : bound(most, below));
    if (!expression) {
      EXPECT_TRUE(!open && least == most && (above || below)) << least << " " << most;
      continue;
    }
    GrammarMatch grammar("root ::= " + *expression);
    ASSERT_EQ(grammar.error(), "");
    for (std::int64_t i = least - 50; i <= most + 50; i += 1 + static_cast<std::int64_t>(random() % 97)) {
      const bool in = (above ? i > least : i >= least) && (open || (below ? i < most : i <= most));
      const std::int64_t size = i < 0 ? -i : i;
      std::string text = fmt::format("{}{}.{:03}", i < 0 ? "-" : "", size / 1000, size % 1000);
      ASSERT_EQ(grammar.matches(text), in) << text << " in " << least << ".." << most << ": " << *expression;
      while (text.back() == '0') text.pop_back();
      if (text.back() == '.') text.pop_back();
      ASSERT_EQ(grammar.matches(text), in) << text << " in " << least << ".." << most << ": " << *expression;
    }
  }
}

}  // namespace
}  // namespace ebb
