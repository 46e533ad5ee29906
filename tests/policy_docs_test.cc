// The table of docs/policies.md is the registry's.
#include <fstream>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/policy.h"

namespace ebb {
namespace {

TEST(PolicyDocs, have_a_row_for_each_policy_in_the_order_of_the_registry) {
  std::ifstream file(std::string(EBB_SOURCE_DIR) + "/docs/policies.md");
  std::vector<std::string> rows;
  bool is_in_table = false;
  for (std::string line; std::getline(file, line);) {
    if (is_in_table && line.starts_with("| ")) rows.push_back(line);
    is_in_table = line.starts_with("|---") || (is_in_table && line.starts_with("| "));
  }
  std::vector<std::string> expected;
  for (const PolicyEntry& entry : policies()) {
    constexpr const char* kScopes[] = {"whole blocks", "each layer by itself", "each head by itself"};
    const auto scope = static_cast<std::size_t>(entry.make(ParameterValues(entry.parameters))->asks().scope);
    expected.push_back(fmt::format("| {} | {} | {} | {} |", entry.name, kScopes[scope], entry.summary, entry.source));
  }
  EXPECT_THAT(rows, ::testing::ElementsAreArray(expected));
}

}  // namespace
}  // namespace ebb
