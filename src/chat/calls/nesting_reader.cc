#include "chat/calls/nesting_reader.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/split_text.h"

namespace ebb {
namespace {

// Calls in values of calls in values. Each costs every byte once more.
constexpr int kMaxNested = 3;
// Openers in the values of one text that may turn out to open nothing. Each may have its text read once more.
constexpr int kMaxRefused = 32;

}  // namespace

NestingReader::NestingReader(const NestingForm& form, std::size_t opener, int depth)
    : form_(form), depth_(depth), looks_(depth < kMaxNested) {
  reader_.emplace(depth == 0 ? form.all : form.one, form.tools, form.openers[opener], opener > 0);
}

CallReader::Step NestingReader::take(char c, CallEvents& events) {
  n_again_ = 0;
  if (trial_) trial_->text += c;
  todo_.push_back(c);
  Step step = Step::kHeld;
  while (!todo_.empty()) {
    const char next = todo_.front();
    todo_.pop_front();
    step = nested_ ? take_nested(next, events) : take_value(next, events);
    if (trial_ || todo_.empty()) continue;
    n_again_ = todo_.size();
    todo_.clear();
  }
  return step;
}

CallReader::Step NestingReader::take_value(char c, CallEvents& events) {
  const bool held = trial_.has_value();
  const Step step = reader_->take(c, held ? trial_->events : events);
  if (step == Step::kDone || step == Step::kRefused || !reader_->in_value()) {
    tail_.clear();
    commit(events);
    return step;
  }
  if (held && trial_->text.size() > kMaxTrialBytes) {
    commit(events);
    return Step::kTaken;
  }
  watch_for_opener(c);
  return held ? Step::kHeld : step;
}

void NestingReader::watch_for_opener(char c) {
  if (!looks_) return;
  tail_ += c;
  for (std::size_t i = 0; i < form_.openers.size(); ++i) {
    if (!tail_.ends_with(form_.openers[i]) || !reader_->ends_by_tags()) continue;
    tail_.clear();
    if (!trial_) trial_.emplace(*reader_);
    nested_ = std::make_unique<NestingReader>(form_, i, depth_ + 1);
    return;
  }
  constexpr std::size_t kEnough = 256;
  if (tail_.size() > 2 * kEnough) tail_.erase(0, kEnough);
}

CallReader::Step NestingReader::take_nested(char c, CallEvents& events) {
  nested_text_ += c;
  CallEvents unused;
  const Step step = nested_->take(c, unused);
  const auto again = nested_text_.end() - static_cast<std::ptrdiff_t>(nested_->n_again());
  todo_.insert(todo_.begin(), again, nested_text_.end());
  nested_text_.erase(again, nested_text_.end());
  if (step == Step::kDone) {
    nested_.reset();
    trial_->holds_call = true;
    reader_->add_to_value(std::exchange(nested_text_, {}), trial_->events);
  } else if (step == Step::kRefused) {
    nested_.reset();
    todo_.insert(todo_.begin(), nested_text_.begin(), nested_text_.end());
    nested_text_.clear();
    looks_ = ++n_refused_ < kMaxRefused;
    if (!trial_->holds_call) {
      commit(events);
      return Step::kTaken;
    }
  } else if (trial_->text.size() > kMaxTrialBytes) {
    give_up();
    return Step::kTaken;
  }
  return Step::kHeld;
}

// What was tried holds.
void NestingReader::commit(CallEvents& events) {
  if (!trial_) return;
  std::ranges::move(trial_->events.events, std::back_inserter(events.events));
  trial_.reset();
}

// Nothing was opened: what is held is read again without.
void NestingReader::give_up() {
  n_again_ = trial_->text.size();
  looks_ = false;
  nested_.reset();
  nested_text_.clear();
  todo_.clear();
  reader_.emplace(trial_->before);
  trial_.reset();
}

// Whether the held text, read without calls in values, is calls to its end.
bool NestingReader::reads_whole_without() const {
  FormReader reader(trial_->before);
  const std::string_view text = trial_->text;
  CallEvents unused;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const Step step = reader.take(text[i], unused);
    unused.events.clear();
    if (step != Step::kDone && step != Step::kRefused) continue;
    const std::string_view rest = trimmed(text.substr(step == Step::kDone ? i + 1 : i));
    return rest.empty() || std::ranges::any_of(form_.openers, [&](const auto& mark) { return rest.starts_with(mark); });
  }
  return reader.finish(unused);
}

bool NestingReader::finish(CallEvents& events) {
  n_again_ = 0;
  if (!trial_) return reader_->finish(events);
  if (reads_whole_without()) {
    give_up();
    return false;
  }
  // The reply broke off in the value.
  reader_->add_to_value(std::exchange(nested_text_, {}), trial_->events);
  commit(events);
  (void)reader_->finish(events);
  return true;
}

}  // namespace ebb
