// Python's two ways to put values into a text: "%s" % value and "{}".format(value).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "chat/jinja/methods.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/print.h"

namespace ebb::jinja {
namespace {

constexpr int kMaxWidth = 1000;

// What stands between "%" or ":" and the type letter.
struct Spec {
  bool left = false;
  bool zero = false;
  bool plus = false;
  int width = 0;
  int precision = -1;
  char type = 's';
};

bool read_number(std::string_view text, std::size_t& at, int& number) {
  number = 0;
  while (at < text.size() && '0' <= text[at] && text[at] <= '9' && number <= kMaxWidth) {
    number = number * 10 + (text[at++] - '0');
  }
  return number <= kMaxWidth;
}

// False when it is not understood. `at` ends behind the type letter.
bool read_spec(std::string_view text, std::size_t& at, Spec& spec) {
  for (; at < text.size() && std::string_view("-0+ <>").find(text[at]) != std::string_view::npos; ++at) {
    spec.left |= text[at] == '-' || text[at] == '<';
    spec.zero |= text[at] == '0';
    spec.plus |= text[at] == '+';
  }
  if (!read_number(text, at, spec.width)) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (!read_number(text, at, spec.precision)) return false;
  }
  if (at >= text.size()) return false;
  spec.type = text[at++];
  return true;
}

// Where a template repeats a long value without end.
bool is_too_long(Run& run, const MarkedText& text) {
  if (text.size() <= run.limits.max_output_bytes) return false;
  run.fail("a formatted text has more than {} bytes", run.limits.max_output_bytes);
  return true;
}

void append_padded(const MarkedText& text, const Spec& spec, bool right, MarkedText& out) {
  const std::size_t n = count_characters(text.bytes());
  const auto width = static_cast<std::size_t>(spec.width);
  const std::string padding(width > n ? width - n : 0, ' ');
  if (right && !spec.left) out.append(padding);
  out.append(text);
  if (!right || spec.left) out.append(padding);
}

std::string real_text(double value, const Spec& spec) {
  std::string format = "%";
  if (spec.plus) format += '+';
  format += ".*";
  format += spec.type;
  std::string buffer(512, '\0');
  const int n = std::snprintf(buffer.data(), buffer.size(), format.c_str(),
                              spec.precision < 0 ? 6 : std::min(spec.precision, 100), value);
  buffer.resize(static_cast<std::size_t>(n));
  return buffer;
}

// A value as the type letter says; false when it does not fit it.
bool append_value(Run& run, const Value& value, const Spec& spec, MarkedText& out) {
  MarkedText text;
  std::string number;
  switch (spec.type) {
    case 's':
    case 'r':
      if (spec.type == 's') {
        text = to_text(run, value);
      } else {
        append_repr(run, value, text);
      }
      if (spec.precision >= 0) {
        text = text.sub(0, offset_of_character(text.bytes(), static_cast<std::size_t>(spec.precision)));
      }
      append_padded(text, spec, true, out);
      return true;
    case 'd':
    case 'i':
    case 'u':
      if (!value.is_number() || !(std::abs(value.number()) < 9.2e18)) return false;
      number = std::to_string(value.is_whole() ? value.whole() : static_cast<std::int64_t>(value.number()));
      if (spec.plus && !number.starts_with('-')) number.insert(0, "+");
      break;
    case 'x':
    case 'X':
      if (!value.is_whole()) return false;
      number = spec.type == 'x' ? fmt::format("{:x}", value.whole()) : fmt::format("{:X}", value.whole());
      break;
    case 'f':
    case 'e':
    case 'g':
      if (!value.is_number()) return false;
      number = real_text(value.number(), spec);
      break;
    default: return false;
  }
  const std::size_t sign = number.starts_with('-') || number.starts_with('+') ? 1 : 0;
  const auto width = static_cast<std::size_t>(spec.width);
  if (spec.zero && !spec.left && number.size() < width) number.insert(sign, width - number.size(), '0');
  append_padded(MarkedText(number), spec, true, out);
  return true;
}

}  // namespace

Value format_percent(Run& run, const MarkedText& format, const Value& arguments) {
  if (!run.pay_reading(format.size())) return {};
  const auto* tuple = arguments.find<ListRef>();
  const bool several = tuple != nullptr && (*tuple)->kind == ListKind::kTuple;
  const std::string& bytes = format.bytes();
  std::size_t next = 0;
  MarkedText out;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t percent = std::min(bytes.find('%', at), bytes.size());
    out.append(format, at, percent);
    at = percent;
    if (at == bytes.size()) break;
    if (bytes.compare(at, 2, "%%") == 0) {
      out.append(format, at, at + 1);
      at += 2;
      continue;
    }
    ++at;
    Value value = arguments;
    if (at < bytes.size() && bytes[at] == '(') {
      const std::size_t close = std::min(bytes.find(')', at), bytes.size() - 1);
      value = item(run, arguments, Value::text(bytes.substr(at + 1, close - at - 1)));
      at = close + 1;
    } else if (next >= (several ? (*tuple)->items.size() : 1)) {
      return run.fail("'%' has too few values for its format");
    } else if (several) {
      value = (*tuple)->items[next++];
    } else {
      ++next;
    }
    Spec spec;
    if (!read_spec(bytes, at, spec)) return run.fail("'%' does not understand its format");
    if (!append_value(run, value, spec, out)) return run.fail("'%{}' does not take {}", spec.type, value.type_name());
    if (is_too_long(run, out) || !run.pay_bytes(64)) return {};
  }
  const std::size_t n_single = arguments.is<DictRef>() ? 0 : 1;
  if (next < (several ? (*tuple)->items.size() : n_single))
    return run.fail("'%' has more values than its format takes");
  return run.text(std::move(out));
}

Value format_braces(Run& run, const MarkedText& format, const Arguments& arguments) {
  if (!run.pay_reading(format.size())) return {};
  const std::string& bytes = format.bytes();
  std::size_t next = 0;
  MarkedText out;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    out.append(format, at, brace);
    at = brace;
    if (at == bytes.size()) break;
    if (at + 1 < bytes.size() && bytes[at + 1] == bytes[at]) {
      out.append(format, at, at + 1);
      at += 2;
      continue;
    }
    if (!run.pay(arguments.named.size() / 8)) return {};
    const std::size_t close = bytes.find('}', at);
    if (bytes[at] == '}' || close == std::string::npos) return run.fail("format: a brace stands alone");
    const std::string field = bytes.substr(at + 1, close - at - 1);
    at = close + 1;
    const std::size_t colon = std::min(field.find(':'), field.size());
    const std::string name = field.substr(0, colon);
    std::size_t index = next;
    const bool by_index = std::from_chars(name.data(), name.data() + name.size(), index).ec == std::errc();
    const auto named =
        std::ranges::find_if(arguments.named, [&name](const auto& entry) { return entry.first == name; });
    if (name.empty()) ++next;
    const Value* value = nullptr;
    if (named != arguments.named.end()) {
      value = &named->second;
    } else if ((name.empty() || by_index) && index < arguments.positional.size()) {
      value = &arguments.positional[index];
    }
    if (value == nullptr) return run.fail("format: no argument for '{{{}}}'", field);
    Spec spec;
    std::string text = field.substr(std::min(colon + 1, field.size()));
    if (!text.empty() && std::string_view("sdixXfeg").find(text.back()) == std::string_view::npos)
      text += value->is<double>() ? 'g' : 's';
    std::size_t from = 0;
    if (!text.empty() && !read_spec(text, from, spec)) return run.fail("format: '{{{}}}' is not understood", field);
    if (!append_value(run, *value, spec, out))
      return run.fail("format: '{{{}}}' does not take {}", field, value->type_name());
    if (is_too_long(run, out) || !run.pay_bytes(64)) return {};
  }
  return run.text(std::move(out));
}

}  // namespace ebb::jinja
