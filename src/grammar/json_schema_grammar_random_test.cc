#include <algorithm>
#include <iterator>
#include <random>

#include "grammar/grammar_match_test.h"
#include "grammar/json_schema_grammar.h"
#include "gtest/gtest.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

// A validator for the keywords that random schemas use, written without regard to grammars.
bool is_valid(const Json& schema, const Json& value) {
  if (schema.is_boolean()) return schema.get<bool>();
  if (schema.contains("anyOf")) {
    return std::any_of(schema["anyOf"].begin(), schema["anyOf"].end(),
                       [&](const Json& s) { return is_valid(s, value); });
  }
  if (schema.contains("enum")) {
    return std::find(schema["enum"].begin(), schema["enum"].end(), value) != schema["enum"].end();
  }
  const std::string type = schema["type"];
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer" || type == "number") {
    return (type == "number" ? value.is_number() : value.is_number_integer()) &&
           value.get<double>() >= schema.value("minimum", -1e15) &&
           value.get<double>() <= schema.value("maximum", 1e15) &&
           value.get<double>() > schema.value("exclusiveMinimum", -1e15);
  }
  if (type == "string") {
    return value.is_string() && value.get<std::string>().size() >= schema.value("minLength", 0U) &&
           value.get<std::string>().size() <= schema.value("maxLength", 1000U);
  }
  if (type == "array") {
    return value.is_array() && value.size() >= schema.value("minItems", 0U) &&
           value.size() <= schema.value("maxItems", 1000U) &&
           std::all_of(value.begin(), value.end(), [&](const Json& item) { return is_valid(schema["items"], item); });
  }
  if (!value.is_object()) return false;
  for (const Json& key : schema["required"]) {
    if (!value.contains(key.get<std::string>())) return false;
  }
  for (const auto& [key, item] : value.items()) {
    if (!schema["properties"].contains(key) || !is_valid(schema["properties"][key], item)) return false;
  }
  return true;
}

class RandomSchemas {
 public:
  explicit RandomSchemas(unsigned seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return random_() % n; }

  Json schema(int depth) {
    switch (below(depth > 0 ? 10 : 6)) {
      case 0: return {{"type", "null"}};
      case 1: return {{"type", "boolean"}};
      case 2: return bounded({{"type", "integer"}}, 1);
      case 3: return bounded({{"type", "number"}}, 0.25);
      case 4: {
        Json made = {{"type", "string"}};
        const std::size_t least = below(4);
        if (below(2) == 0) made["minLength"] = least;
        if (below(2) == 0) made["maxLength"] = least + below(5);
        return made;
      }
      case 5: return {{"enum", Json::array({"a", 1, nullptr, "b c"})}};
      case 6: {
        Json made = {{"type", "array"}, {"items", schema(depth - 1)}};
        const std::size_t least = below(3);
        if (below(2) == 0) made["minItems"] = least;
        if (below(2) == 0) made["maxItems"] = least + below(3);
        return made;
      }
      case 7: return {{"anyOf", Json::array({schema(depth - 1), schema(depth - 1)})}};
      default: break;
    }
    Json made = {{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
    const std::size_t n = below(5);
    for (std::size_t i = 0; i < n; ++i) {
      const std::string key(1, static_cast<char>('k' + i));
      made["properties"][key] = schema(depth - 1);
      if (below(2) == 0) made["required"].push_back(key);
    }
    return made;
  }

  // A value that the schema lets in, its keys in order.
  Json value(const Json& schema) {
    if (schema.contains("anyOf")) return value(schema["anyOf"][below(2)]);
    if (schema.contains("enum")) return schema["enum"][below(4)];
    const std::string type = schema["type"];
    if (type == "null") return nullptr;
    if (type == "boolean") return below(2) == 0;
    if (type == "integer" || type == "number") {
      const double step = type == "integer" ? 1 : 0.125;
      double least = schema.value("minimum", schema.value("exclusiveMinimum", -500.0));
      if (schema.contains("exclusiveMinimum")) least += step;
      const double most = schema.value("maximum", least + 500);
      const double drawn =
          least + step * static_cast<double>(below(static_cast<std::size_t>((most - least) / step) + 1));
      return type == "integer" ? Json(static_cast<std::int64_t>(drawn)) : Json(drawn);
    }
    if (type == "string") {
      const std::size_t least = schema.value("minLength", std::size_t{0});
      std::string text;
      for (std::size_t n = least + below(schema.value("maxLength", least + 6) - least + 1); n > 0; --n) {
        text += "ab\"\\\n z"[below(7)];
      }
      return text;
    }
    Json made = type == "array" ? Json::array() : Json::object();
    if (type == "array") {
      const std::size_t least = schema.value("minItems", std::size_t{0});
      for (std::size_t n = least + below(schema.value("maxItems", least + 3) - least + 1); n > 0; --n) {
        made.push_back(value(schema["items"]));
      }
      return made;
    }
    for (const auto& [key, inner] : schema["properties"].items()) {
      const auto& required = schema["required"];
      if (std::find(required.begin(), required.end(), Json(key)) != required.end() || below(2) == 0)
        made[key] = value(inner);
    }
    return made;
  }

  // The value with one place changed to something else.
  Json changed(const Json& value) {
    if (value.is_array() && !value.empty() && below(4) != 0) {
      Json made = value;
      const std::size_t i = below(value.size());
      made[i] = changed(value[i]);
      return made;
    }
    if (value.is_object() && !value.empty() && below(4) != 0) {
      Json made = value;
      const auto at = std::next(made.begin(), static_cast<std::ptrdiff_t>(below(made.size())));
      if (below(3) == 0) {
        made.erase(at.key());
      } else {
        *at = changed(*at);
      }
      return made;
    }
    static const std::vector<Json> kOthers = {nullptr,       true,          -1, 0, 7, 1000, 2.5, "a", "", "longer text",
                                              Json::array(), Json::object()};
    return kOthers[below(kOthers.size())];
  }

 private:
  Json bounded(Json made, double step) {
    const double least = step * (static_cast<double>(below(400)) - 200);
    const double most = least + step * static_cast<double>(1 + below(300));
    const auto number = [&](double x) { return step == 1 ? Json(static_cast<std::int64_t>(x)) : Json(x); };
    if (below(2) == 0) made[below(2) == 0 ? "minimum" : "exclusiveMinimum"] = number(least);
    if (below(2) == 0) made["maximum"] = number(most);
    return made;
  }

  std::mt19937 random_;
};

TEST(JsonSchemaGrammarRandom, takes_what_random_schemas_let_in_and_refuses_what_they_do_not) {
  RandomSchemas random(11);
  int n_refused = 0;
  for (int round = 0; round < 300; ++round) {
    const Json schema = random.schema(3);
    const auto made = json_schema_grammar(schema);
    ASSERT_TRUE(made.ok()) << schema.dump() << ": " << made.status().message();
    ASSERT_TRUE(made->unsupported.empty()) << schema.dump() << ": " << made->unsupported[0];
    GrammarMatch grammar(made->grammar);
    ASSERT_EQ(grammar.error(), "") << schema.dump();
    for (int i = 0; i < 8; ++i) {
      const Json value = random.value(schema);
      ASSERT_TRUE(is_valid(schema, value)) << schema.dump() << " " << value.dump();
      ASSERT_TRUE(grammar.matches(value.dump())) << schema.dump() << " should take " << value.dump() << "\n"
                                                 << made->grammar;
      const Json other = random.changed(value);
      const bool valid = is_valid(schema, other);
      n_refused += valid ? 0 : 1;
      ASSERT_EQ(grammar.matches(other.dump()), valid) << schema.dump() << " and " << other.dump() << "\n"
                                                      << made->grammar;
    }
  }
  EXPECT_GT(n_refused, 500);
}

}  // namespace
}  // namespace ebb
