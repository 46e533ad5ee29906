#include "chat/jinja/print.h"

#include <array>
#include <charconv>
#include <cmath>

#include "chat/jinja/callable.h"

namespace ebb::jinja {
namespace {

// Characters that show nothing by themselves, which repr writes as numbers.
bool is_invisible(char32_t c) {
  return (is_space(c) && c != ' ') || (0x200B <= c && c <= 0x200F) || (0x202A <= c && c <= 0x202E) ||
         (0x2060 <= c && c <= 0x206F) || c == 0xFEFF || (0xE000 <= c && c <= 0xF8FF);
}

void append_string_repr(Run& run, const MarkedText& text, MarkedText& out) {
  if (!run.pay_reading(text.size())) return;
  const std::string& bytes = text.bytes();
  const char quote = bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos ? '"' : '\'';
  out.append(std::string_view(&quote, 1));
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t n = character_bytes(bytes, at);
    const char32_t c = character_at(bytes, at);
    const Source source = text.source_at(at);
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out.append(fmt::format("\\{}", static_cast<char>(c)), source);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out.append(c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t", source);
    } else if (c < 0x20 || (0x7F <= c && c <= 0xA0) || c == 0xAD) {
      out.append(fmt::format("\\x{:02x}", static_cast<unsigned>(c)), source);
    } else if (is_invisible(c)) {
      out.append(fmt::format("\\u{:04x}", static_cast<unsigned>(c)), source);
    } else {
      out.append(text, at, at + n);
    }
    at += n;
  }
  out.append(std::string_view(&quote, 1));
}

void append_items(Run& run, const std::vector<Value>& items, MarkedText& out) {
  bool first = true;
  for (const Value& item : items) {
    if (run.failed()) return;
    if (!first) out.append(", ");
    first = false;
    append_repr(run, item, out);
  }
}

void append_list_repr(Run& run, const List& list, MarkedText& out) {
  switch (list.kind) {
    case ListKind::kList:
      out.append("[");
      append_items(run, list.items, out);
      out.append("]");
      return;
    case ListKind::kTuple:
      out.append("(");
      append_items(run, list.items, out);
      out.append(list.items.size() == 1 ? ",)" : ")");
      return;
    case ListKind::kLazy: out.append("<generator object>"); return;
    case ListKind::kRange: {
      if (list.items.empty()) {
        out.append("range(0, 0)");
        return;
      }
      const std::int64_t first = list.items.front().whole();
      const std::int64_t step = list.items.size() > 1 ? list.items[1].whole() - first : 1;
      const std::int64_t end = list.items.back().whole() + step;
      out.append(step == 1 ? fmt::format("range({}, {})", first, end)
                           : fmt::format("range({}, {}, {})", first, end, step));
      return;
    }
    default:
      out.append(Value(std::const_pointer_cast<List>(std::static_pointer_cast<const List>(list.shared_from_this())))
                     .type_name());
      out.append("([");
      append_items(run, list.items, out);
      out.append("])");
  }
}

void append_dict_repr(Run& run, const Dict& dict, MarkedText& out) {
  out.append("{");
  bool first = true;
  for (const Dict::Entry& entry : dict.entries()) {
    if (run.failed()) return;
    if (!first) out.append(", ");
    first = false;
    append_repr(run, entry.key, out);
    out.append(": ");
    append_repr(run, entry.value, out);
  }
  out.append("}");
}

}  // namespace

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 40> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
  std::string_view digits(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  std::string text;
  if (digits.starts_with('-')) {
    text = "-";
    digits.remove_prefix(1);
  }
  const std::size_t e = digits.find('e');
  int exponent = 0;
  const bool plus = digits[e + 1] == '+';
  (void)std::from_chars(digits.data() + e + (plus ? 2 : 1), digits.data() + digits.size(), exponent);
  std::string mantissa(digits.substr(0, e));
  if (exponent < -4 || exponent >= 16)
    return text + mantissa + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  if (mantissa.size() > 1) mantissa.erase(1, 1);  // the point
  if (exponent < 0) return text + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + mantissa;
  const auto n_whole = static_cast<std::size_t>(exponent) + 1;
  if (mantissa.size() <= n_whole) return text + mantissa + std::string(n_whole - mantissa.size(), '0') + ".0";
  return text + mantissa.substr(0, n_whole) + "." + mantissa.substr(n_whole);
}

void append_repr(Run& run, const Value& value, MarkedText& out) {
  const Deeper deeper(run);
  if (!run.pay(1) || out.size() > run.limits.max_output_bytes) {
    run.fail("a value prints to more than {} bytes", run.limits.max_output_bytes);
    return;
  }
  if (value.is_text()) {
    append_string_repr(run, *value.get<TextRef>(), out);
  } else if (const auto* list = value.find<ListRef>()) {
    append_list_repr(run, **list, out);
  } else if (const auto* dict = value.find<DictRef>()) {
    append_dict_repr(run, **dict, out);
  } else if (value.is_undefined()) {
    out.append("Undefined");
  } else {
    append_text(run, value, out);
  }
}

void append_text(Run& run, const Value& value, MarkedText& out) {
  if (run.failed() || value.is_undefined()) return;
  if (value.is_text()) {
    out.append(*value.get<TextRef>());
  } else if (value.is_none()) {
    out.append("None");
  } else if (const auto* flag = value.find<bool>()) {
    out.append(*flag ? "True" : "False");
  } else if (const auto* whole = value.find<std::int64_t>()) {
    out.append(std::to_string(*whole));
  } else if (const auto* real = value.find<double>()) {
    out.append(float_text(*real));
  } else if (const auto* space = value.find<NamespaceRef>()) {
    out.append("<Namespace ");
    if ((*space)->values != nullptr) append_repr(run, (*space)->values, out);
    out.append(">");
  } else if (const auto* callable = value.find<CallableRef>()) {
    out.append(fmt::format("<function {}>", (*callable)->name()));
  } else if (value.is<LoopRef>()) {
    out.append("<LoopContext>");
  } else {
    append_repr(run, value, out);
  }
}

MarkedText to_text(Run& run, const Value& value) {
  MarkedText out;
  if (value.is_text() && !run.pay_bytes(value.get<TextRef>()->n_bytes_held())) return {};
  append_text(run, value, out);
  if (!value.is_text() && !run.pay_bytes(out.n_bytes_held())) return {};
  return out;
}

TextRef as_text(Run& run, const Value& value) {
  return value.is_text() ? value.get<TextRef>() : std::make_shared<const MarkedText>(to_text(run, value));
}

}  // namespace ebb::jinja
