#include "server/fields.h"

#include <limits>

#include <gtest/gtest.h>

namespace ebb {
namespace {

using Limits = std::numeric_limits<std::int64_t>;

TEST(Fields, integers_of_64_bits_come_through_and_larger_ones_are_refused) {
  const auto read = [](const char* text) -> Result<std::int64_t> {
    const Json json = {{"n", Json::parse(text)}};
    Fields fields(json);
    const std::int64_t n = fields.integer("n", 0, Limits::min(), Limits::max());
    EBB_RETURN_IF_ERROR(fields.status());
    return n;
  };
  EXPECT_EQ(read("9223372036854775807").value(), Limits::max());
  EXPECT_EQ(read("-9223372036854775808").value(), Limits::min());
  EXPECT_EQ(read("1e15").value(), 1'000'000'000'000'000);
  for (const char* text : {"9223372036854775808", "18446744073709551615", "9223372036854775808.0", "1e300", "-1e19"}) {
    EXPECT_EQ(read(text).status().code(), Code::kInvalidArgument) << text;
    EXPECT_NE(read(text).status().message().find("Field 'n': Value must be between"), std::string::npos) << text;
  }
  EXPECT_NE(read("1.5").status().message().find("integer, but got 1.5"), std::string::npos);
}

TEST(Fields, members_of_an_object_inside_are_named_with_their_path) {
  const Json holder = {{"flag", 3}};
  Fields inner(holder, "options");
  (void)inner.boolean("flag", false);
  EXPECT_EQ(inner.status().message(), "Field 'options.flag': must be true or false, but got a number");
  const Json five = 5;
  EXPECT_EQ(Fields(five, "options").status().message(), "Field 'options': must be an object, but got a number");
  EXPECT_EQ(Fields(five).status().message(), "the body must be a JSON object");
  Fields outer(holder);
  outer.refuse_as(inner);
  EXPECT_EQ(outer.status().message(), inner.status().message());
}

}  // namespace
}  // namespace ebb
