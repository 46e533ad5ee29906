#include "budget/budget_file.h"

#include <filesystem>
#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/parse_json.h"

namespace ebb {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kModel = "00112233445566778899aabbccddeeff";

Json by_layer() {
  return {{"format", "ebb-kv-budgets"}, {"version", 1}, {"model", kModel}, {"n_layers", 3}, {"n_kv_heads", 2},
          {"layers", {96, 160.5, 0}}};
}

Json by_head() {
  Json json = by_layer();
  json.erase("layers");
  json["heads"] = {{1, 2}, {3, 4}, {5, 6}};
  return json;
}

std::string refusal_of_text(std::string_view text) {
  const Result<BudgetFile> file = parse_budget_file(text);
  EXPECT_FALSE(file.ok()) << text;
  if (file.ok()) return "";
  EXPECT_EQ(file.status().code(), Code::kInvalidArgument);
  return file.status().message();
}

std::string refusal(const Json& json) { return refusal_of_text(json.dump()); }

// With one member another, or none.
std::string refusal_with(std::string_view name, const Json& value) {
  Json json = by_layer();
  json[std::string(name)] = value;
  return refusal(json);
}

TEST(BudgetFile, tells_the_list_and_what_its_tuner_said) {
  Json json = by_layer();
  json.update({{"mean_tokens", 85.5}, {"policy", "snapkv:window=16"}, {"task", "needle"}, {"seed", 7}});
  const BudgetFile file = parse_budget_file(json.dump()).value();
  EXPECT_EQ(file.list.scope, Scope::kLayer);
  EXPECT_THAT(file.list.weights, ElementsAre(96, 160.5, 0));
  EXPECT_EQ(file.mean_tokens, 85.5);
  EXPECT_EQ(file.policy, "snapkv:window=16");
  EXPECT_EQ(file.task, "needle");
  EXPECT_EQ(file.seed, 7);
  const BudgetFile heads = parse_budget_file(by_head().dump()).value();
  EXPECT_EQ(heads.list.scope, Scope::kHead);
  EXPECT_THAT(heads.list.weights, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_FALSE(heads.mean_tokens || heads.seed);
}

TEST(BudgetFile, another_models_is_refused_by_both_names) {
  const BudgetFile file = parse_budget_file(by_layer().dump()).value();
  const Hash128 own = {.low = 0x8899aabbccddeeff, .high = 0x0011223344556677};
  ASSERT_EQ(own.hex(), kModel);
  EXPECT_TRUE(file.check_model(own, 3, 2).ok());
  const Hash128 other = {.low = 1, .high = 2};
  EXPECT_THAT(file.check_model(other, 3, 2).message(), AllOf(HasSubstr(kModel), HasSubstr(other.hex())));
  EXPECT_THAT(file.check_model(own, 3, 4).message(), HasSubstr("for 3 layers of 2 KV heads, and the model has 3 of 4"));
}

TEST(BudgetFile, says_which_member_is_wrong_and_what_it_may_be) {
  EXPECT_THAT(refusal_of_text("{"), HasSubstr("not JSON"));
  EXPECT_THAT(refusal_of_text("[]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(refusal_with("format", "another"), HasSubstr("'format': must be \"ebb-kv-budgets\""));
  EXPECT_THAT(refusal_with("format", nullptr), HasSubstr("'format': must be a string"));
  EXPECT_THAT(refusal_with("version", 2), HasSubstr("'version': must be 1"));
  EXPECT_THAT(refusal_with("version", nullptr), HasSubstr("'version': must be a number"));
  EXPECT_THAT(refusal_with("model", "XYZ"), HasSubstr("32 hexadecimal digits"));
  EXPECT_THAT(refusal_with("n_layers", 0), HasSubstr("'n_layers'"));
  EXPECT_THAT(refusal_with("n_layers", nullptr), HasSubstr("'n_layers': must be a number"));
  EXPECT_THAT(refusal_with("n_kv_heads", 1 << 20), HasSubstr("'n_kv_heads'"));
  EXPECT_THAT(refusal_with("lyers", {1}), AllOf(HasSubstr("'lyers': is not known here"), HasSubstr("layers, heads")));
  EXPECT_THAT(refusal_with("task", std::string(2000, 'x')), HasSubstr("'task': has more than 1024 bytes"));
  EXPECT_THAT(refusal_with("mean_tokens", -1), HasSubstr("'mean_tokens'"));
  EXPECT_THAT(refusal_with("seed", -1), HasSubstr("'seed'"));
}

TEST(BudgetFile, lists_that_are_none_are_refused) {
  EXPECT_THAT(refusal_with("layers", nullptr), HasSubstr("give layers or heads, one of them"));
  EXPECT_THAT(refusal_with("heads", {{1, 1}, {1, 1}, {1, 1}}), HasSubstr("give layers or heads, one of them"));
  EXPECT_THAT(refusal_with("layers", {1, 2}), HasSubstr("2 shares by layer, and the model has 3 layers"));
  EXPECT_THAT(refusal_with("layers", {1, "2", 3}), HasSubstr("'layers': must be an array with a number for each"));
  EXPECT_THAT(refusal_with("layers", {1, -2, 3}), HasSubstr("share 2 of 3 is -2"));
  EXPECT_THAT(refusal_with("layers", {0, 0, 0}), HasSubstr("all 3 shares are 0"));
  EXPECT_THAT(refusal_with("layers", {1, 1e200, 0}), HasSubstr("share 2 of 3"));
  Json json = by_head();
  json["heads"] = {{1, 2}, {3}, {5, 6}};
  EXPECT_THAT(refusal(json), HasSubstr("layer 1 must be an array of 2 numbers"));
  json["heads"] = {{1, 2}, {3, 4}};
  EXPECT_THAT(refusal(json), HasSubstr("has 2 layers, and n_layers is 3"));
  json["heads"] = Json::array();
  EXPECT_THAT(refusal(json), HasSubstr("has 0 layers"));
  json["heads"] = {1, 2, 3};
  EXPECT_THAT(refusal(json), HasSubstr("layer 0 must be an array of 2 numbers"));
}

TEST(BudgetFile, a_name_that_stands_twice_and_numbers_that_have_no_room_are_refused) {
  const std::string whole = by_layer().dump();
  EXPECT_THAT(refusal_of_text(whole.substr(0, whole.size() - 1) + R"(,"layers":[1,2,3]})"), HasSubstr("a name twice"));
  std::string text = whole;
  text.replace(text.find("160.5"), 5, "1e999");
  EXPECT_THAT(refusal_of_text(text), HasSubstr("too large"));
  text = whole;
  text.replace(text.find("160.5"), 5, "NaN");
  EXPECT_THAT(refusal_of_text(text), HasSubstr("not JSON"));
}

TEST(BudgetFile, text_without_bound_is_refused_before_it_is_read) {
  EXPECT_THAT(refusal_of_text(std::string(kMostBudgetFileBytes + 1, ' ')), HasSubstr("at most"));
}

TEST(BudgetFile, no_change_of_a_byte_does_more_than_refuse) {
  std::mt19937 random(5);
  const std::string whole = by_head().dump();
  int n_refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = whole;
    for (int i = 0; i < 3; ++i) text[random() % text.size()] = static_cast<char>(random() % 256);
    const Result<BudgetFile> file = parse_budget_file(text);
    n_refused += file.ok() ? 0 : 1;
    EXPECT_TRUE(!file.ok() || file->list.validate(file->n_layers, file->n_kv_heads).ok());
  }
  EXPECT_GT(n_refused, 2000);
}

TEST(BudgetFile, errors_of_a_file_begin_with_its_name) {
  const auto folder = std::filesystem::temp_directory_path() / "ebb-budget-file-test";
  std::filesystem::create_directories(folder);
  EXPECT_THAT(load_budget_file(folder).status().message(), HasSubstr("is a folder"));
  EXPECT_THAT(load_budget_file(folder / "none.json").status().message(), HasSubstr("none.json: cannot be read"));
  std::ofstream(folder / "bad.json") << "{}";
  EXPECT_THAT(load_budget_file(folder / "bad.json").status().message(), HasSubstr("bad.json: Field 'format'"));
  std::ofstream(folder / "good.json") << by_head().dump(2);
  EXPECT_EQ(load_budget_file(folder / "good.json").value().n_layers, 3);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ebb
