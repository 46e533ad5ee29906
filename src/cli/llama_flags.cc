#include "cli/llama_flags.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/split_text.h"
#include "chat/chat_template.h"
#include "cli/own_variable.h"
#include "cli/text_file.h"
#include "json/json_fields.h"
#include "server/api_error.h"

namespace ebb {
namespace {

using Takes = LlamaFlag::Takes;
using Does = LlamaFlag::Does;

constexpr std::string_view kVariables = "LLAMA_ARG_";
constexpr char kWhenOff = '!';

std::string_view bare_variable(const LlamaFlag& flag) {
  return flag.variable.substr(flag.variable.starts_with(kWhenOff) ? 1 : 0);
}

// The name that help texts use.
std::string_view long_name(const LlamaFlag& flag) {
  for (const std::string_view name : split_text(flag.names, ' ')) {
    if (name.starts_with("--")) return name;
  }
  return flag.names;
}

bool is_off(std::string_view value) {
  return value == "0" || value == "off" || value == "false" || value == "disabled";
}

// What --kv-type has, the least exact first: where K and V are asked to be of two types, the more exact one is taken for both.
constexpr std::array<std::string_view, 5> kKvTypes = {"kivi4", "q8_0", "f16", "bf16", "f32"};
// llama.cpp's others. Their nearest of ours that keeps as much, and that every device has.
constexpr std::array<std::string_view, 5> kOtherKvTypes = {"q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"};
constexpr std::string_view kNearestKvType = "q8_0";

// Chat templates that llama.cpp's server knows by a name, and not by their text.
constexpr std::string_view kNamedTemplates =
    "bailing bailing-think bailing2 chatglm3 chatglm4 chatml command-r deepseek deepseek-ocr deepseek2 deepseek3 "
    "exaone-moe exaone3 exaone4 falcon3 gemma gigachat glmedge gpt-oss granite granite-4.0 grok-2 hunyuan-dense "
    "hunyuan-moe kimi-k2 llama2 llama2-sys llama2-sys-bos llama2-sys-strip llama3 llama4 megrez minicpm mistral-v1 "
    "mistral-v3 mistral-v3-tekken mistral-v7 mistral-v7-tekken monarch openchat orion pangu-embedded phi3 phi4 "
    "rwkv-world seed_oss smolvlm solar-open vicuna vicuna-orca yandex zephyr";

bool is_on(std::string_view value) { return value == "1" || value == "on" || value == "true" || value == "enabled"; }

// As a JSON number where it is one.
Json member_value(const std::string& text) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return text;
  std::int64_t whole = 0;
  const auto [whole_end, whole_error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  return whole_error == std::errc() && whole_end == end ? Json(whole) : Json(number);
}

// By what it was given, and what that says.
struct GivenType {
  std::string name;
  std::string type;
};

class Translation {
 public:
  explicit Translation(const Variable& variable) : variable_(variable) {}

  Result<TranslatedLine> run(std::span<const char* const> arguments) {
    for (const char* const argument : arguments) given_.emplace_back(argument);
    EBB_RETURN_IF_ERROR(take_line());
    EBB_RETURN_IF_ERROR(take_variables());
    EBB_RETURN_IF_ERROR(end_types());
    if (!members_.empty()) ours("--request-defaults", json_text(members_));
    return std::move(line_);
  }

 private:
  Status take_line() {
    for (std::size_t i = 0; i < given_.size(); ++i) {
      const std::string& argument = given_[i];
      if (argument == "--") {
        line_.arguments.insert(line_.arguments.end(), given_.begin() + static_cast<std::ptrdiff_t>(i), given_.end());
        break;
      }
      const std::size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
      const std::string name = argument.substr(0, equals);
      const LlamaFlag* const flag = find_llama_flag(name);
      if (flag == nullptr) {
        if (is_bundled(argument) && line_.unknown.empty()) line_.unknown = argument;
        line_.arguments.push_back(argument);
        continue;
      }
      taken_.push_back(flag);
      std::string value;
      if (equals != std::string::npos) {
        value = argument.substr(equals + 1);
      } else if (flag->takes == Takes::kMaybeAValue) {
        if (i + 1 < given_.size() && (is_on(given_[i + 1]) || is_off(given_[i + 1]) || given_[i + 1] == "auto")) ++i;
      } else if (flag->takes != Takes::kNothing) {
        const std::size_t n = flag->takes == Takes::kTwoValues ? 2 : 1;
        if (i + n >= given_.size()) return error(Code::kInvalidArgument, "{} needs a value", name);
        value = given_[i + 1];
        i += n;
      }
      EBB_RETURN_IF_ERROR(take(*flag, name, value));
    }
    return {};
  }

  [[nodiscard]] bool is_taken(const LlamaFlag& flag) const {
    return std::ranges::any_of(taken_, [&](const LlamaFlag* one) {
      return one == &flag || (!flag.variable.empty() && bare_variable(*one) == bare_variable(flag));
    });
  }

  // Of ours that the flag stands for, given by its own name or by its variable.
  [[nodiscard]] bool is_ours_given(const LlamaFlag& flag) const {
    if (flag.does == Does::kNoEffect || flag.does == Does::kRefused) return false;
    const std::string_view ours =
        flag.says.starts_with("--") ? flag.says.substr(0, flag.says.find_first_of(" ;,")) : "";
    if (ours.empty()) return false;
    const auto is_it = [&](const std::string& one) { return one == ours || one.starts_with(std::string(ours) + "="); };
    if (std::ranges::any_of(line_.arguments, is_it)) return true;
    return variable_(own_variable(ours.substr(2))).has_value();
  }

  // On the command line, in ebb's words: what llama.cpp's flag of another name says then gives way.
  [[nodiscard]] bool is_on_line(std::string_view ours) const {
    const auto end = std::ranges::find(given_, "--");
    return std::any_of(given_.begin(), end, [&](const std::string& one) {
      return one.starts_with(ours) && (one.size() == ours.size() || one[ours.size()] == '=');
    });
  }

  template <typename... Parts>
  void note(fmt::format_string<Parts...> text, Parts&&... parts) {
    line_.notes.push_back(fmt::format(text, std::forward<Parts>(parts)...));
  }

  // What a variable says of the flag; none: nothing, or that it is not given. A pair of flags has one variable, and LLAMA_ARG_NO_... for its second.
  [[nodiscard]] std::optional<std::string> said_by(const LlamaFlag& flag, std::string& name) const {
    const bool when_off = flag.variable.starts_with(kWhenOff);
    const std::string bare(bare_variable(flag));
    name = std::string(kVariables) + bare;
    const std::optional<std::string> value = variable_(name);
    if (when_off && value && is_off(*value)) return "";
    if (const std::string no = std::string(kVariables) + "NO_" + bare; when_off && variable_(no)) {
      name = no;
      return "";
    }
    const bool is_given = value && !when_off && (flag.takes != Takes::kNothing || !is_off(*value));
    return is_given ? value : std::nullopt;
  }

  Status take_variables() {
    std::string name;
    for (const LlamaFlag& flag : llama_flags()) {
      if (flag.variable.empty() || is_taken(flag) || is_ours_given(flag)) continue;
      if (const auto value = said_by(flag, name)) EBB_RETURN_IF_ERROR(take(flag, name, *value));
    }
    const LlamaFlag& key = *find_llama_flag("--api-key");
    const std::optional<std::string> value = variable_("LLAMA_API_KEY");
    if (value && !is_taken(key) && !is_ours_given(key)) EBB_RETURN_IF_ERROR(take(key, "LLAMA_API_KEY", *value));
    return {};
  }

  // `name` is what was given.
  Status take(const LlamaFlag& flag, const std::string& name, const std::string& value) {
    switch (flag.does) {
      case Does::kRefused: return error(Code::kInvalidArgument, "{}: {}", name, flag.says);
      case Does::kNoEffect: line_.notes.push_back(fmt::format("{} has no effect: {}", name, flag.says)); return {};
      case Does::kMember:
        members_[std::string(flag.says)] = flag.takes == Takes::kNothing ? Json(true) : member_value(value);
        return {};
      case Does::kSame:
        if (flag.takes == Takes::kNothing) {
          line_.arguments.emplace_back(flag.says);
        } else {
          ours(flag.says, value);
        }
        return {};
      case Does::kOwn: return take_own(long_name(flag), name, value);
    }
    return {};
  }

  void ours(std::string_view name, std::string_view value) {
    // CLI11 takes "--name=" for a name without a value, and a value that begins with "-" behind a name for a flag.
    if (value.empty()) {
      line_.arguments.insert(line_.arguments.end(), {std::string(name), std::string()});
    } else {
      line_.arguments.push_back(fmt::format("{}={}", name, value));
    }
  }

  Status take_own(std::string_view flag, const std::string& name, const std::string& value) {
    std::int64_t number = 0;
    const auto [end, bad] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool is_number = bad == std::errc() && end == value.data() + value.size();
    if (flag == "--threads" || flag == "--parallel") {
      if (!is_number || number > 0) {
        ours(flag, value);
      }
      return {};
    }
    if (flag == "--device") return ours(flag, value == "none" ? "cpu" : value), Status();
    if (flag == "--cache-type-k" || flag == "--cache-type-v") {
      (flag == "--cache-type-k" ? k_type_ : v_type_) = GivenType{.name = name, .type = value};
      return {};
    }
    if (flag == "--cache-ram") {
      if (!is_number) return error(Code::kInvalidArgument, "{} {}: must be a number of MiB", name, value);
      if (number >= 0) in_other_words("--kv-store", name, fmt::format("ram={}M", number));
      return {};
    }
    if (flag == "--cache-reuse") {
      if (!is_number) return error(Code::kInvalidArgument, "{} {}: must be a number of tokens", name, value);
      if (number > 0) in_other_words("--kv-reuse", name, "approximate");
      return {};
    }
    if (flag == "--api-key") {
      // An empty one is refused, and does not serve everybody.
      const std::vector<std::string_view> keys = split_text(value, ',');
      if (keys.empty()) ours(flag, "");
      for (const std::string_view key : keys) ours(flag, key);
      return {};
    }
    if (flag == "--reasoning") {
      if (is_on(value) || is_off(value)) members_["chat_template_kwargs"]["enable_thinking"] = is_on(value);
      if (!is_on(value) && !is_off(value) && value != "auto") {
        return error(Code::kInvalidArgument, "{} {}: must be on, off or auto", name, value);
      }
      return {};
    }
    if (flag == "--predict") {
      const bool fills_context = is_number && number == -2;
      if (fills_context) note("{} -2 is taken as -1: until the model ends, or the context is full", name);
      return ours(flag, fills_context ? "-1" : value), Status();
    }
    if (flag == "--chat-template") return take_template(name, value);
    return take_member(flag, name, value);
  }

  void in_other_words(std::string_view flag, const std::string& name, std::string_view value) {
    if (is_on_line(flag)) return note("{} has no effect: {} is given", name, flag);
    ours(flag, value);
  }

  Status take_template(const std::string& name, const std::string& value) {
    if (value == "chatml") return ours("--chat-template", chatml_template()), Status();
    if (value.find('{') != std::string::npos) return ours("--chat-template", value), Status();
    const std::vector<std::string_view> named = split_text(kNamedTemplates, ' ');
    if (std::ranges::find(named, value) == named.end()) {
      return error(Code::kInvalidArgument,
                   "{} {}: no template has this name; give its Jinja text, or --chat-template-file FILE", name, value);
    }
    note("{} {} has no effect: chatml alone is known by its name; the model's own template is taken, if it has one",
         name, value);
    return {};
  }

  Status take_member(std::string_view flag, const std::string& name, const std::string& value) {
    if (flag == "--samplers") {
      members_["samplers"] = Json::array();
      for (const std::string_view one : split_text(value, ';')) members_["samplers"].push_back(one);
    } else if (flag == "--dry-sequence-breaker") {
      // A newline is written \n on a command line.
      members_["dry_sequence_breakers"].push_back(value == "\\n" ? "\n" : value);
    } else if (flag == "--logit-bias") {
      const std::size_t sign = value.find_first_of("+-");
      if (sign == 0 || sign == std::string::npos) {
        return error(Code::kInvalidArgument, "{} {}: must be a token's id, a sign and a number, as in 15043+1", name,
                     value);
      }
      const std::string bias = value.substr(value[sign] == '+' ? sign + 1 : sign);
      members_["logit_bias"].push_back(
          {member_value(value.substr(0, sign)), bias == "-inf" ? Json(false) : member_value(bias)});
    } else {
      std::string text = value;
      if (flag.ends_with("-file")) {
        EBB_ASSIGN_OR_RETURN(text, read_text(value));
      }
      if (flag.starts_with("--grammar")) {
        members_["grammar"] = text;
      } else {
        Result<Json> schema = parse_json(text);
        if (!schema.ok()) return error(Code::kInvalidArgument, "{}: {}", name, schema.status().message());
        members_["json_schema"] = *std::move(schema);
      }
    }
    return {};
  }

  // Ours for llama.cpp's type, with a line where it is another one.
  Result<std::string_view> kv_type(const GivenType& given) {
    if (const auto own = std::ranges::find(kKvTypes, given.type); own != kKvTypes.end()) return *own;
    if (std::ranges::find(kOtherKvTypes, given.type) == kOtherKvTypes.end()) {
      return error(Code::kInvalidArgument, "{} {}: must be one of {}", given.name, given.type,
                   fmt::join(kKvTypes, ", "));
    }
    note("{} {} is taken as {}, the nearest there is everywhere; --kv-type kivi4 has 4 bits, on the CPU", given.name,
         given.type, kNearestKvType);
    return kNearestKvType;
  }

  // One type is of K and V both.
  Status end_types() {
    if (!k_type_ && !v_type_) return {};
    if (is_on_line("--kv-type")) {
      note("{} has no effect: --kv-type is given", (k_type_ ? k_type_ : v_type_)->name);
      return {};
    }
    std::optional<std::string_view> k;
    std::optional<std::string_view> v;
    if (k_type_) {
      EBB_ASSIGN_OR_RETURN(k, kv_type(*k_type_));
    }
    if (v_type_) {
      EBB_ASSIGN_OR_RETURN(v, kv_type(*v_type_));
    }
    const auto rank = [](std::string_view type) { return std::ranges::find(kKvTypes, type) - kKvTypes.begin(); };
    const std::string_view type = k && (!v || rank(*k) >= rank(*v)) ? *k : *v;
    if (k != v) note("K and V have one type here: {} is taken", type);
    ours("--kv-type", type);
    return {};
  }

  const Variable& variable_;
  std::vector<std::string> given_;
  TranslatedLine line_;
  std::vector<const LlamaFlag*> taken_;
  std::optional<GivenType> k_type_;
  std::optional<GivenType> v_type_;
  Json members_ = Json::object();
};

}  // namespace

const LlamaFlag* find_llama_flag(std::string_view name) {
  for (const LlamaFlag& flag : llama_flags()) {
    const std::vector<std::string_view> names = split_text(flag.names, ' ');
    if (std::ranges::find(names, name) != names.end()) return &flag;
  }
  return nullptr;
}

Result<TranslatedLine> translate_llama_line(std::span<const char* const> arguments, const Variable& variable) {
  return Translation(variable).run(arguments);
}

bool is_bundled(std::string_view argument) {
  const auto is_letter = [&](std::size_t i) { return std::isalpha(static_cast<unsigned char>(argument[i])) != 0; };
  return argument.size() > 2 && argument[0] == '-' && is_letter(1) && (is_letter(2) || argument[2] == '-') &&
         argument.find(' ') == std::string_view::npos;
}

std::string llama_flags_table() {
  std::string table = "| llama-server | variable | ebb serve |\n|---|---|---|\n";
  for (const LlamaFlag& flag : llama_flags()) {
    std::string names;
    for (const std::string_view name : split_text(flag.names, ' '))
      names += fmt::format("{}`{}`", names.empty() ? "" : ", ", name);
    std::string does;
    switch (flag.does) {
      case Does::kSame: does = fmt::format("`{}`", flag.says); break;
      case Does::kMember: does = fmt::format("where requests have no `{}`", flag.says); break;
      case Does::kOwn: does = flag.says; break;
      case Does::kNoEffect: does = fmt::format("no effect: {}", flag.says); break;
      case Does::kRefused: does = fmt::format("refused: {}", flag.says); break;
    }
    table += fmt::format("| {} | {} | {} |\n", names,
                         flag.variable.empty() ? ""
                                               : fmt::format("`{}{}`{}", kVariables, bare_variable(flag),
                                                             flag.variable.starts_with(kWhenOff) ? " off" : ""),
                         does);
  }
  return table;
}

}  // namespace ebb
