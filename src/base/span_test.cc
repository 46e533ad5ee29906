#include "base/span.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

constexpr Span span(std::int32_t begin, std::int32_t end) { return {Position(begin), Position(end)}; }

TEST(Span, holds_its_begin_and_not_its_end) {
  EXPECT_TRUE(span(3, 5).contains(Position(3)));
  EXPECT_TRUE(span(3, 5).contains(Position(4)));
  EXPECT_FALSE(span(3, 5).contains(Position(5)));
  EXPECT_FALSE(span(3, 5).contains(Position(2)));
  EXPECT_EQ(span(3, 5).n_tokens(), 2);
}

TEST(Span, is_empty_where_begin_is_end) {
  EXPECT_TRUE(span(3, 3).empty());
  EXPECT_FALSE(span(3, 4).empty());
  EXPECT_FALSE(span(3, 3).contains(Position(3)));
}

TEST(Span, overlaps_and_intersects_like_sets_of_positions) {
  for (std::int32_t a = 0; a <= 4; ++a) {
    for (std::int32_t b = a; b <= 4; ++b) {
      for (std::int32_t c = 0; c <= 4; ++c) {
        for (std::int32_t d = c; d <= 4; ++d) {
          const Span both = intersect(span(a, b), span(c, d));
          std::int32_t n_common = 0;
          for (std::int32_t p = 0; p < 4; ++p) {
            const bool common = span(a, b).contains(Position(p)) && span(c, d).contains(Position(p));
            n_common += common ? 1 : 0;
            EXPECT_EQ(both.contains(Position(p)), common);
          }
          EXPECT_EQ(both.n_tokens(), n_common);
          if (a < b && c < d) {
            EXPECT_EQ(span(a, b).overlaps(span(c, d)), n_common > 0);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ebb
