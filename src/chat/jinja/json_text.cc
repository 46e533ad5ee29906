#include "chat/jinja/json_text.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "chat/jinja/print.h"
#include "json/parse_json.h"

namespace ebb::jinja {
namespace {

void append_escape(char32_t c, Source source, MarkedText& out) {
  if (c >= 0x10000) {
    const auto rest = static_cast<unsigned>(c) - 0x10000;
    out.append(fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF)), source);
  } else {
    out.append(fmt::format("\\u{:04x}", static_cast<unsigned>(c)), source);
  }
}

class JsonWriter {
 public:
  JsonWriter(Run& run, const JsonStyle& style) : run_(run), style_(style) {}

  void write(const Value& value, MarkedText& out) {
    const Deeper deeper(run_);
    if (!run_.pay(1)) return;
    if (out.size() > run_.limits.max_output_bytes) {
      run_.fail("tojson makes more than {} bytes", run_.limits.max_output_bytes);
    } else if (value.is_text()) {
      write_string(*value.get<TextRef>(), out);
    } else if (const auto* list = value.find<ListRef>(); list != nullptr && is_array(**list)) {
      write_list(**list, out);
    } else if (const auto* dict = value.find<DictRef>()) {
      write_dict(**dict, out);
    } else if (value.is_none()) {
      out.append("null");
    } else if (const auto* flag = value.find<bool>()) {
      out.append(*flag ? "true" : "false");
    } else if (value.is_number()) {
      out.append(number_text(value));
    } else {
      run_.fail("tojson cannot write {}", value.is_undefined() ? "an undefined value" : value.type_name());
    }
  }

 private:
  // Python's json refuses what map and select give. llama.cpp does not, and its template for R1 shows tools so.
  static bool is_array(const List& list) {
    return list.kind == ListKind::kList || list.kind == ListKind::kTuple || list.kind == ListKind::kLazy;
  }

  static std::string number_text(const Value& value) {
    const auto* real = value.find<double>();
    if (real == nullptr) return std::to_string(value.whole());
    if (std::isnan(*real)) return "NaN";
    if (std::isinf(*real)) return *real > 0 ? "Infinity" : "-Infinity";
    return float_text(*real);
  }

  void write_string(const MarkedText& text, MarkedText& out) const {
    if (!run_.pay_reading(text.size())) return;
    const std::string& bytes = text.bytes();
    out.append("\"");
    std::size_t plain = 0;  // begin of what is copied as it is
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t n = character_bytes(bytes, at);
      const char32_t c = character_at(bytes, at);
      const bool escapes = c == '"' || c == '\\' || c < 0x20 || (style_.ensure_ascii && c >= 0x7F && c != 0x7F);
      if (escapes) {
        out.append(text, plain, at);
        const Source source = text.source_at(at);
        switch (c) {
          case '"': out.append("\\\"", source); break;
          case '\\': out.append("\\\\", source); break;
          case '\n': out.append("\\n", source); break;
          case '\r': out.append("\\r", source); break;
          case '\t': out.append("\\t", source); break;
          case '\b': out.append("\\b", source); break;
          case '\f': out.append("\\f", source); break;
          default: append_escape(c, source, out);
        }
        plain = at + n;
      }
      at += n;
    }
    out.append(text, plain, bytes.size());
    out.append("\"");
  }

  void write_list(const List& list, MarkedText& out) {
    out.append("[");
    ++level_;
    for (std::size_t i = 0; i < list.items.size() && !run_.failed(); ++i) {
      begin_item(i == 0, out);
      write(list.items[i], out);
    }
    end_items(list.items.empty(), out);
    out.append("]");
  }

  void write_dict(const Dict& dict, MarkedText& out) {
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::ranges::stable_sort(entries, [this](const Dict::Entry* a, const Dict::Entry* b) {
        return to_text(run_, a->key).bytes() < to_text(run_, b->key).bytes();
      });
    }
    out.append("{");
    ++level_;
    for (std::size_t i = 0; i < entries.size() && !run_.failed(); ++i) {
      begin_item(i == 0, out);
      write_key(entries[i]->key, out);
      out.append(style_.key_separator);
      write(entries[i]->value, out);
    }
    end_items(entries.empty(), out);
    out.append("}");
  }

  void write_key(const Value& key, MarkedText& out) {
    if (key.is_text()) {
      write_string(*key.get<TextRef>(), out);
      return;
    }
    out.append("\"");
    write(key, out);
    out.append("\"");
  }

  void begin_item(bool first, MarkedText& out) const {
    if (!run_.pay_bytes(style_.item_separator.size() + style_.key_separator.size())) return;
    if (!first) out.append(style_.item_separator);
    new_line(out);
  }
  void end_items(bool none, MarkedText& out) {
    --level_;
    if (!none) new_line(out);
  }
  void new_line(MarkedText& out) const {
    if (!style_.indent || !run_.pay_bytes(style_.indent->size() * static_cast<std::size_t>(level_) + 1)) return;
    out.append("\n");
    for (int i = 0; i < level_; ++i) out.append(*style_.indent);
  }

  Run& run_;
  const JsonStyle& style_;
  int level_ = 0;
};

}  // namespace

Value from_json(Run& run, const nlohmann::ordered_json& json, Source source) {
  using Type = nlohmann::ordered_json::value_t;
  const Deeper deeper(run);
  if (!run.pay(1)) return {};
  switch (json.type()) {
    case Type::boolean: return json.get<bool>();
    case Type::number_integer: return json.get<std::int64_t>();
    case Type::number_unsigned: {
      const auto value = json.get<std::uint64_t>();
      if (value <= static_cast<std::uint64_t>(INT64_MAX)) return static_cast<std::int64_t>(value);
      return static_cast<double>(value);
    }
    case Type::number_float: return json.get<double>();
    case Type::string: return run.text(MarkedText(json.get_ref<const std::string&>(), source));
    case Type::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(from_json(run, item, source));
      return run.list(std::move(items));
    }
    case Type::object: {
      DictRef dict = run.dict();
      for (const auto& [key, value] : json.items()) {
        const Value name = run.text(MarkedText(key, source));
        Value made = from_json(run, value, source);
        if (run.failed()) return {};
        run.set(*dict, name, std::move(made));
      }
      return dict;
    }
    default: return None{};
  }
}

Value parse_json(Run& run, const MarkedText& text) {
  if (!run.pay(text.size())) return {};
  const auto json = ebb::parse_json(text.bytes());
  if (!json.ok()) return run.fail("from_json: {}", json.status().message());
  return from_json(run, *json, text.marks().empty() ? kFromTemplate : text.marks().front().source);
}

MarkedText to_json_text(Run& run, const Value& value, const JsonStyle& style) {
  MarkedText out;
  JsonWriter(run, style).write(value, out);
  return out;
}

}  // namespace ebb::jinja
