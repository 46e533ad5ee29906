// ValueSyntax: how values are written: as JSON, or as JSON but for strings and keys.
//
//   JSON                        {"path": "a\"b", "n": [1, 2]}
//   raw strings, bare keys      {path:<|"|>a"b<|"|>,n:[1,2]}
//
// White space: at most one space behind ':' and ',', none elsewhere; a model that may write as much as it likes can stall there until it is
// cut. It does not know schemas. A raw string never holds the mark that ends it: such a text has no way to be written.
//
// Thread rule: values; functions on a GrammarRules of one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "grammar/char_set.h"
#include "grammar/grammar_rules.h"

namespace ebb {

struct ValueSyntax {
  // In front of the names of its rules, so that two syntaxes may share a grammar.
  std::string_view name = "";
  // Around a string.
  std::string_view open = "\"";
  std::string_view close = "\"";
  // Characters as they are; else as JSON escapes them.
  bool is_raw = false;
  // What raw strings that a schema describes hold nowhere, since readers look for it; not empty where raw.
  std::string_view barred = "";
  // Keys of objects as they are, and no space between values.
  bool has_bare_keys = false;

  // The name of one of its rules.
  [[nodiscard]] std::string rule(std::string_view what) const { return std::string(name).append(what); }
};

inline constexpr ValueSyntax kJsonSyntax;

// The string as it is written, its marks included; nothing: it has no way to be.
[[nodiscard]] std::optional<std::string> written_string(const ValueSyntax& syntax, std::string_view text);
// A key and the colon behind it.
[[nodiscard]] std::string written_key(const ValueSyntax& syntax, std::string_view key);

// The expression `inside` with the marks of a string around it.
[[nodiscard]] std::string string_around(const ValueSyntax& syntax, std::string_view inside);

// Each adds its rule, and those it needs, once, and returns an expression that may stand in a sequence.
std::string add_space(GrammarRules& rules, const ValueSyntax& syntax);       // what may stand behind ':' and ','
std::string add_any_string(GrammarRules& rules, const ValueSyntax& syntax);  // any, with its marks
std::string add_any_key(GrammarRules& rules, const ValueSyntax& syntax);     // without the colon
std::string add_any_object(GrammarRules& rules, const ValueSyntax& syntax);  // any
std::string add_any_array(GrammarRules& rules, const ValueSyntax& syntax);   // any
std::string add_any_value(GrammarRules& rules, const ValueSyntax& syntax);   // any

// A string of `least` to `most` characters (GrammarRules::kUnlimited: any number); nothing where a grammar of it would be
// too large. Raw ones hold not even the first two characters of what is barred.
[[nodiscard]] std::optional<std::string> add_string_between(GrammarRules& rules, const ValueSyntax& syntax,
                                                            std::size_t least, std::size_t most);

// How single characters stand inside the strings of a syntax.
class StringChars {
 public:
  // Those of keys.
  [[nodiscard]] static StringChars of_keys(const ValueSyntax& syntax);
  // Those of strings that match a pattern; nothing if it mentions all that might be left out.
  [[nodiscard]] static std::optional<StringChars> of_pattern(const ValueSyntax& syntax, std::string_view pattern);

  // One of the set; nothing if none of it may be written.
  [[nodiscard]] std::optional<std::string> expression(const CharSet& set) const;
  // Any one.
  [[nodiscard]] std::string add_any(GrammarRules& rules) const;

 private:
  StringChars(bool is_raw, CharSet allowed) : is_raw_(is_raw), allowed_(std::move(allowed)) {}

  bool is_raw_;
  CharSet allowed_;
};

}  // namespace ebb
