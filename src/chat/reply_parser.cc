#include "chat/reply_parser.h"

#include <algorithm>
#include <utility>

namespace ebb {
namespace {

// How often text that was held for a call and refused is looked through again for another opening mark. More: work on
// hostile text grows with it; fewer: a call behind that many false ones in one held run comes out as text.
constexpr std::size_t kMaxRescans = 8;

// How often it is looked whether thinking is closed inside a call's arguments. More: work on hostile text grows with it.
constexpr std::size_t kMaxDoubts = 8;

std::size_t n_leading_space(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_call_space(text[n])) ++n;
  return n;
}

}  // namespace

std::optional<ThinkTags> find_think_tags(std::string_view template_source) {
  struct Known {
    ThinkTags tags;
    // What a template says whose model thinks so; empty: both marks, of the opening one its first line, whose break may be written otherwise.
    std::string_view sign = {};
  };
  // Apriel's models open so, and R1's and others <think>, whether or not their template says it for them; MiniMax-M1's says nothing of thinking.
  const Known kKnown[] = {
      {{.open = "Here are my reasoning steps:", .close = "[BEGIN FINAL RESPONSE]"}, "[BEGIN FINAL RESPONSE]"},
      {{}, "<beginning_of_sentence>ai name="},
      {{.open = "<|open|>think<|sep|>", .close = "<|close|>think<|sep|>"}, "open_tag('think')"},
      {{.open = "<think:opensource>", .close = "</think:opensource>"}, ":opensource"},
      {{.open = "<|think|>", .close = "<|end|>", .reopen = "<|begin|>assistant<|think|>"},
       "<|begin|>assistant<|think|>"},
      {{.open = "to=self<|message|>", .close = "<|eom|>", .reopen = "<|start|>assistant to=self<|message|>"},
       "to=self"},
      {{.open = "<seed:think>", .close = "</seed:think>"}},
      {{.open = "[THINK]", .close = "[/THINK]"}},
      {{.open = "<mm:think>", .close = "</mm:think>"}},
      {{.open = "<|START_THINKING|>", .close = "<|END_THINKING|>"}},
      {{.open = "<|inner_prefix|>", .close = "<|inner_suffix|>"}},
      {{.open = "<|channel>thought\n", .close = "<channel|>"}},
      {{.open = "<|channel|>analysis<|message|>",
        .close = "<|end|>",
        .reopen = "<|start|>assistant<|channel|>analysis<|message|>"}},
      {{.open = "<think>", .close = "</think>"}, "</think>"},
      {{.open = "<thinking>", .close = "</thinking>"}}};
  const auto says = [&](std::string_view mark) { return template_source.find(mark) != std::string_view::npos; };
  for (const auto& [tags, sign] : kKnown) {
    const std::string_view open = tags.open;
    if (sign.empty() ? says(tags.close) && says(open.substr(0, open.find('\n'))) : says(sign)) return tags;
  }
  return std::nullopt;
}

std::vector<std::string> find_dress(std::string_view template_source) {
  const auto says = [&](std::string_view mark) { return template_source.find(mark) != std::string_view::npos; };
  if (says("<|channel|>final<|message|>")) {
    std::vector<std::string> dress;
    for (const char* const begin : {"<|start|>assistant", ""}) {
      for (const char* const channel : {"final", "commentary"}) {
        dress.push_back(fmt::format("{}<|channel|>{}<|message|>", begin, channel));
        dress.push_back(fmt::format("{}<|channel|>{} <|constrain|>json<|message|>", begin, channel));
      }
    }
    dress.emplace_back("<|end|>");
    // Ends the reply, and is in no text that a model's runtime gives; recorded ones have it.
    dress.emplace_back("<|return|>");
    return dress;
  }
  if (says(">>>all")) return {">>>all\n"};
  // Kimi K3's, Solar's and Muse's.
  if (says("open_tag('think')"))
    return {"<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"};
  if (says("<|begin|>assistant<|think|>")) return {"<|begin|>assistant<|content|>", "<|content|>", "<|end|>"};
  if (says("to=self")) return {"<|start|>assistant to=user<|message|>", "to=user<|message|>", "<|eot|>"};
  if (says("[BEGIN FINAL RESPONSE]")) return {"[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]"};
  // Granite's and Cohere's.
  constexpr std::pair<const char*, const char*> kAround[] = {
      {"<response>", "</response>"}, {"<|START_RESPONSE|>", "<|END_RESPONSE|>"}, {"<|START_TEXT|>", "<|END_TEXT|>"}};
  for (const auto& [begin, end] : kAround) {
    if (says(begin) && says(end)) return {begin, end};
  }
  return {};
}

std::string find_begun_mark(std::string_view template_source) {
  return template_source.find(">>>all") == std::string_view::npos ? "" : ">>>";
}

Result<ReasoningFormat> reasoning_format_named(std::string_view name) {
  if (name == "none") return ReasoningFormat::kNone;
  if (name == "auto" || name == "deepseek") return ReasoningFormat::kDeepseek;
  if (name == "deepseek-legacy") return ReasoningFormat::kDeepseekLegacy;
  return error(Code::kInvalidArgument,
               "reasoning_format '{:.40}' is unknown; it is none, auto, deepseek or deepseek-legacy", name);
}

ReplyParser::ReplyParser(ReplyRules rules)
    : rules_(std::move(rules)), ids_(rules_.id_seed ? CallIds(*rules_.id_seed) : CallIds()) {
  for (const std::string& id : rules_.used_ids) ids_.reserve(id);
  if (rules_.thinking_open && rules_.think) place_ = Place::kThinking;
  find_markers();
  n_begun_ = rules_.begun.size();
  for (const char c : rules_.begun) take(c);
}

// A model may repeat the opening mark that the prompt already gave.
void ReplyParser::find_markers() {
  markers_.clear();
  const bool at_start = place_ == Place::kStart || (place_ == Place::kThinking && rules_.thinking_open && !has_text_);
  if (rules_.think && at_start) {
    markers_.push_back({.kind = Marker::Kind::kThinkOpen, .text = rules_.think->open});
  }
  if (rules_.think && place_ != Place::kThinking && !rules_.think->reopen.empty()) {
    markers_.push_back({.kind = Marker::Kind::kThinkOpen, .text = rules_.think->reopen});
  }
  if (rules_.think && place_ == Place::kThinking) {
    markers_.push_back({.kind = Marker::Kind::kThinkClose, .text = rules_.think->close});
  }
  if (place_ != Place::kThinking) {
    for (const std::string& mark : rules_.dress) markers_.push_back({.kind = Marker::Kind::kDress, .text = mark});
  }
  if (rules_.calls == nullptr) return;
  const std::vector<CallOpener>& openers = rules_.calls->openers();
  for (std::size_t i = 0; i < openers.size(); ++i) {
    if (openers[i].only_first && place_ != Place::kStart && place_ != Place::kAnswer) continue;
    markers_.push_back({.kind = Marker::Kind::kCall, .text = openers[i].text, .opener = i});
  }
}

std::vector<ReplyDelta> ReplyParser::push(std::string_view text) {
  for (const char c : text) {
    take(c);
    if (!again_.empty()) take_again();
    if (!reader_) n_rescans_ = 0;
  }
  return std::exchange(out_, {});
}

void ReplyParser::take_again() {
  while (!again_.empty()) {
    const char c = again_.front();
    again_.pop_front();
    take(c);
  }
}

std::vector<ReplyDelta> ReplyParser::finish() {
  if (!doubted_.empty()) {
    trust_calls();
    take_again();
  }
  while (reader_) {
    const bool dropped = reader_->finish(events_);
    give_calls();
    if (reader_->n_again() > 0) {
      take_held_again(reader_->n_again());
      take_again();
      continue;
    }
    if (!dropped) {
      refuse();
      take_again();
      continue;
    }
    reader_.reset();
    held_.clear();
    place_ = Place::kBehindCall;
  }
  if (place_ == Place::kBehindCall) held_.erase(0, n_leading_space(held_));
  if (!held_.empty()) give_text(std::exchange(held_, {}));
  return std::exchange(out_, {});
}

void ReplyParser::take(char c) {
  if (reader_) {
    take_call(c);
  } else {
    take_text(c);
  }
}

void ReplyParser::take_text(char c) {
  if (!doubted_.empty()) {
    take_doubted(c);
    return;
  }
  if (markers_.empty()) {
    give_text({&c, 1});
    return;
  }
  held_ += c;
  settle_text();
}

// Gives out what cannot be part of `white space, marker`, the longest such beginning excepted.
void ReplyParser::settle_text() {
  while (!held_.empty()) {
    const std::size_t n_space = n_leading_space(held_);
    const std::string_view rest = std::string_view(held_).substr(n_space);
    if (n_space <= ReplyLimits::kMaxSpaceBytes) {
      const auto may_be = [&](const Marker& m) { return m.text.size() > rest.size() && m.text.starts_with(rest); };
      if (std::any_of(markers_.begin(), markers_.end(), may_be)) return;
      if (pass_longest_mark(n_space)) return;
    }
    // The space and one byte are text; what follows may still begin a marker.
    const std::size_t n_text = std::min(held_.size(), n_space + 1);
    const std::string text = held_.substr(0, n_text);
    held_.erase(0, n_text);
    give_text(text);
  }
}

// The longest mark that stands behind the space; what was held behind it, since a longer one might have come, is looked at again.
bool ReplyParser::pass_longest_mark(std::size_t n_space) {
  const std::string_view rest = std::string_view(held_).substr(n_space);
  const Marker* longest = nullptr;
  for (const Marker& marker : markers_) {
    if (rest.starts_with(marker.text) && (longest == nullptr || marker.text.size() > longest->text.size()))
      longest = &marker;
  }
  if (longest == nullptr) return false;
  const std::size_t n_mark = n_space + longest->text.size();
  again_.insert(again_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(n_mark), held_.end());
  held_.resize(n_mark);
  pass_mark(Marker(*longest), n_space);
  return true;
}

void ReplyParser::pass_mark(const Marker& marker, std::size_t n_space) {
  if (marker.kind == Marker::Kind::kCall) {
    open_calls(marker, n_space);
    return;
  }
  if (marker.kind == Marker::Kind::kDress) {
    held_.clear();
    n_begun_ = 0;
    return;
  }
  if (rules_.reasoning != ReasoningFormat::kDeepseek) give(ReplyDelta::Kind::kContent, held_);
  held_.clear();
  place_ = marker.kind == Marker::Kind::kThinkOpen ? Place::kThinking : Place::kAnswer;
  rules_.thinking_open = false;
  find_markers();
}

void ReplyParser::open_calls(const Marker& marker, std::size_t n_space) {
  if (place_ == Place::kThinking && rules_.think && !trusts_calls_) {
    doubted_ = std::exchange(held_, {});
    return;
  }
  n_space_ = n_space;
  n_opener_ = marker.text.size();
  reader_ = rules_.calls->make_reader(marker.opener, rules_.tools);
}

void ReplyParser::take_doubted(char c) {
  doubted_ += c;
  const std::string& close = rules_.think->close;
  if (doubted_.ends_with(close)) {
    const std::string thought = doubted_.substr(0, doubted_.size() - close.size());
    if (!ends_in_call(thought) || ++n_doubts_ > kMaxDoubts) {
      doubted_.clear();
      std::size_t n = thought.size();
      while (n > 0 && is_call_space(thought[n - 1])) --n;
      give_text(std::string_view(thought).substr(0, n));
      held_ = thought.substr(n) + close;
      pass_mark({.kind = Marker::Kind::kThinkClose, .text = close}, thought.size() - n);
      return;
    }
  }
  if (doubted_.size() > CallLimits::kMaxHeldBytes) trust_calls();
}

// Whether a call is open at the end of what is doubted: then what closes thinking there is part of its arguments.
bool ReplyParser::ends_in_call(std::string_view doubted) const {
  ReplyParser trusting(rules_);
  trusting.place_ = Place::kThinking;
  trusting.trusts_calls_ = true;
  trusting.find_markers();
  (void)trusting.push(doubted);
  return trusting.reader_ != nullptr;
}

void ReplyParser::trust_calls() {
  trusts_calls_ = true;
  again_.insert(again_.begin(), doubted_.begin(), doubted_.end());
  doubted_.clear();
}

void ReplyParser::take_call(char c) {
  held_ += c;
  CallReader::Step step = reader_->take(c, events_);
  give_calls();
  if (step == CallReader::Step::kHeld && held_.size() > CallLimits::kMaxHeldBytes) step = CallReader::Step::kRefused;
  if (step == CallReader::Step::kHeld) return;
  if (step == CallReader::Step::kRefused) {
    refuse();
    return;
  }
  take_held_again(reader_->n_again());
  n_begun_ = n_opener_ = n_space_ = 0;
  if (step == CallReader::Step::kDone) {
    reader_.reset();
    place_ = Place::kBehindCall;
    find_markers();
  }
}

// The last bytes that were held come again; the others are out.
void ReplyParser::take_held_again(std::size_t n) {
  EBB_CHECK(n <= held_.size());
  again_.insert(again_.begin(), held_.end() - static_cast<std::ptrdiff_t>(n), held_.end());
  held_.clear();
}

// What was held is text: the opening mark surely, the rest unless it holds another one.
void ReplyParser::refuse() {
  reader_.reset();
  const std::string text = std::exchange(held_, {});
  std::size_t n_sure = std::exchange(n_space_, 0) + std::exchange(n_opener_, 0);
  if (n_sure == 0) {
    place_ = Place::kBehindCall;
    find_markers();
  }
  if (++n_rescans_ > kMaxRescans) {
    n_sure = text.size();
    n_rescans_ = 0;
  }
  if (n_sure > 0) give_text(std::string_view(text).substr(0, n_sure));
  again_.insert(again_.begin(), text.begin() + static_cast<std::ptrdiff_t>(n_sure), text.end());
}

void ReplyParser::give_text(std::string_view text) {
  const std::size_t n_begun = std::min(n_begun_, text.size());
  n_begun_ -= n_begun;
  text.remove_prefix(n_begun);
  if (n_begun > 0 && text.empty()) return;
  const bool separates = n_leading_space(text) == text.size();
  switch (place_) {
    case Place::kThinking:
      if (rules_.reasoning != ReasoningFormat::kDeepseek) give(ReplyDelta::Kind::kContent, text);
      if (!has_text_) text.remove_prefix(n_leading_space(text));
      if (rules_.reasoning != ReasoningFormat::kNone) give(ReplyDelta::Kind::kReasoning, text);
      if (!separates && !std::exchange(has_text_, true)) find_markers();
      return;
    case Place::kAnswer:
      if (rules_.reasoning == ReasoningFormat::kDeepseek) text.remove_prefix(n_leading_space(text));
      [[fallthrough]];
    default: give(ReplyDelta::Kind::kContent, text);
  }
  if (separates || place_ == Place::kContent) return;
  place_ = Place::kContent;
  find_markers();
}

void ReplyParser::give(ReplyDelta::Kind kind, std::string_view text) {
  if (text.empty()) return;
  // Thinking and content are two texts: their order among each other means nothing.
  const auto is_text = [](ReplyDelta::Kind k) {
    return k == ReplyDelta::Kind::kReasoning || k == ReplyDelta::Kind::kContent;
  };
  for (std::size_t i = out_.size(); i > 0; --i) {
    if (out_[i - 1].kind == kind) {
      out_[i - 1].text += text;
      return;
    }
    if (!is_text(kind) || !is_text(out_[i - 1].kind)) break;
  }
  out_.push_back({.kind = kind, .text = std::string(text)});
}

std::string ReplyParser::id_of(const std::string& from_model) {
  return CallIds::is_id(from_model) && ids_.reserve(from_model) ? from_model : ids_.next();
}

void ReplyParser::give_calls() {
  for (CallEvent& event : events_.events) {
    switch (event.kind) {
      case CallEvent::Kind::kBegin:
        out_.push_back({.kind = ReplyDelta::Kind::kCallBegin,
                        .text = std::move(event.text),
                        .call = n_calls_++,
                        .id = id_of(event.id)});
        break;
      case CallEvent::Kind::kArguments:
        give(ReplyDelta::Kind::kCallArguments, event.text);
        out_.back().call = n_calls_ - 1;
        break;
      case CallEvent::Kind::kEnd: out_.push_back({.kind = ReplyDelta::Kind::kCallEnd, .call = n_calls_ - 1}); break;
    }
    place_ = Place::kBehindCall;  // a call ends thinking
  }
  events_.events.clear();
}

void add_delta(ParsedReply& reply, const ReplyDelta& delta) {
  switch (delta.kind) {
    case ReplyDelta::Kind::kReasoning: reply.reasoning += delta.text; return;
    case ReplyDelta::Kind::kContent: reply.content += delta.text; return;
    case ReplyDelta::Kind::kCallBegin: reply.calls.push_back({.id = delta.id, .name = delta.text}); return;
    case ReplyDelta::Kind::kCallArguments: reply.calls.at(delta.call).arguments += delta.text; return;
    case ReplyDelta::Kind::kCallEnd: reply.calls.at(delta.call).complete = true;
  }
}

namespace {

ParsedReply parse_pieces(ReplyRules rules, std::string_view text, std::size_t n_bytes) {
  ReplyParser parser(std::move(rules));
  ParsedReply reply;
  for (std::size_t at = 0; at < text.size(); at += n_bytes) {
    for (const ReplyDelta& delta : parser.push(text.substr(at, n_bytes))) add_delta(reply, delta);
  }
  for (const ReplyDelta& delta : parser.finish()) add_delta(reply, delta);
  return reply;
}

}  // namespace

ParsedReply parse_reply(ReplyRules rules, std::string_view text) {
  return parse_pieces(std::move(rules), text, std::max<std::size_t>(1, text.size()));
}

ParsedReply parse_reply_by_bytes(ReplyRules rules, std::string_view text) {
  return parse_pieces(std::move(rules), text, 1);
}

}  // namespace ebb
