// ListedReader: reads calls whose arguments are a list of keys and values in a family's own writing,
//
//   <|tool_call_start|>[read(path='a.c', n=2), list()]<|tool_call_end|>
//   <|tool_call>call:read{n:2,path:<|"|>a.c<|"|>}<tool_call|>
//
// byte by byte. Arguments are held until they are whole, and then go on as JSON; what is no such list goes on as it was written, and the call
// is not complete. Of one that breaks off what is whole goes on.
//
// A text between marks ends at a mark behind which a value may end. Others open a text inside of it, up to a mark of their own, so that a text
// may hold a whole call; if none comes, they are read again as text alone.
//
// Thread rule: one thread at a time.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "chat/calls/call_reader.h"
#include "chat/calls/tool.h"

namespace ebb {

class SchemaRules;

struct ListedSyntax {
  // Behind all calls, between two (0: nothing is), in front of a name.
  std::string_view close;
  char between = 0;
  std::string_view before_name;
  char begin = '(';
  char end = ')';
  // What opens and closes a text; a backslash takes the next byte's meaning where it is one of quotes.
  std::string_view quotes;
  std::string_view text_mark;
  // The list as a JSON object; empty: it is none.
  std::string (*to_json)(std::string_view list) = nullptr;
};

class ListedReader : public CallReader {
 public:
  // For the text behind what opens calls.
  explicit ListedReader(const ListedSyntax& syntax) : syntax_(syntax) {}

  Step take(char c, CallEvents& events) override;
  bool finish(CallEvents& events) override;
  std::size_t n_held() const override { return raw_.n_held(); }
  std::size_t n_again() const override { return n_again_; }

 private:
  enum class State { kBefore, kName, kList, kRaw, kBehind };

  Step take_name(char c, CallEvents& events);
  void begin_list();
  [[nodiscard]] bool opens_too_much() const;
  Step take_list(char c, CallEvents& events);
  Step take_behind(char c);
  [[nodiscard]] bool is_in_text(char c);
  [[nodiscard]] std::string cut_arguments() const;

  const ListedSyntax& syntax_;
  State state_ = State::kBefore;
  std::string word_;  // what stands in front of the name, and the name; behind a call, what follows
  std::string list_;
  std::size_t n_whole_ = 0;  // bytes of it in front of the last comma between two keys
  std::size_t depth_ = 0;
  char quote_ = 0;
  bool is_escaped_ = false;
  bool may_be_over_ = false;  // a quote or mark came, and nothing but white space since
  bool in_mark_ = false;
  bool nests_ = true;         // marks inside a text may open others
  std::size_t n_nested_ = 0;  // open in the text
  bool has_nested_ = false;
  std::size_t n_again_ = 0;
  RawArguments raw_{syntax_.close};
};

// Does the quote there end its text? It does in front of what may follow a value; elsewhere it is an apostrophe that a template did not
// escape.
[[nodiscard]] bool ends_quoted_text(std::string_view text, std::size_t at);

// Where the mark stands that ends a text which begins behind one; npos: nowhere. `nests`: marks inside may open other texts.
[[nodiscard]] std::size_t find_marked_end(std::string_view text, std::string_view mark, bool nests);

// The expression of a tool's keys and values in the schema's order, `write_value` giving that of a value. kUnsupported where a key has one
// of the bytes `barred`, which no reader could tell from what stands around it.
[[nodiscard]] Result<std::string> add_listed_arguments(
    SchemaRules& rules, const Tool& tool, std::string_view behind_key, std::string_view between,
    std::string_view barred,
    const std::function<Result<std::string>(const nlohmann::ordered_json& root, const std::string& key,
                                            const nlohmann::ordered_json& schema)>& write_value);

}  // namespace ebb
