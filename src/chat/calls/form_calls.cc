#include "chat/calls/form_calls.h"

#include <algorithm>

#include "chat/calls/call_rules.h"
#include "chat/calls/nesting_reader.h"
#include "json/parse_json.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

// Others are text like other text: a bracket, a word.
bool is_mark(std::string_view opener) {
  return opener.starts_with('<') || (opener.size() > 2 && opener.starts_with('[') && opener.ends_with(']'));
}

// What is no object stands as one argument of any name.
std::string write_tags(const ArgumentTags& tags, const std::string& arguments) {
  const Result<Json> read = parse_json(arguments);
  if (!read.ok() || !read->is_object()) {
    return tags.before_key + "..." + tags.key_ends.begin()->second + "..." + tags.value_end;
  }
  std::string text;
  for (const auto& [key, value] : read->items()) {
    const auto end =
        std::ranges::find_if(tags.key_ends, [&](const auto& one) { return (one.first & json_type_of(value)) != 0; });
    text += tags.before_key + key + (end == tags.key_ends.end() ? tags.key_ends.begin()->second : end->second);
    text += value.is_string() ? value.get<std::string>() : value.dump();
    text += tags.value_end;
  }
  return text;
}

}  // namespace

FormCalls::FormCalls(CallForm form, std::string_view name, std::string_view taught_by)
    : form_(std::move(form)), name_(name), taught_by_(taught_by), marks_(form_.marks()) {
  opener_texts_.push_back(form_.opener());
  // A model may leave out what stands around all calls, if those begin with a mark of their own.
  const std::string of_call = first_mark(form_.call.front().text);
  if (!form_.open.empty() && !opener_texts_.front().starts_with(of_call) &&
      (of_call.starts_with('<') || of_call.starts_with('['))) {
    opener_texts_.push_back(of_call);
  }
  one_call_ = form_;
  one_call_.between = one_call_.close = "";
  for (const std::string& text : opener_texts_) openers_.push_back({.text = text, .only_first = !is_mark(text)});
}

std::string FormCalls::write(const std::vector<WrittenCall>& calls) const {
  std::string text = form_.open;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i > 0) text += form_.between;
    for (const CallPiece& piece : form_.call) {
      switch (piece.kind) {
        case CallPiece::Kind::kText: text += piece.text; break;
        case CallPiece::Kind::kName: text += form_.written_name(calls[i].name); break;
        case CallPiece::Kind::kId: text += "call00001"; break;
        case CallPiece::Kind::kIndex: text += std::to_string(i); break;
        case CallPiece::Kind::kArguments:
          text += form_.tags ? write_tags(*form_.tags, calls[i].arguments) : calls[i].arguments;
          break;
      }
    }
  }
  return text + form_.close;
}

std::unique_ptr<CallReader> FormCalls::make_reader(std::size_t opener, const std::vector<Tool>& tools) const {
  if (!form_.tags || openers_.front().only_first) {
    return std::make_unique<FormReader>(form_, tools, opener_texts_[opener], opener > 0);
  }
  const NestingForm form = {.all = form_, .one = one_call_, .openers = opener_texts_, .tools = tools};
  return std::make_unique<NestingReader>(form, opener);
}

Result<std::string> FormCalls::add_call_rules(SchemaRules& rules, const std::vector<Tool>& tools, bool parallel) const {
  return add_form_calls(rules, tools, form_, parallel);
}

std::vector<CallPiece> object_call(std::string before, std::string_view arguments_key, std::string_view id_key,
                                   std::string after) {
  using Kind = CallPiece::Kind;
  std::vector<CallPiece> call = {{.text = std::move(before)},
                                 {.text = "{\"name\": \""},
                                 {.kind = Kind::kName},
                                 {.text = fmt::format("\", \"{}\": ", arguments_key)},
                                 {.kind = Kind::kArguments}};
  if (!id_key.empty()) {
    call.push_back({.text = fmt::format(", \"{}\": \"", id_key)});
    call.push_back({.kind = Kind::kId});
    call.push_back({.text = "\""});
  }
  call.push_back({.text = "}"});
  call.push_back({.text = std::move(after)});
  return call;
}

}  // namespace ebb
