// ReplyParser: a model's answer, as text in pieces, becomes thinking, content and tool calls.
//
// What comes out depends on the text alone, not on how it was cut: the deltas of a stream, put together (add_delta), are
// the reply that parse_reply makes of the whole text. Held back is only what may be part of a marker: a marker's
// beginning, white space in front of where one may come, a tool call until its name and arguments have begun; at most
// CallLimits::kMaxHeldBytes, of white space ReplyLimits::kMaxSpaceBytes. Text that looks like a call and is none comes out as text. A call that has begun stays one:
// arguments that break off or are no JSON are passed on as the model wrote them, and kCallEnd is missing.
//
// A call inside thinking that is closed behind it was thought of, and is thinking; where thinking is not closed, the call ends it. So text from
// such a call on is held back until it is known, too.
//
// White space that only separates parts is dropped: around the thinking marks, in front of a call, and between the last
// call and the end. All other bytes come out unchanged.
//
// It does not know tokens, templates, stop strings or JSON of the API. Input should be whole UTF-8 characters
// (Utf8Stream); then every delta is, too.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/call_ids.h"
#include "chat/calls/call_format.h"

namespace ebb {

struct ReplyLimits {
  // White space held back in front of a marker that may come; a longer run is text.
  static constexpr std::size_t kMaxSpaceBytes = 1024;
};

struct ThinkTags {
  std::string open = "<think>";
  std::string close = "</think>";
  // What opens it again behind what was said; empty: nothing does.
  std::string reopen = {};
};

// The marks of thinking that a chat template speaks of, by its source text; none if it does not.
[[nodiscard]] std::optional<ThinkTags> find_think_tags(std::string_view template_source);

// The marks that a reply by this template has around what is said: gpt-oss's <|channel|>final<|message|>.
[[nodiscard]] std::vector<std::string> find_dress(std::string_view template_source);

// The beginning of such a mark, or of one that opens calls, with which prompts by this template end, so that the reply goes on in the middle of
// it: Functionary's >>>, behind which a model says whom it speaks to. Empty: there is none.
[[nodiscard]] std::string find_begun_mark(std::string_view template_source);

enum class ReasoningFormat {
  kNone,            // thinking stays in the content, marks and all
  kDeepseek,        // thinking is apart; also what "auto" means
  kDeepseekLegacy,  // both
};

// "none", "auto", "deepseek", "deepseek-legacy"; kInvalidArgument for others.
[[nodiscard]] Result<ReasoningFormat> reasoning_format_named(std::string_view name);

struct ReplyRules {
  ReasoningFormat reasoning = ReasoningFormat::kDeepseek;
  // None: thinking is not looked for.
  std::optional<ThinkTags> think = ThinkTags{};
  // The prompt ended inside thinking.
  bool thinking_open = false;
  // Marks around what is said, which are dropped.
  std::vector<std::string> dress = {};
  // What the prompt wrote of the mark that the reply goes on with (find_begun_mark). It is read as the reply's, and never shown.
  std::string begun = {};
  // Null: calls are not looked for. Formats live for ever.
  const CallFormat* calls = nullptr;
  std::vector<Tool> tools = {};
  // Ids of the conversation so far, which calls must not use again.
  std::vector<std::string> used_ids = {};
  std::optional<std::uint64_t> id_seed = std::nullopt;  // for tests
};

struct ReplyDelta {
  enum class Kind { kReasoning, kContent, kCallBegin, kCallArguments, kCallEnd };
  Kind kind = Kind::kContent;
  // Reasoning, content, the call's name, or a fragment of its arguments.
  std::string text = {};
  std::size_t call = 0;  // index of the call, 0 for the first
  std::string id = {};   // kCallBegin

  friend bool operator==(const ReplyDelta&, const ReplyDelta&) = default;
};

struct ReplyCall {
  std::string id = {};
  std::string name = {};
  std::string arguments = {};
  bool complete = false;  // kCallEnd came

  friend bool operator==(const ReplyCall&, const ReplyCall&) = default;
};

struct ParsedReply {
  std::string reasoning = {};
  std::string content = {};
  std::vector<ReplyCall> calls = {};

  friend bool operator==(const ParsedReply&, const ParsedReply&) = default;
};

class ReplyParser {
 public:
  explicit ReplyParser(ReplyRules rules);
  // Its markers look into its rules.
  ReplyParser(const ReplyParser&) = delete;
  ReplyParser& operator=(const ReplyParser&) = delete;

  // Deltas of one kind that follow each other are one.
  [[nodiscard]] std::vector<ReplyDelta> push(std::string_view text);
  // The end of the text: what was held back. The parser is spent.
  [[nodiscard]] std::vector<ReplyDelta> finish();

  // Bytes that came, or that the prompt began with, and are not out yet.
  [[nodiscard]] std::size_t n_held() const {
    return held_.size() + doubted_.size() + (reader_ ? reader_->n_held() : 0);
  }

 private:
  enum class Place {
    kStart,     // nothing but white space so far
    kThinking,  // between the marks
    kAnswer,    // behind the closing mark, nothing but white space since
    kContent,
    kBehindCall,  // nothing but white space since
  };
  struct Marker {
    enum class Kind { kThinkOpen, kThinkClose, kDress, kCall };
    Kind kind;
    std::string_view text;
    std::size_t opener = 0;
  };

  void take(char c);
  void take_again();
  void take_text(char c);
  void take_call(char c);
  void settle_text();
  void take_held_again(std::size_t n);
  void refuse();
  [[nodiscard]] bool pass_longest_mark(std::size_t n_space);
  void pass_mark(const Marker& marker, std::size_t n_space);
  void open_calls(const Marker& marker, std::size_t n_space);
  void take_doubted(char c);
  [[nodiscard]] bool ends_in_call(std::string_view doubted) const;
  void trust_calls();
  void find_markers();
  void give_text(std::string_view text);
  void give(ReplyDelta::Kind kind, std::string_view text);
  void give_calls();
  std::string id_of(const std::string& from_model);

  ReplyRules rules_;
  CallIds ids_;
  Place place_ = Place::kStart;
  std::size_t n_begun_ = 0;      // bytes of rules_.begun of which it is not known yet whether they are a mark's
  bool has_text_ = false;        // thinking has begun, beyond white space
  std::vector<Marker> markers_;  // that may come at this place
  std::string held_;
  std::unique_ptr<CallReader> reader_;
  std::size_t n_space_ = 0;   // of held_, in front of the opening mark, while the call has not begun
  std::size_t n_opener_ = 0;  // bytes of the opening mark that held_ still has behind them
  std::size_t n_rescans_ = 0;
  // Of thinking, from what begins like a call on, until it is known whether it is one; then calls end thinking.
  std::string doubted_;
  std::size_t n_doubts_ = 0;
  bool trusts_calls_ = false;
  std::deque<char> again_;  // text that was refused as a call and is looked through again
  CallEvents events_;
  std::size_t n_calls_ = 0;
  std::vector<ReplyDelta> out_;
};

void add_delta(ParsedReply& reply, const ReplyDelta& delta);
[[nodiscard]] ParsedReply parse_reply(ReplyRules rules, std::string_view text);
// The same of a text that comes byte by byte, as streams do.
[[nodiscard]] ParsedReply parse_reply_by_bytes(ReplyRules rules, std::string_view text);

}  // namespace ebb
