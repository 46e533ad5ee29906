// Test support: a matcher of rows of scores, for tests of and against policy/originals_twin.h.
#pragma once

#include <cmath>
#include <vector>

#include <gmock/gmock.h>

#include "policy/originals_twin.h"

namespace ebb::originals {

// Within `error` of each; kAlways only where it is expected.
inline auto near(const Row& row, double error = 1e-12) {
  std::vector<::testing::Matcher<double>> matchers;
  for (const double x : row) {
    matchers.push_back(std::isinf(x) ? ::testing::Matcher<double>(x) : ::testing::DoubleNear(x, error));
  }
  return ::testing::ElementsAreArray(matchers);
}

}  // namespace ebb::originals
