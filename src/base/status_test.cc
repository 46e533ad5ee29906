#include "base/status.h"

#include <memory>
#include <set>

#include <gtest/gtest.h>

namespace ebb {
namespace {

Status fail_if(bool fails) { return fails ? error(Code::kIo, "disk {} is gone", 3) : Status(); }

Status forward(bool fails, bool& went_on) {
  EBB_RETURN_IF_ERROR(fail_if(fails));
  went_on = true;
  return {};
}

Result<int> half(int n) {
  if (n % 2 != 0) return error(Code::kInvalidArgument, "{} is odd", n);
  return n / 2;
}

Result<int> quarter(int n) {
  EBB_ASSIGN_OR_RETURN(const int once, half(n));
  EBB_ASSIGN_OR_RETURN(const int twice, half(once));
  return twice;
}

TEST(Status, is_ok_until_told_otherwise) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().code(), Code::kOk);
  const Status status = fail_if(true);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_EQ(status.message(), "disk 3 is gone");
}

TEST(Status, returns_early_only_on_errors) {
  bool went_on = false;
  EXPECT_EQ(forward(true, went_on).code(), Code::kIo);
  EXPECT_FALSE(went_on);
  EXPECT_TRUE(forward(false, went_on).ok());
  EXPECT_TRUE(went_on);
}

TEST(Status, has_a_name_of_its_own_for_every_code) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(Code::kCancelled); ++code) {
    names.insert(code_name(static_cast<Code>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Code::kCancelled) + 1);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Result, is_a_value_or_an_error) {
  EXPECT_EQ(*half(8), 4);
  EXPECT_TRUE(half(8).status().ok());
  EXPECT_FALSE(half(7).ok());
  EXPECT_EQ(half(7).status().message(), "7 is odd");
}

TEST(Result, forwards_the_first_error) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(7).status().message(), "7 is odd");
  EXPECT_EQ(quarter(6).status().message(), "3 is odd");
}

TEST(Result, moves_values_that_cannot_be_copied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  EXPECT_EQ(**result, 5);
  const std::unique_ptr<int> moved = std::move(result).value();
  EXPECT_EQ(*moved, 5);
}

TEST(StatusDeathTest, stops_on_misuse) {
  EXPECT_DEATH((void)half(7).value(), "7 is odd");
  EXPECT_DEATH(Status(Code::kOk, "fine"), "an error needs a code: fine");
  EXPECT_DEATH(Result<int>{Status()}, "needs an error");
}

}  // namespace
}  // namespace ebb
