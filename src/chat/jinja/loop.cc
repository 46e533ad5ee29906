#include "chat/jinja/loop.h"

#include "chat/jinja/callable.h"
#include "chat/jinja/run.h"

namespace ebb::jinja {
namespace {

Value call_cycle(Run& run, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) return run.fail("loop.cycle() needs something to choose from");
  const auto n = static_cast<std::int64_t>(arguments.positional.size());
  return arguments.positional[static_cast<std::size_t>(self.get<LoopRef>()->index0() % n)];
}

Value call_changed(Run& run, const Value& self, const Arguments& arguments) {
  return self.get<LoopRef>()->changed(run,
                                      run.heap.make<List>(std::vector<Value>(arguments.positional), ListKind::kTuple));
}

}  // namespace

std::optional<Value> Loop::fetch() {
  while (items_ != nullptr && fetched_ < items_->items.size()) {
    Value item = items_->items[fetched_++];
    if (!wanted_ || wanted_(item)) return item;
  }
  return std::nullopt;
}

const std::optional<Value>& Loop::peek() {
  if (ahead_.empty()) {
    if (std::optional<Value> item = fetch()) ahead_.push_back(std::move(*item));
  }
  peeked_ = ahead_.empty() ? std::nullopt : std::optional<Value>(ahead_.back());
  return peeked_;
}

bool Loop::next() {
  std::optional<Value> item;
  if (ahead_.empty()) {
    item = fetch();
  } else {
    item = std::move(ahead_.back());
    ahead_.pop_back();
  }
  if (!item) return false;
  before_ = std::move(current_);
  current_ = std::move(*item);
  ++index_;
  return true;
}

std::int64_t Loop::count() {
  if (!wanted_ && ahead_.empty() && items_ != nullptr) {
    return index_ + 1 + static_cast<std::int64_t>(items_->items.size() - fetched_);
  }
  std::vector<Value> rest;
  while (std::optional<Value> item = fetch()) rest.push_back(std::move(*item));
  ahead_.insert(ahead_.begin(), rest.rbegin(), rest.rend());
  return index_ + 1 + static_cast<std::int64_t>(ahead_.size());
}

bool Loop::changed(Run& run, const Value& value) {
  if (seen_ && run.equal(*seen_, value)) return false;
  seen_ = value;
  return true;
}

Value Loop::attribute(Run& run, std::string_view name) {
  if (name == "index") return index_ + 1;
  if (name == "index0") return index_;
  if (name == "first") return index_ == 0;
  if (name == "last") return !peek().has_value();
  if (name == "length") return count();
  if (name == "revindex") return count() - index_;
  if (name == "revindex0") return count() - index_ - 1;
  if (name == "depth") return std::int64_t{depth_} + 1;
  if (name == "depth0") return std::int64_t{depth_};
  if (name == "previtem") return index_ == 0 ? Value(Undefined{}) : before_;
  if (name == "nextitem") return peek().value_or(Value(Undefined{}));
  const Value self(std::static_pointer_cast<Loop>(shared_from_this()));
  if (name == "cycle") return CallableRef(run.heap.make<Native>("cycle", call_cycle, self));
  if (name == "changed") return CallableRef(run.heap.make<Native>("changed", call_changed, self));
  return Undefined{};
}

void Loop::let_go() {
  std::vector<Value> values = std::move(ahead_);
  values.push_back(std::move(before_));
  values.push_back(std::move(current_));
  if (peeked_) values.push_back(std::move(*peeked_));
  if (seen_) values.push_back(std::move(*seen_));
  if (items_ != nullptr) values.emplace_back(std::move(items_));
  bury(std::move(values));
}

}  // namespace ebb::jinja
