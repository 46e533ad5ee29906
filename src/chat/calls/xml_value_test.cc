#include "chat/calls/xml_value.h"

#include "gtest/gtest.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

TEST(XmlValue, becomes_what_the_schema_allows) {
  EXPECT_EQ(xml_text_to_json("5", JsonType::kString), "\"5\"");
  EXPECT_EQ(xml_text_to_json(" 5\n", JsonType::kNumber), "5");
  EXPECT_EQ(xml_text_to_json("5", JsonType::kBoolean), "\"5\"");
  EXPECT_EQ(xml_text_to_json("True", JsonType::kBoolean), "true");
  EXPECT_EQ(xml_text_to_json("None", JsonType::kString | JsonType::kNull), "null");
  EXPECT_EQ(xml_text_to_json("no", JsonType::kString | JsonType::kNull), "\"no\"");
  EXPECT_EQ(xml_text_to_json("{\"a\":  1}", JsonType::kObject), "{\"a\":  1}");  // as the model wrote it
  EXPECT_EQ(xml_text_to_json("[1, 2", JsonType::kArray), "\"[1, 2\"");
  EXPECT_EQ(xml_text_to_json("", JsonType::kNumber), "\"\"");
  const std::string deep = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_EQ(xml_text_to_json(deep, JsonType::kArray), "\"" + deep + "\"");  // no client could read it
  EXPECT_EQ(xml_text_to_json("\x01\xff\"\\", JsonType::kAny), "\"\\u0001\xff\\\"\\\\\"");
}

TEST(XmlValue, reads_pythons_literals) {
  EXPECT_EQ(python_to_json("{'a': [1, -2.5e3, (True, None,)], \"b\": 'x\"\\'\\n'}"),
            "{\"a\":[1,-2.5e3,[true,null]],\"b\":\"x\\\"'\\n\"}");
  EXPECT_EQ(python_to_json("'\\u00e9'"), "\"\u00e9\"");
  EXPECT_EQ(python_to_json("\"\\ud83d\\ude00\""), "\"\U0001F600\"");
  EXPECT_EQ(python_to_json("'a\\ud83d\"b\\ude00'"), "\"a\uFFFD\\\"b\uFFFD\"");
  EXPECT_EQ(python_to_json("'\\ud83d'"), "\"\uFFFD\"");
  for (const std::string text :
       {"", "Truer", "'a", "'a\\", "[1 2]", "{1: 2}", "1.2.3", "f(x)", "{'a' 1}", "[", "'\\u00"}) {
    EXPECT_EQ(python_to_json(text), "") << text;
  }
  EXPECT_EQ(python_to_json(std::string(100000, '[')), "");
}

TEST(XmlValue, finds_types_in_the_tools_schema) {
  const Tool tool{.name = "t", .parameters = Json::parse(R"({"properties":{
      "s":{"type":"string"},"i":{"type":"integer"},"two":{"type":["null","boolean"]},"any":{},"odd":{"type":"who"},
      "enum":{"enum":["a",1]},"const":{"const":[]},"either":{"anyOf":[{"type":"object"},{"$ref":"#/$defs/d"}]},
      "loop":{"$ref":"#/$defs/loop"},"gone":{"$ref":"#/no"}},
      "$defs":{"d":{"type":"array"},"loop":{"$ref":"#/$defs/loop"}}})")};
  const auto types = [&](std::string_view key) { return find_argument_types(&tool, key); };
  EXPECT_EQ(types("s"), JsonType::kString);
  EXPECT_EQ(types("i"), JsonType::kNumber);
  EXPECT_EQ(types("two"), JsonType::kNull | JsonType::kBoolean);
  EXPECT_EQ(types("any"), JsonType::kAny);
  EXPECT_EQ(types("odd"), JsonType::kAny);
  EXPECT_EQ(types("enum"), JsonType::kString | JsonType::kNumber);
  EXPECT_EQ(types("const"), JsonType::kArray);
  EXPECT_EQ(types("either"), JsonType::kObject | JsonType::kArray);
  EXPECT_EQ(types("loop"), JsonType::kAny);
  EXPECT_EQ(types("gone"), JsonType::kAny);
  EXPECT_EQ(types("unknown"), JsonType::kString);
  EXPECT_EQ(find_argument_types(nullptr, "s"), JsonType::kString);
}

TEST(XmlValue, follows_references_that_go_round_once) {
  const Json reference = {{"$ref", "#/$defs/a"}};
  Json round = Json::array();
  for (int i = 0; i < 100; ++i) round.push_back(reference);
  round.push_back({{"type", "integer"}});
  const Tool tool{.name = "t",
                  .parameters = {{"properties", {{"p", reference}}}, {"$defs", {{"a", {{"anyOf", round}}}}}}};
  EXPECT_EQ(find_argument_types(&tool, "p"), JsonType::kNumber);
}

TEST(XmlValue, takes_any_type_where_a_schema_leads_to_too_many) {
  Json many = Json::array();
  for (int i = 0; i < 1000; ++i) many.push_back({{"type", "integer"}});
  const Tool tool{.name = "t", .parameters = {{"properties", {{"p", {{"anyOf", many}}}}}}};
  EXPECT_EQ(find_argument_types(&tool, "p"), JsonType::kAny);
}

}  // namespace
}  // namespace ebb
