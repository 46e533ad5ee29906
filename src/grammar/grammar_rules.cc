#include "grammar/grammar_rules.h"

#include "grammar/gbnf.h"

namespace ebb {
namespace {

// Repetitions above this are cut into runs of it. More: longer chains of rules inside libllama; fewer: more runs.
constexpr std::size_t kRun = 256;
static_assert(GrammarRules::kMaxRepetitions / kRun <= GbnfLimits::kMaxRepetitions);

}  // namespace

std::string GrammarRules::add(std::string_view name, std::string_view body) {
  if (has(name)) return std::string(name);
  if (text_.size() + name.size() + body.size() > kMaxBytes || names_.size() >= kMaxRules) {
    ++n_dropped_;
    return std::string(name);
  }
  names_.emplace(name);
  text_ += fmt::format("{} ::= {}\n", name, body);
  return std::string(name);
}

std::string GrammarRules::fresh_name() { return fmt::format("{}{}", prefix_, ++n_fresh_); }

std::string GrammarRules::add_up_to(const std::string& rule, std::size_t most) {
  if (most <= kRun) return fmt::format("{}{{0,{}}}", rule, most);
  // Whole runs and a part of one: every length up to most - most % kRun - 1 in the first way, the rest in the second.
  const std::size_t n_runs = most / kRun;
  const std::string run = add_fresh(fmt::format("{}{{{}}}", rule, kRun));
  const std::string part = add_fresh(fmt::format("{}{{0,{}}}", rule, kRun - 1));
  std::string last = fmt::format("{}{{{}}}", run, n_runs);
  if (most % kRun != 0) last += fmt::format(" {}{{0,{}}}", rule, most % kRun);
  return fmt::format("({}{{0,{}}} {} | {})", run, n_runs - 1, part, last);
}

std::string GrammarRules::repeat(const std::string& rule, std::size_t least, std::size_t most) {
  if (most == 0) return "\"\"";
  if (least == 1 && most == 1) return rule;
  if (least > kMaxRepetitions || (most != kUnlimited && most > kMaxRepetitions)) {
    ++n_dropped_;
    return rule;
  }
  if (most == kUnlimited && least <= 1) return rule + (least == 0 ? "*" : "+");
  if (least == 0) return most == 1 ? rule + "?" : add_up_to(rule, most);
  std::string all;
  if (least >= kRun) all = fmt::format("{}{{{}}} ", add_fresh(fmt::format("{}{{{}}}", rule, kRun)), least / kRun);
  if (least % kRun != 0) all += fmt::format("{}{{{}}} ", rule, least % kRun);
  if (most == kUnlimited) return all + rule + "*";
  if (most > least) return all + add_up_to(rule, most - least);
  all.pop_back();
  return all;
}

Result<std::string> GrammarRules::finish() const {
  if (too_large()) {
    return error(Code::kUnsupported,
                 "the schema makes a grammar of more than {} bytes, {} rules or repetitions of {}; make it smaller",
                 kMaxBytes, kMaxRules, kMaxRepetitions);
  }
  return text_;
}

std::string grammar_literal(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      literal += '\\';
      literal += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      literal += c == '\n' ? "\\n" : fmt::format("\\x{:02X}", byte);
    } else {
      literal += c;
    }
  }
  return literal += '"';
}

std::string grammar_range(char32_t first, char32_t last) {
  const auto letter = [](char32_t c) {
    const auto code = static_cast<std::uint32_t>(c);
    const bool plain = ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z');
    if (plain) return std::string(1, static_cast<char>(c));
    return code < 0x80 ? fmt::format("\\x{:02X}", code) : fmt::format("\\U{:08X}", code);
  };
  return first == last ? letter(first) : letter(first) + "-" + letter(last);
}

}  // namespace ebb
