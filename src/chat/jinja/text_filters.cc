// Filters that make texts and numbers.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "chat/jinja/filters.h"
#include "chat/jinja/json_text.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/print.h"
#include "chat/jinja/text_operations.h"

namespace ebb::jinja {
namespace {

template <MarkedText (*change)(const MarkedText&)>
Value do_change(Run& run, const Value& input, const Arguments& arguments) {
  if (!bind(run, "this filter", arguments, {})) return {};
  const TextRef text = as_text(run, input);
  if (!run.pay_reading(text->size())) return {};
  return run.text(change(*text));
}

// Jinja2's title, whose words end at spaces and opening brackets only.
MarkedText title_words(const MarkedText& text) {
  MarkedText out;
  std::size_t begin = 0;
  const std::string_view bytes = text.bytes();
  for (std::size_t at = 0; at <= text.size();) {
    const char32_t c = at < text.size() ? character_at(bytes, at) : U' ';
    const bool ends = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    const std::size_t next = at < text.size() ? at + character_bytes(bytes, at) : at + 1;
    if (ends) {
      out.append(capitalize(text.sub(begin, at)));
      if (at < text.size()) out.append(text, at, next);
      begin = next;
    }
    at = next;
  }
  return out;
}

// Markup is escaped already.
MarkedText escape_once(const MarkedText& text) { return text.is_markup() ? text : escape_html(text); }

Value do_string(Run& run, const Value& input, const Arguments& arguments) {
  if (!bind(run, "string", arguments, {})) return {};
  return input.is_text() ? input : run.text(to_text(run, input));
}

Value do_safe(Run& run, const Value& input, const Arguments& arguments) {
  if (!bind(run, "safe", arguments, {})) return {};
  MarkedText text = to_text(run, input);
  text.set_markup(true);
  return run.text(std::move(text));
}

Value do_trim(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "trim", arguments, {"chars"});
  if (!given) return {};
  const Value& set = given->front();
  return strip(run, *as_text(run, input), Side::kBoth, set.is_text() ? &set.bytes() : nullptr);
}

Value do_replace(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "replace", arguments, {"old", "new", "count"});
  if (!given) return {};
  Arguments texts;
  texts.positional = {run.text(to_text(run, (*given)[0])), run.text(to_text(run, (*given)[1]))};
  if (!(*given)[2].is_undefined() && !(*given)[2].is_none()) texts.positional.push_back((*given)[2]);
  const Value method = attribute(run, run.text(to_text(run, input)), "replace");
  return run.failed() ? Value() : method.get<CallableRef>()->call(run, texts);
}

// Spaces, or the text itself.
std::optional<std::string> indent_text(Run& run, const Value& width, std::int64_t otherwise) {
  if (width.is_text()) return width.bytes();
  if (!width.is_undefined() && !width.is_whole()) {
    run.fail("an indent is a whole number or a string, not {}", width.type_name());
    return std::nullopt;
  }
  const std::int64_t n = width.is_undefined() ? otherwise : width.whole();
  if (n > 1000) {
    run.fail("an indent of {} is more than 1000", n);
    return std::nullopt;
  }
  return std::string(static_cast<std::size_t>(std::max<std::int64_t>(n, 0)), ' ');
}

Value do_indent(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "indent", arguments, {"width", "first", "blank"});
  if (!given) return {};
  const auto indent = indent_text(run, (*given)[0], 4);
  MarkedText text = to_text(run, input);
  if (!indent || !run.pay(text.size())) return {};
  text.append("\n");
  const std::vector<MarkedText> lines = split_lines(text);
  if (!run.pay_bytes(lines.size() * indent->size())) return {};
  MarkedText out;
  if ((*given)[1].truthy()) out.append(*indent);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n");
    if (i > 0 && ((*given)[2].truthy() || !lines[i].empty())) out.append(*indent);
    out.append(lines[i]);
  }
  return run.text(std::move(out));
}

Value do_tojson(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  if (!given) return {};
  JsonStyle style{.ensure_ascii = (*given)[0].truthy(), .sort_keys = (*given)[3].truthy()};
  if (const Value& indent = (*given)[1]; !indent.is_undefined() && !indent.is_none()) {
    style.indent = indent_text(run, indent, 0);
    style.item_separator = ",";
  }
  if (const auto* separators = (*given)[2].find<ListRef>()) {
    const std::vector<Value>& items = (*separators)->items;
    if (items.size() != 2 || !items[0].is_text() || !items[1].is_text()) {
      return run.fail("tojson needs two strings as separators");
    }
    style.item_separator = items[0].bytes();
    style.key_separator = items[1].bytes();
  }
  if (run.failed()) return {};
  return run.text(to_json_text(run, input, style));
}

Value do_from_json(Run& run, const Value& input, const Arguments& arguments) {
  if (!bind(run, "from_json", arguments, {})) return {};
  if (!input.is_text()) return run.fail("from_json needs a string, not {}", input.type_name());
  return parse_json(run, *input.get<TextRef>());
}

Value do_format(Run& run, const Value& input, const Arguments& arguments) {
  Value values = run.list(std::vector<Value>(arguments.positional), ListKind::kTuple);
  if (!arguments.named.empty()) {
    DictRef dict = run.dict();
    for (const auto& [name, value] : arguments.named) dict->set(name, value);
    values = dict;
  }
  return format_percent(run, *as_text(run, input), values);
}

std::optional<double> read_real(std::string_view text) {
  const Range range = stripped(text, Side::kBoth);
  text = text.substr(range.begin, range.end - range.begin);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

Value do_int(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "int", arguments, {"default", "base"});
  if (!given) return {};
  const Value otherwise = (*given)[0].is_undefined() ? Value(std::int64_t{0}) : (*given)[0];
  if (input.is_undefined()) return fail_undefined(run, input);
  if (input.is_whole()) return input.whole();
  std::optional<double> real;
  if (const auto* number = input.find<double>()) real = *number;
  if (input.is_text() && !run.pay_reading(input.bytes().size())) return {};
  if (input.is_text()) {
    const Range range = stripped(input.bytes(), Side::kBoth);
    const std::string_view text = std::string_view(input.bytes()).substr(range.begin, range.end - range.begin);
    const int base =
        (*given)[1].is_whole() ? static_cast<int>(std::clamp<std::int64_t>((*given)[1].whole(), 2, 36)) : 10;
    const std::size_t prefix = base == 16 && (text.starts_with("0x") || text.starts_with("0X")) ? 2
                               : text.starts_with('+')                                          ? 1
                                                                                                : 0;
    std::int64_t whole = 0;
    const auto read = std::from_chars(text.data() + prefix, text.data() + text.size(), whole, base);
    if (read.ec == std::errc() && read.ptr == text.data() + text.size()) return whole;
    real = read_real(text);
  }
  if (!real || !(std::abs(*real) < 9.2e18)) return otherwise;
  return static_cast<std::int64_t>(*real);
}

Value do_float(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "float", arguments, {"default"});
  if (!given) return {};
  if (input.is_undefined()) return fail_undefined(run, input);
  if (input.is_number()) return input.number();
  if (input.is_text() && !run.pay_reading(input.bytes().size())) return {};
  const auto real = input.is_text() ? read_real(input.bytes()) : std::nullopt;
  if (real) return *real;
  return given->front().is_undefined() ? Value(0.0) : given->front();
}

Value do_abs(Run& run, const Value& input, const Arguments& arguments) {
  if (!bind(run, "abs", arguments, {})) return {};
  if (!input.is_number()) return run.fail("abs needs a number, not {}", input.type_name());
  return input.number() < 0 ? negative(run, input) : binary(run, Expression::Operator::kAdd, input, std::int64_t{0});
}

Value do_round(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "round", arguments, {"precision", "method"});
  if (!given) return {};
  if (!input.is_number()) return run.fail("round needs a number, not {}", input.type_name());
  const std::int64_t precision = (*given)[0].is_whole() ? std::clamp<std::int64_t>((*given)[0].whole(), -300, 300) : 0;
  const std::string method = (*given)[1].is_text() ? (*given)[1].bytes() : "common";
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return std::ceil(input.number() * scale) / scale;
  if (method == "floor") return std::floor(input.number() * scale) / scale;
  if (method != "common") return run.fail("round knows common, ceil and floor, not '{}'", method);
  double value = 0;
  if (precision < 0) {
    value = std::nearbyint(input.number() * scale) / scale;
  } else {  // as Python: by the exact decimal value, which printing rounds half to even
    const std::string text = fmt::format("{:.{}f}", input.number(), precision);
    (void)std::from_chars(text.data(), text.data() + text.size(), value);
  }
  // Jinja2 gives a whole number back where Python's round does.
  return input.is_whole() ? Value(static_cast<std::int64_t>(value)) : Value(value);
}

Value do_urlencode(Run& run, const Value& input, const Arguments& arguments) {
  if (!bind(run, "urlencode", arguments, {})) return {};
  const TextRef shared = as_text(run, input);
  const MarkedText& text = *shared;
  // Each character may be formatted by itself.
  if (!run.pay(text.size())) return {};
  MarkedText out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text.bytes()[at];
    const bool plain = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    if (plain) {
      out.append(text, at, at + 1);
    } else {
      out.append(fmt::format("%{:02X}", static_cast<unsigned char>(c)), text.source_at(at));
    }
  }
  return run.text(std::move(out));
}

Value do_wordcount(Run& run, const Value& input, const Arguments& arguments) {
  if (!bind(run, "wordcount", arguments, {})) return {};
  const TextRef text = as_text(run, input);
  if (!run.pay_reading(text->size())) return {};
  std::int64_t n = 0;
  bool in_word = false;
  for (const char c : text->bytes()) {
    const bool word = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '_' ||
                      static_cast<unsigned char>(c) >= 0x80;
    n += word && !in_word ? 1 : 0;
    in_word = word;
  }
  return n;
}

struct Filter {
  std::string_view name;
  NativeFunction function;
};
constexpr Filter kFilters[] = {
    {"string", do_string},
    {"safe", do_safe},
    {"trim", do_trim},
    {"upper", do_change<upper>},
    {"lower", do_change<lower>},
    {"title", do_change<title_words>},
    {"capitalize", do_change<capitalize>},
    {"e", do_change<escape_once>},
    {"escape", do_change<escape_once>},
    {"forceescape", do_change<escape_html>},
    {"replace", do_replace},
    {"indent", do_indent},
    {"tojson", do_tojson},
    {"from_json", do_from_json},
    {"fromjson", do_from_json},
    {"format", do_format},
    {"int", do_int},
    {"float", do_float},
    {"abs", do_abs},
    {"round", do_round},
    {"urlencode", do_urlencode},
    {"wordcount", do_wordcount},
};

}  // namespace

NativeFunction find_text_filter(std::string_view name) {
  const auto* filter = std::ranges::find(kFilters, name, &Filter::name);
  return filter == std::end(kFilters) ? nullptr : filter->function;
}

}  // namespace ebb::jinja
