#include "bench/json_lines.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(JsonLines, each_line_is_an_object_and_empty_ones_are_passed_over) {
  std::vector<std::string> prompts;
  const Status status = read_json_lines("{\"prompt\": \"one\"}\r\n\n  \n{\"prompt\": \"two\"}", [&](JsonFields& line) {
    prompts.push_back(line.needed_text("prompt"));
    return Status();
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(prompts, ElementsAre("one", "two"));
}

TEST(JsonLines, what_is_wrong_is_told_with_its_line) {
  const auto read = [](std::string_view text) {
    return read_json_lines(text, [](JsonFields& line) {
      (void)line.needed_text("prompt");
      return Status();
    });
  };
  EXPECT_THAT(read("{\"prompt\": \"one\"}\n\n{\"prompt\": 2}").message(), HasSubstr("line 3: Field 'prompt'"));
  EXPECT_THAT(read("{\"prompt\": \"one\"}\n{\"prompt").message(), HasSubstr("line 2: "));
  EXPECT_THAT(read("[1]").message(), HasSubstr("line 1: "));
  EXPECT_EQ(read(" \n").code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ebb
