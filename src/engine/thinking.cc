#include "engine/thinking.h"

#include <algorithm>
#include <utility>

namespace ebb {

Result<Thinking> Thinking::create(const Vocabulary& vocabulary, ThinkingOptions options) {
  std::vector<Token> end;
  if (options.max_tokens >= 0) {
    EBB_ASSIGN_OR_RETURN(end, vocabulary.tokenize(options.close_mark, {.add_bos = false, .parse_special = true}));
    if (end.empty()) {
      return error(Code::kInvalidArgument, "thinking is limited to {} tokens, and this model has no mark that ends it",
                   options.max_tokens);
    }
  }
  return Thinking(vocabulary, std::move(options), std::move(end));
}

Thinking::Thinking(const Vocabulary& vocabulary, ThinkingOptions options, std::vector<Token> end)
    : vocabulary_(&vocabulary), options_(std::move(options)), end_(std::move(end)) {
  if (options_.is_open) place_ = Place::kInside;
  if (options_.close_mark.empty()) place_ = Place::kBehind;
}

std::optional<Token> Thinking::forced() const {
  if (!is_open() || n_ended_ == end_.size()) return std::nullopt;
  const bool is_due = n_ended_ > 0 || (n_tokens_ >= options_.max_tokens && utf8_.n_held() == 0);
  return is_due ? std::optional(end_[n_ended_]) : std::nullopt;
}

Status Thinking::push(Token token) {
  if (place_ == Place::kBehind) return {};
  const bool was_forced = forced() == token;
  EBB_ASSIGN_OR_RETURN(const std::string bytes, vocabulary_->piece(token, SpecialTokens::kShow));
  (void)utf8_.push(bytes);
  text_ += bytes;
  const bool was_inside = is_open();
  if (place_ == Place::kBefore) look_for_beginning();
  n_tokens_ += was_inside || is_open() ? 1 : 0;
  if (was_forced) ++n_ended_;
  if (is_open()) look_for_end();
  return {};
}

void Thinking::look_for_beginning() {
  text_.erase(0, text_.find_first_not_of(" \t\r\n"));
  const std::string_view mark = options_.open_mark;
  if (text_.starts_with(mark)) {
    text_.erase(0, mark.size());
    place_ = Place::kInside;
  } else if (!mark.starts_with(text_)) {
    place_ = Place::kBehind;
  }
}

void Thinking::look_for_end() {
  const auto is_in_text = [&](std::string_view mark) { return text_.find(mark) != std::string::npos; };
  if (is_in_text(options_.close_mark) || std::ranges::any_of(options_.other_ends, is_in_text)) {
    place_ = Place::kBehind;
    return;
  }
  std::size_t longest = options_.close_mark.size();
  for (const std::string& mark : options_.other_ends) longest = std::max(longest, mark.size());
  text_.erase(0, text_.size() - std::min(text_.size(), longest - 1));
}

}  // namespace ebb
