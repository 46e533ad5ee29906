#include "json/json_fields.h"

#include <functional>
#include <limits>

#include <gtest/gtest.h>

namespace ebb {
namespace {

using Limits = std::numeric_limits<std::int64_t>;

TEST(JsonFields, integers_of_64_bits_come_through_and_larger_ones_are_refused) {
  const auto read = [](const char* text) -> Result<std::int64_t> {
    const Json json = {{"n", Json::parse(text)}};
    JsonFields fields(json);
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

std::string error_of(const Json& body, const std::function<void(JsonFields&)>& read) {
  JsonFields fields(body);
  read(fields);
  return fields.status().message();
}

TEST(JsonFields, members_of_objects_inside_are_named_with_their_path) {
  const Json body = {{"options", {{"flag", 3}}}, {"list", {{{"name", "a"}}, {{"inner", {{"n", "x"}}}}, 5}}};
  EXPECT_EQ(error_of(body, [](JsonFields& fields) { (void)fields.object("options")->boolean("flag", false); }),
            "Field 'options.flag': must be true or false, but got a number");
  EXPECT_EQ(error_of(body,
                     [](JsonFields& fields) {
                       for (JsonFields& one : fields.objects("list")) (void)one.needed_text("name");
                     }),
            "Field 'list[2]': must be an object, but got a number");
  const Json whole = {{"list", {{{"name", "a"}}, {{"inner", {{"n", "x"}}}}}}};
  EXPECT_EQ(error_of(whole,
                     [](JsonFields& fields) {
                       for (JsonFields& one : fields.objects("list")) {
                         if (auto inner = one.object("inner")) (void)inner->integer("n", 0, 0, 9);
                       }
                     }),
            "Field 'list[1].inner.n': must be an integer, but got a string");
}

TEST(JsonFields, members_of_other_names_are_refused_with_the_names_there_are) {
  const Json body = {{"a", 1}, {"misspelt", 2}};
  EXPECT_EQ(error_of(body,
                     [](JsonFields& fields) {
                       fields.refuse_others({"a", "spelt"});
                     }),
            "Field 'misspelt': is not known here; there are a, spelt");
  EXPECT_EQ(error_of(body, [](JsonFields& fields) { fields.refuse_others({"a", "misspelt"}); }), "");
}

TEST(JsonFields, the_first_error_stays_whichever_reader_found_it) {
  const Json body = {{"a", 1}, {"inner", {{"b", 2}}}};
  EXPECT_EQ(error_of(body,
                     [](JsonFields& fields) {
                       (void)fields.object("inner")->text("b");
                       (void)fields.text("a");
                       fields.refuse("a", "is wrong");
                     }),
            "Field 'inner.b': must be a string, but got a number");
}

TEST(JsonFields, what_is_needed_and_absent_or_null_is_an_error_and_all_else_has_a_default) {
  const Json body = {{"text", nullptr}, {"object", nullptr}};
  EXPECT_EQ(error_of(body, [](JsonFields& fields) { (void)fields.needed_text("text"); }),
            "Field 'text': must be a string");
  EXPECT_EQ(error_of(body, [](JsonFields& fields) { EXPECT_FALSE(fields.needed_object("object")); }),
            "Field 'object': must be an object");
  EXPECT_EQ(error_of(body,
                     [](JsonFields& fields) {
                       EXPECT_EQ(fields.text("text", "a"), "a");
                       EXPECT_TRUE(fields.objects("object").empty());
                       EXPECT_TRUE(fields.boolean("none", true));
                     }),
            "");
}

TEST(JsonFields, what_is_no_object_is_an_error_and_holds_nothing) {
  const Json five = 5;
  EXPECT_EQ(JsonFields(five, "options").status().message(), "Field 'options': must be an object, but got a number");
  EXPECT_EQ(JsonFields(five).status().message(), "the body must be a JSON object");
  EXPECT_EQ(JsonFields(five).find("a"), nullptr);
  EXPECT_EQ(error_of({{"list", 5}}, [](JsonFields& fields) { EXPECT_TRUE(fields.objects("list").empty()); }),
            "Field 'list': must be an array of objects, but got a number");
}

}  // namespace
}  // namespace ebb
