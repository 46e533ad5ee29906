#include "chat/jinja/interpreter.h"

#include <algorithm>

#include "chat/jinja/operators.h"
#include "chat/jinja/print.h"

namespace ebb::jinja {
namespace {

// Up to so many variables, walking them is faster than an index.
constexpr std::size_t kMaxUnindexed = 16;

class Macro final : public Callable {
 public:
  Macro(Interpreter& interpreter, const Statement& statement, FrameRef closure)
      : interpreter_(interpreter), statement_(statement), closure_(std::move(closure)) {}

  Value call(Run&, const Arguments& arguments) override {
    return interpreter_.call_macro(statement_, closure_, arguments);
  }
  [[nodiscard]] std::string_view name() const override { return statement_.name; }

 private:
  void let_go() override { closure_.reset(); }

  Interpreter& interpreter_;
  const Statement& statement_;
  FrameRef closure_;
};

// Restores what it was given when it goes.
template <class T>
class Restore {
 public:
  Restore(T& place, T value) : place_(place), before_(std::exchange(place, std::move(value))) {}
  ~Restore() { place_ = std::move(before_); }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  T& place_;
  T before_;
};

}  // namespace

void Frame::set(std::string_view name, Value value) {
  if (const std::size_t known = find_here(name); known < values_.size()) {
    values_[known].second = std::move(value);
    return;
  }
  values_.emplace_back(name, std::move(value));
  const std::size_t n = values_.size();
  if (n <= kMaxUnindexed) return;
  for (std::size_t i = n == kMaxUnindexed + 1 ? 0 : n - 1; i < n; ++i) index_.emplace(values_[i].first, i);
}

std::size_t Frame::find_here(std::string_view name) const {
  if (index_.empty()) {
    const auto known = std::ranges::find(values_, name, &std::pair<std::string_view, Value>::first);
    return static_cast<std::size_t>(known - values_.begin());
  }
  const auto known = index_.find(name);
  return known == index_.end() ? values_.size() : known->second;
}

const Value* Frame::find(std::string_view name, std::size_t& n_frames) const {
  for (const Frame* frame = this; frame != nullptr; frame = frame->outer_.get()) {
    ++n_frames;
    const std::size_t known = frame->find_here(name);
    if (known < frame->values_.size()) return &frame->values_[known].second;
  }
  return nullptr;
}

void Frame::let_go() {
  std::vector<Value> values;
  for (auto& [name, value] : values_) values.push_back(std::move(value));
  values_.clear();
  index_.clear();
  bury(std::move(values));
  outer_.reset();
}

MarkedText Interpreter::render(const Block& block) {
  MarkedText text;
  const Restore<MarkedText*> out(out_, &text);
  (void)execute(block);
  return text;
}

void Interpreter::write(const Value& value) {
  const std::size_t before = out_->n_bytes_held();
  append_text(run_, value, *out_);
  (void)run_.pay_bytes(out_->n_bytes_held() - before);
  if (out_->size() > run_.limits.max_output_bytes) {
    run_.fail("it writes more than {} bytes", run_.limits.max_output_bytes);
  }
}

Interpreter::Flow Interpreter::execute(const Block& block) {
  for (const auto& node : block) {
    const Flow flow = execute(*node);
    if (flow != Flow::kOn || run_.failed()) return flow;
  }
  return Flow::kOn;
}

Interpreter::Flow Interpreter::execute(const Statement& node) {
  const Deeper deeper(run_);
  run_.line = node.line;
  if (!run_.pay(1)) return Flow::kOn;
  switch (node.kind) {
    case Statement::Kind::kText: write(node.text); break;
    case Statement::Kind::kOutput: write(evaluate(*node.expressions[0])); break;
    case Statement::Kind::kIf: return execute_if(node);
    case Statement::Kind::kFor: return execute_for(node);
    case Statement::Kind::kSet: execute_set(node); break;
    case Statement::Kind::kSetBlock: execute_set_block(node); break;
    case Statement::Kind::kMacro:
      frame_->set(node.name, CallableRef(run_.heap.make<Macro>(*this, node, frame_)));
      break;
    case Statement::Kind::kFilter: {
      const Restore<Value> input(block_input_, run_.text(capture(node.blocks[0])));
      write(evaluate(*node.expressions[0]));
      break;
    }
    case Statement::Kind::kWith: execute_with(node); break;
    case Statement::Kind::kScope: return execute_inside(node.blocks[0]);
    case Statement::Kind::kCall: execute_call(node); break;
    case Statement::Kind::kBreak: return Flow::kBreak;
    case Statement::Kind::kContinue: return Flow::kContinue;
  }
  return Flow::kOn;
}

Interpreter::Flow Interpreter::execute_if(const Statement& node) {
  for (std::size_t i = 0; i < node.expressions.size(); ++i) {
    if (evaluate(*node.expressions[i]).truthy() && !run_.failed()) return execute(node.blocks[i]);
    if (run_.failed()) return Flow::kOn;
  }
  return node.blocks.size() > node.expressions.size() ? execute(node.blocks.back()) : Flow::kOn;
}

Interpreter::Flow Interpreter::execute_for(const Statement& node) {
  run_loop(node, evaluate(*node.expressions[0]), 0);
  return Flow::kOn;
}

void Interpreter::run_loop(const Statement& node, const Value& value, int depth) {
  const ListRef items = run_.failed() ? nullptr : items_of(run_, value);
  if (items == nullptr) return;
  const FrameRef outer = frame_;
  std::function<bool(const Value&)> wanted;
  if (node.expressions[1] != nullptr) {
    wanted = [this, &node, outer](const Value& item) {
      const Restore<FrameRef> frame(frame_, run_.heap.make<Frame>(outer));
      assign(node.target, item);
      return !run_.failed() && evaluate(*node.expressions[1]).truthy();
    };
  }
  const LoopRef loop = run_.heap.make<Loop>(items, depth, std::move(wanted));
  running_.push_back({loop, &node, outer, depth});
  bool any = false;
  {
    const Restore<FrameRef> frame(frame_, outer);
    while (!run_.failed() && loop->next()) {
      any = true;
      if (!run_.pay(1)) break;
      frame_ = run_.heap.make<Frame>(outer);
      frame_->set("loop", loop);
      assign(node.target, loop->item());
      if (execute(node.blocks[0]) == Flow::kBreak) break;
    }
  }
  loop->close();
  running_.pop_back();
  if (!any && node.blocks.size() > 1 && !run_.failed()) (void)execute_inside(node.blocks[1]);
}

// loop(items) in a recursive loop: the same loop over other items, as a text.
Value Interpreter::call_loop(const LoopRef& loop, const Arguments& arguments) {
  const auto entry = std::ranges::find(running_, loop, &Running::loop);
  if (entry == running_.end() || !entry->statement->recursive) {
    return run_.fail("loop() works inside a recursive loop only; write {{% for ... recursive %}}");
  }
  if (arguments.positional.size() != 1 || !arguments.named.empty())
    return run_.fail("loop() takes the items to go through");
  const Running running = *entry;
  MarkedText text;
  {
    const Restore<MarkedText*> out(out_, &text);
    const Restore<FrameRef> frame(frame_, running.outer);
    run_loop(*running.statement, arguments.positional.front(), running.depth + 1);
  }
  return run_.text(std::move(text));
}

Interpreter::Flow Interpreter::execute_inside(const Block& block) {
  const Restore<FrameRef> frame(frame_, run_.heap.make<Frame>(frame_));
  return execute(block);
}

MarkedText Interpreter::capture(const Block& block) {
  MarkedText text;
  const Restore<MarkedText*> out(out_, &text);
  (void)execute_inside(block);
  return text;
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (run_.failed()) return;
  if (!target.is_tuple) {
    if (target.attribute.empty()) {
      frame_->set(target.name, value);
      return;
    }
    std::size_t n_frames = 0;
    const Value* space = frame_->find(target.name, n_frames);
    if (!run_.pay(n_frames / kFramesAStep)) return;
    if (space == nullptr || !space->is<NamespaceRef>()) {
      run_.fail("{}.{} cannot be set: only a namespace's attributes can", target.name, target.attribute);
      return;
    }
    Dict& values = *space->get<NamespaceRef>()->values;
    const bool is_paid =
        run_.pay_bytes(sizeof(Dict::Entry)) && run_.pay_scan(values.n_bytes_to_find(target.attribute.size()));
    if (is_paid) values.set(target.attribute, value);
    return;
  }
  const ListRef items = items_of(run_, value);
  if (items == nullptr) return;
  if (items->items.size() != target.items.size()) {
    run_.fail("{} values cannot be shared out to {} names", items->items.size(), target.items.size());
    return;
  }
  if (!run_.pay(target.items.size())) return;
  for (std::size_t i = 0; i < target.items.size(); ++i) assign(target.items[i], items->items[i]);
}

void Interpreter::execute_set(const Statement& node) { assign(node.target, evaluate(*node.expressions[0])); }

void Interpreter::execute_set_block(const Statement& node) {
  Value text = run_.text(capture(node.blocks[0]));
  if (node.expressions[0] != nullptr && !run_.failed()) {
    const Restore<Value> input(block_input_, text);
    text = evaluate(*node.expressions[0]);
  }
  assign(node.target, text);
}

void Interpreter::execute_with(const Statement& node) {
  const std::vector<Value> values = evaluate_all(node.expressions);
  const Restore<FrameRef> frame(frame_, run_.heap.make<Frame>(frame_));
  for (std::size_t i = 0; i < values.size() && !run_.failed(); ++i) frame_->set(node.parameters[i], values[i]);
  if (!run_.failed()) (void)execute(node.blocks[0]);
}

void Interpreter::execute_call(const Statement& node) {
  const Value caller = CallableRef(run_.heap.make<Macro>(*this, node, frame_));
  write(evaluate_call(*node.expressions[0], &caller));
}

Value Interpreter::call_macro(const Statement& macro, const FrameRef& closure, const Arguments& arguments) {
  const Deeper deeper(run_);
  if (run_.failed()) return {};
  const std::size_t n = macro.parameters.size();
  // Those that are given by name are looked for among all.
  if (!run_.pay(n + arguments.named.size() * n / 8)) return {};
  if (arguments.positional.size() > n) {
    return run_.fail("the macro '{}' takes at most {} arguments, not {}", macro.name, n, arguments.positional.size());
  }
  std::vector<const Value*> given(n, nullptr);
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) given[i] = &arguments.positional[i];
  const Value* caller = nullptr;
  for (const auto& [name, value] : arguments.named) {
    const auto at = std::ranges::find(macro.parameters, name);
    if (at == macro.parameters.end() && name == "caller") {
      caller = &value;
    } else if (at == macro.parameters.end()) {
      return run_.fail("the macro '{}' takes no argument '{}'", macro.name, name);
    } else {
      given[static_cast<std::size_t>(at - macro.parameters.begin())] = &value;
    }
  }
  MarkedText text;
  {
    const Restore<FrameRef> frame(frame_, run_.heap.make<Frame>(closure));
    const Restore<MarkedText*> out(out_, &text);
    const std::size_t n_before = macro.kind == Statement::Kind::kCall ? 1 : 0;
    if (caller != nullptr) frame_->set("caller", *caller);
    for (std::size_t i = 0; i < n && !run_.failed(); ++i) {
      const Expression* otherwise = macro.expressions[n_before + i].get();
      if (given[i] != nullptr) {
        frame_->set(macro.parameters[i], *given[i]);
      } else if (otherwise != nullptr) {
        frame_->set(macro.parameters[i], evaluate(*otherwise));
      } else {
        frame_->set(macro.parameters[i],
                    undefined(fmt::format("parameter '{}' was not provided", macro.parameters[i])));
      }
    }
    (void)execute(macro.blocks[0]);
  }
  return run_.text(std::move(text));
}

}  // namespace ebb::jinja
