#include "base/caught.h"

#include <new>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::HasSubstr;

template <class Thrown>
Status status_of(const Thrown& thrown) {
  try {
    throw thrown;
  } catch (...) {
    return caught("a step was computed");
  }
}

TEST(Caught, memory_that_is_short_is_told_as_such_and_what_to_do) {
  const Status status = status_of(std::bad_alloc());
  EXPECT_EQ(status.code(), Code::kOutOfBudget);
  EXPECT_THAT(status.message(), HasSubstr("memory ran short while a step was computed"));
  EXPECT_EQ(status_of(std::length_error("vector")).code(), Code::kOutOfBudget);
}

TEST(Caught, other_errors_are_told_in_their_own_words) {
  const Status status = status_of(std::runtime_error("no more threads"));
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(status.message(), HasSubstr("no more threads"));
  EXPECT_EQ(status_of(7).code(), Code::kIo);
}

}  // namespace
}  // namespace ebb
