// Random and mutated JSON, which the client of a server writes: parse_json takes and refuses what nlohmann's own parser does.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/toy_rounds.h"
#include "json/json_fields.h"
#include "json/parse_json.h"

namespace ebb {
namespace {

void write_value(std::string& text, std::mt19937& random, int depth) {
  static const std::vector<std::string> kScalars = {
      "null", "true", "-1", "0.5", "1e5", "1e400", "18446744073709551616", "\"\"", "\"\\u00e9\\n\"", "\"\xC3\xA9\""};
  static const std::vector<std::string> kNames = {"\"a\"", "\"b\"", "\"c\"", "\"\\u0061\""};
  const auto kind = depth > 4 ? 0 : random() % 4;
  if (kind < 2) {
    text += kScalars[random() % kScalars.size()];
    return;
  }
  const bool is_object = kind == 2;
  text += is_object ? "{ " : "[";
  for (auto n = random() % 4; n > 0; --n) {
    if (is_object) text += kNames[random() % kNames.size()] + ":";
    write_value(text, random, depth + 1);
    if (n > 1) text += ",\n";
  }
  text += is_object ? "}" : "]";
}

void mutate(std::string& text, std::mt19937& random) {
  if (text.empty()) return;
  const std::size_t at = random() % text.size();
  switch (random() % 3) {
    case 0: text[at] = static_cast<char>(random()); break;
    case 1: text.erase(at, 1 + random() % 5); break;
    default: text.insert(at, text.substr(random() % text.size(), random() % 10));
  }
}

// Every typed member, whatever the object holds.
void use(const Json& json) {
  JsonFields fields(json);
  for (const char* name : {"a", "b", "c"}) {
    (void)fields.text(name);
    (void)fields.texts(name, 2);
    (void)fields.integer(name, 0, -5, 5);
    (void)fields.number(name, 0, 0, 1);
    (void)fields.boolean(name, false);
    if (auto inside = fields.object(name)) (void)inside->needed_text("a");
    for (JsonFields& one : fields.objects(name)) (void)one.integer("c", 0, 0, 1);
  }
}

TEST(ParseJsonRandom, agrees_with_nlohmanns_parser) {
  int n_taken = 0;
  for (RandomRounds rounds(10000); rounds.next();) {
    SCOPED_TRACE(rounds.seed());
    std::mt19937 random(rounds.seed());
    std::string text;
    write_value(text, random, 0);
    for (auto n = random() % 3; n > 0; --n) mutate(text, random);
    const Json theirs = Json::parse(text, nullptr, false);
    const Result<Json> ours = parse_json(text);
    ASSERT_EQ(ours.ok(), !theirs.is_discarded()) << text;
    if (!ours.ok()) continue;
    ++n_taken;
    ASSERT_EQ(*ours, theirs) << text;
    use(*ours);
  }
  EXPECT_GT(n_taken, 3000);
}

}  // namespace
}  // namespace ebb
