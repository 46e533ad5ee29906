#include "grammar/json_schema_grammar.h"

#include "gmock/gmock.h"
#include "grammar/grammar_match_test.h"
#include "gtest/gtest.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

struct Case {
  std::string schema;
  std::vector<std::string> accepted;
  std::vector<std::string> refused;
};

void expect_case(const Case& c) {
  const auto made = json_schema_grammar(Json::parse(c.schema));
  ASSERT_TRUE(made.ok()) << c.schema << ": " << made.status().message();
  EXPECT_TRUE(made->unsupported.empty()) << c.schema << ": " << made->unsupported[0];
  GrammarMatch grammar(made->grammar);
  ASSERT_EQ(grammar.error(), "") << c.schema;
  for (const std::string& text : c.accepted) {
    EXPECT_TRUE(Json::accept(text)) << text;
    EXPECT_TRUE(grammar.matches(text)) << c.schema << " should take " << text << "\n" << made->grammar;
  }
  for (const std::string& text : c.refused) {
    EXPECT_FALSE(grammar.matches(text)) << c.schema << " should refuse " << text << "\n" << made->grammar;
  }
}

void expect_cases(const std::vector<Case>& cases) {
  for (const Case& c : cases) expect_case(c);
}

TEST(JsonSchemaGrammar, takes_any_value_where_nothing_is_asked) {
  expect_cases(
      {{"true", {"1", "[]", "{\"a\": [null, {\"b\":true}]}", "\"x\""}, {"", "[1,]", "{a:1}", "01", "\"\n\""}},
       {"{\"title\": \"t\", \"description\": \"d\", \"default\": 1, \"examples\": [], \"x-y\": 1}", {"1"}, {""}}});
}

TEST(JsonSchemaGrammar, knows_the_types) {
  expect_cases({
      {R"({"type":"string"})",
       {"\"\"", "\"a\\n\\u00e9\\ud83d\\ude00\u00e9\U0001F600\x7F\""},
       {"\"\t\"", "1", "\"\\x\"", "\"\\ud800\""}},
      {R"({"type":"integer"})", {"0", "-5", "1234567890123456"}, {"1.5", "01", "-", "12345678901234567", "1e3"}},
      {R"({"type":"number"})", {"0.5", "-1e5", "3"}, {".5", "1.", "\"1\""}},
      {R"({"type":"boolean"})", {"true", "false"}, {"True", "null"}},
      {R"({"type":"null"})", {"null"}, {"0"}},
      {R"({"type":["integer","null"]})", {"7", "null"}, {"\"7\""}},
      {R"({"type":"object"})", {"{}", "{\"a\":{\"b\":[1, 2]}, \"c\":-1.5e+3}"}, {"[1]", "{ \"a\":1}", "{\"a\":  1}"}},
      {R"({"type":"array"})", {"[]", "[1, \"a\"]"}, {"{}"}},
      {R"({"enum":["a\"b",1,null,{"k":[1,2]}]})",
       {"\"a\\\"b\"", "1", "null", "{\"k\": [1, 2]}", "{\"k\":[1,2]}"},
       {"2", "\"a\""}},
      {R"({"const":"x"})", {"\"x\""}, {"\"y\""}},
      {R"({"type":"string","enum":["a",1]})", {"\"a\""}, {"1"}},
  });
}

TEST(JsonSchemaGrammar, writes_properties_in_their_order_and_lets_optional_ones_out) {
  expect_cases({
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}},"required":["b"]})",
       {R"({"b":1})", R"({"a": 1, "b": 2, "c": 3})", R"({"a":1,"b":2})", R"({"b":2,"c":3})"},
       {"{}", R"({"a":1})", R"({"b":1,"a":2})", R"({"b":1,"b":1})", R"({"b":1,"d":1})", R"({"b":1,})", R"({,"b":1})"}},
      {R"({"properties":{"a":true,"b":true}})",
       {"{}", R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"},
       {R"({"b":1,"a":2})"}},
      {R"({"properties":{},"additionalProperties":false})", {"{}"}, {R"({"a":1})"}},
      {R"({"properties":{"a":true,"bad":false}})", {"{}", R"({"a":1})"}, {R"({"bad":1})"}},
      {R"({"required":["z"],"properties":{"a":true}})", {R"({"z":1})", R"({"a":1,"z":2})"}, {"{}"}},
      {R"({"type":"object","properties":{"q\"\n":{"type":"null"}}})", {R"({"q\"\n":null})"}, {R"({"q":null})"}},
  });
}

TEST(JsonSchemaGrammar, keeps_additional_properties_apart_from_named_ones) {
  expect_cases({
      {R"({"properties":{"ab":{"type":"integer"},"a\"":{"type":"integer"}},"required":["ab"],"additionalProperties":{"type":"string"}})",
       {R"({"ab":1})", R"({"ab":1,"x":"y"})", R"({"ab":1,"a":"y","abc":"z","":"w","\"":"v"})",
        R"({"ab":1,"a\"":2,"a\"b":"x"})"},
       {R"({"ab":"x"})", R"({"ab":1,"ab":"x"})", R"({"ab":1,"a\"":"x"})", R"({"ab":1,"\u0061b":"x"})",
        R"({"ab":1,"x":2})"}},
      {R"({"additionalProperties":{"type":"integer"}})", {"{}", R"({"x":1, "y": 2})"}, {R"({"x":"1"})"}},
      {R"({"type":"object","properties":{"a":true},"additionalProperties":true})",
       {R"({"b":[1]})", R"({"a":1,"b":2})"},
       {R"({"b":1,"a":2,})"}},
  });
}

TEST(JsonSchemaGrammar, counts_items) {
  expect_cases({
      {R"({"items":{"type":"integer"}})", {"[]", "[1]", "[1, 2,3]"}, {"[\"a\"]", "[1 ,2]"}},
      {R"({"items":{"type":"integer"},"minItems":2,"maxItems":3})", {"[1,2]", "[1,2,3]"}, {"[]", "[1]", "[1,2,3,4]"}},
      {R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"}},
      {R"({"type":"array","maxItems":1})", {"[]", "[1]"}, {"[1,2]"}},
      {R"({"prefixItems":[{"type":"integer"},{"type":"string"}],"minItems":2})",
       {"[1,\"a\"]"},
       {"[1]", "[\"a\",1]", "[1,\"a\",2]"}},
      {R"({"prefixItems":[{"type":"integer"}],"items":{"type":"null"},"maxItems":3})",
       {"[]", "[1]", "[1,null,null]"},
       {"[null]", "[1,null,null,null]"}},
      {R"({"prefixItems":[{"type":"integer"}],"items":false})", {"[]", "[1]"}, {"[1,1]"}},
      {R"({"prefixItems":[{"type":"integer"}],"minItems":3})", {"[1,2,\"x\"]", "[1,2,3,4]"}, {"[1,2]"}},
  });
}

TEST(JsonSchemaGrammar, counts_characters_also_by_the_thousand) {
  const auto quoted = [](std::size_t n) { return "\"" + std::string(n, 'x') + "\""; };
  expect_cases({
      {R"({"minLength":2,"maxLength":3})", {"\"ab\"", "\"\u00e9\U0001F600\\n\""}, {"\"a\"", "\"abcd\""}},
      {R"({"maxLength":0})", {"\"\""}, {"\"a\""}},
      {R"({"minLength":1})", {"\"a\"", quoted(50)}, {"\"\""}},
      {R"({"minLength":300,"maxLength":1000})",
       {quoted(300), quoted(511), quoted(512), quoted(1000)},
       {quoted(299), quoted(1001)}},
      {R"({"maxLength":65536})", {quoted(0), quoted(255), quoted(256), quoted(4097)}, {}},
  });
}

TEST(JsonSchemaGrammar, bounds_integers_and_numbers) {
  expect_cases({
      {R"({"type":"integer","minimum":1,"exclusiveMaximum":100})", {"1", "9", "10", "99"}, {"0", "100", "-1", "1.0"}},
      {R"({"type":"integer","minimum":-12,"maximum":205})",
       {"-12", "-9", "0", "199", "205"},
       {"-13", "206", "-0", "1000"}},
      {R"({"type":"integer","exclusiveMinimum":0.5})", {"1", "123"}, {"0"}},
      {R"({"type":"integer","maximum":-3})", {"-3", "-40"}, {"-2", "0", "3"}},
      {R"({"minimum":0.25,"maximum":1.5})",
       {"0.25", "0.3", "1", "1.0", "1.5", "1.500", "1.49"},
       {"0.2", "0", "1.51", "2", "0.24999"}},
      {R"({"exclusiveMinimum":0,"exclusiveMaximum":1})", {"0.1", "0.001", "0.999"}, {"0", "1", "0.0", "1.0", "-0.5"}},
      {R"({"minimum":-2.5,"maximum":-0.5})", {"-2.5", "-1", "-0.5", "-0.51"}, {"-2.51", "-0.4", "0", "1"}},
      {R"({"minimum":2,"exclusiveMinimum":2})", {"2.1", "3"}, {"2", "2.0"}},
      {R"({"type":"number","minimum":1e3})", {"1000", "1000.5", "99999"}, {"999.9"}},
  });
}

TEST(JsonSchemaGrammar, matches_patterns) {
  expect_cases({
      {R"({"pattern":"^[a-c]+\\d{2,3}$"})", {"\"ab12\"", "\"c123\""}, {"\"12\"", "\"a1\"", "\"a1234\"", "\"xa12\""}},
      {R"({"pattern":"b"})", {"\"b\"", "\"abc\""}, {"\"ac\""}},
      {R"({"pattern":"^a"})", {"\"a\"", "\"ab\\n\""}, {"\"ba\""}},
      {R"({"pattern":"^(foo|ba[rz])?-(?:x|y)*$"})", {"\"-\"", "\"foo-xyx\"", "\"baz-\""}, {"\"fo-\"", "\"foo-z\""}},
      {R"({"pattern":"^[^\"\\\\a]$"})",
       {"\"b\"", "\"\\n\"", "\"\u00e9\""},
       {"\"a\"", "\"\\\"\"", "\"\\\\\"", "\"bb\""}},
      {R"({"pattern":"^.\\.\\u0041\\w\\S$"})", {"\"\\\".Az!\""}, {"\"\\n.Az!\"", "\"x.Az \""}},
      {R"({"pattern":"^[\\x00-\\x1f]$"})", {"\"\\n\"", "\"\\u0001\""}, {"\" \""}},
      {R"({"pattern":"^a$|^b$"})", {"\"a\"", "\"b\""}, {"\"ab\""}},
  });
}

TEST(JsonSchemaGrammar, knows_formats) {
  expect_cases({
      {R"({"format":"date"})",
       {"\"2026-11-30\"", "\"2024-02-29\""},
       {"\"2026-11-31\"", "\"2026-02-30\"", "\"26-1-1\"", "\"2026-13-01\""}},
      {R"({"format":"time"})", {"\"23:59:00Z\"", "\"00:00:00.25+01:00\""}, {"\"24:00:00Z\"", "\"10:00Z\""}},
      {R"({"format":"date-time"})", {"\"2026-11-21T22:20:03Z\""}, {"\"2026-11-21 22:20:03Z\""}},
      {R"({"format":"ipv4"})", {"\"10.0.255.9\""}, {"\"10.0.256.9\"", "\"10.0.9\"", "\"01.2.3.4\""}},
      {R"({"format":"ipv6"})",
       {"\"2001:db8::1\"", "\"::\"", "\"1:2:3:4:5:6:7:8\"", "\"::ffff\""},
       {"\"1:2:3\"", "\"1::2::3\"", "\"12345::\""}},
      {R"({"format":"hostname"})", {"\"box\"", "\"a-b.example.org\""}, {"\"-a\"", "\"a-.b\"", "\"a..b\"", "\"\""}},
      {R"({"format":"email"})", {"\"ada.b+c@example.org\""}, {"\"ada\"", "\"ada@box\"", "\".a@b.c\"", "\"a b@c.d\""}},
      {R"({"format":"duration"})",
       {"\"P1Y2M3DT4H5M6S\"", "\"PT5M\"", "\"P2W\"", "\"P1D\""},
       {"\"P\"", "\"PT\"", "\"P1S\"", "\"5M\""}},
      {R"({"format":"uuid"})", {"\"123e4567-e89b-12d3-a456-426614174000\""}, {"\"123e4567\""}},
  });
}

TEST(JsonSchemaGrammar, combines_schemas) {
  expect_cases({
      {R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})", {"5", "\"a\""}, {"\"ab\"", "null"}},
      {R"({"oneOf":[{"const":1},{"type":"null"}]})", {"1", "null"}, {"2"}},
      {R"({"properties":{"k":{"type":"string"}},"required":["k"],"anyOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"integer"}}}]})",
       {R"({"k":"x","a":1})", R"({"k":"x","b":1})", R"({"k":"x"})"},
       {R"({"a":1})", R"({"k":"x","a":1,"b":1})"}},
      {R"({"allOf":[{"type":"number","minimum":3},{"type":"integer","maximum":5}]})", {"3", "5"}, {"2", "6", "3.5"}},
      {R"({"allOf":[{"properties":{"a":{"minimum":1}}},{"properties":{"a":{"type":"integer","maximum":2},"b":true},"required":["a"]}]})",
       {R"({"a":1})", R"({"a":2,"b":0})"},
       {R"({"a":3})", "{}"}},
      {R"({"enum":[1,2,3],"anyOf":[{"enum":[2,3,4]}]})", {"2", "3"}, {"1", "4"}},
  });
}

TEST(JsonSchemaGrammar, follows_references) {
  expect_cases({
      {R"({"$defs":{"n":{"type":"integer"}},"items":{"$ref":"#/$defs/n"}})", {"[1,2]"}, {"[\"a\"]"}},
      {R"({"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["v","next"]})",
       {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":{"v":3,"next":null}}})"},
       {R"({"v":1})", R"({"v":1,"next":{"v":2}})"}},
      {R"({"$ref":"#/definitions/a~1b","definitions":{"a/b":{"items":{"$ref":"#/definitions/a~1b"}}}})",
       {"[]", "[[],[[]]]"},
       {"[1]"}},
      {R"({"properties":{"c":{"$ref":"#","description":"d"},"x":{"type":"null"}}})",
       {R"({"c":{"c":{},"x":null}})"},
       {R"({"c":1})"}},
      {R"({"properties":{"c":{"$ref":"#","required":["x"]},"x":{"type":"null"}}})",
       {R"({"c":{"x":null}})"},
       {R"({"c":{}})"}},
      {R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"const":1}},"$ref":"#/$defs/a"})", {"1"}, {"2"}},
  });
}

TEST(JsonSchemaGrammar, lists_what_it_does_not_enforce) {
  const auto unsupported = [](const std::string& schema) {
    const auto made = json_schema_grammar(Json::parse(schema));
    EXPECT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(GrammarMatch(made->grammar).error(), "");
    return made->unsupported;
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(unsupported(R"({"properties":{"a":{"not":{"type":"null"}}}})"), List{"not at #/a"});
  EXPECT_EQ(unsupported(R"({"type":"integer","multipleOf":2})"), List{"multipleOf at #"});
  EXPECT_EQ(unsupported(R"({"anyOf":[{"type":"null"}],"discriminator":{"propertyName":"a"}})"), List{});
  EXPECT_EQ(unsupported(R"({"type":"array","uniqueItems":true})"), List{"uniqueItems at #"});
  EXPECT_EQ(unsupported(R"({"type":"array","uniqueItems":false})"), List{});
  EXPECT_EQ(unsupported(R"({"format":"iri"})"), List{"format iri at #"});
  EXPECT_EQ(unsupported(R"({"pattern":"(?=a)b"})"), List{"pattern at #: at character 1: look-around"});
  EXPECT_EQ(unsupported(R"({"$ref":"https://example.com/s"})"), List{"remote $ref at #"});
  EXPECT_EQ(unsupported(R"({"pattern":"^a$","maxLength":1})"),
            List{"minLength or maxLength beside pattern or format at #"});
  EXPECT_EQ(unsupported(R"({"type":"string","maxLength":512000})"), List{});
  EXPECT_EQ(unsupported(R"({"type":"string","maxLength":512001})"), List{"maxLength above 512000 at #"});
  EXPECT_EQ(unsupported(R"({"type":"array","maxItems":512001})"), List{"maxItems above 512000 at #"});
  for (const std::string pattern : {"(a*)*", "a\\\\b", "\\\\1", "a^b", "[", "a{2,1}", "\\\\p{L}", ")", "a**"}) {
    EXPECT_EQ(unsupported("{\"pattern\":\"" + pattern + "\"}").size(), 1U) << pattern;
  }
}

TEST(JsonSchemaGrammar, does_not_enforce_huge_patterns) {
  const auto pattern = [](int n_chars) {
    std::string all = "^[";  // every other character, so that none of them join into a range
    for (int i = 0; i < n_chars; ++i) all += fmt::format("\\u{:04x}", 0x4E00 + 2 * (i % 10000));
    return Json{{"pattern", all + "]$"}};
  };
  const auto notes = [&](int n_chars) { return json_schema_grammar(pattern(n_chars)).value().unsupported; };
  EXPECT_THAT(notes(1000), testing::IsEmpty());
  EXPECT_THAT(notes(3000), testing::ElementsAre(testing::HasSubstr("a class of 3000 ranges, more than 2000")));
  EXPECT_THAT(notes(100000), testing::ElementsAre(testing::HasSubstr("it has 600004 bytes, more than 32768")));
}

TEST(JsonSchemaGrammar, refuses_what_is_no_schema_saying_where) {
  const auto expect = [](const std::string& schema, std::string_view why) {
    const auto made = json_schema_grammar(Json::parse(schema));
    ASSERT_FALSE(made.ok()) << schema;
    EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
    EXPECT_NE(made.status().message().find(why), std::string::npos) << made.status().message();
  };
  expect("[]", "an object, true or false");
  expect("false", "nothing can match");
  expect(R"({"type":"strin"})", "'strin' is no type");
  expect(R"({"properties":{"a":{"items":3}}})", "#/a/items");
  expect(R"({"properties":[]})", "properties must be an object");
  expect(R"({"required":[1]})", "required must list strings");
  expect(R"({"type":"string","minLength":-1})", "minLength");
  expect(R"({"type":"string","minLength":3,"maxLength":2})", "nothing can match");
  expect(R"({"allOf":[{"type":"string"},{"type":"null"}]})", "nothing can match");
  expect(R"({"type":"integer","minimum":0.1,"maximum":0.9})", "nothing can match");
  expect(R"({"properties":{"a":false},"required":["a"]})", "nothing can match");
  expect(R"({"anyOf":[]})", "anyOf");
  expect(R"({"enum":1})", "enum");
  expect(R"({"pattern":1})", "pattern");
  expect(R"({"$ref":"#/nowhere"})", "names nothing");
  expect(R"({"$ref":7})", "$ref");
}

TEST(JsonSchemaGrammar, refuses_hostile_schemas) {
  const auto refused = [](const Json& schema) {
    const auto made = json_schema_grammar(schema);
    return !made.ok() && made.status().code() == Code::kInvalidArgument;
  };
  EXPECT_TRUE(refused(Json::parse(R"({"$ref":"#"})")));
  EXPECT_TRUE(refused(Json::parse(R"({"anyOf":[{"type":"null"},{"$ref":"#"}]})")));
  EXPECT_TRUE(refused(Json::parse(R"({"allOf":[{"$ref":"#"},{"$ref":"#"}]})")));
  EXPECT_TRUE(
      refused(Json::parse(R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"})")));
  Json deep = true;
  for (int i = 0; i < 3000; ++i) deep = Json{{"items", std::move(deep)}};
  EXPECT_TRUE(refused(deep));
  Json wide = {{"enum", Json::array()}};
  for (int i = 0; i < 20000; ++i) wide["enum"].push_back(i);
  EXPECT_TRUE(refused(wide));
  Json pairs = {{"allOf", Json::array()}};  // 2 to the 7th, merged with something large each time
  for (int i = 0; i < 7; ++i) pairs["allOf"].push_back({{"anyOf", Json::array({{{"minimum", i}}, {{"maximum", i}}})}});
  for (int i = 0; i < 5000; ++i) pairs["allOf"][0]["properties"]["a"]["enum"].push_back(i);
  EXPECT_TRUE(refused(pairs));
  // Each definition is the one before it twice over.
  Json doubling = {{"$ref", "#/$defs/d40"}};
  doubling["$defs"]["d0"] = {{"anyOf", Json::array({{{"minimum", 1}}, {{"maximum", 2}}})}};
  for (int i = 1; i <= 40; ++i) {
    const Json before = {{"$ref", "#/$defs/d" + std::to_string(i - 1)}};
    doubling["$defs"]["d" + std::to_string(i)] = {{"allOf", Json::array({before, before})}};
  }
  EXPECT_TRUE(refused(doubling));
  EXPECT_EQ(json_schema_grammar(Json::parse(R"({"type":"string","minLength":1e18})")).status().code(),
            Code::kUnsupported);
  const Json tower = Json::parse(R"~({"pattern":"((((a{2000}){2000}){2000}){2000})"})~");
  EXPECT_EQ(GrammarMatch(json_schema_grammar(tower).value().grammar).error(), "");  // large to match, small to write
}

}  // namespace
}  // namespace ebb
