// Interpreter: walks a template's tree and writes what it says.
//
// Scopes are Frames, linked by where they stand in the source: a loop's body, a macro, a with or set block each get one,
// and what is set inside is gone behind it. Failures latch in the run (chat/jinja/run.h).
// Thread rule: one rendering, one thread; the tree may be shared.
#pragma once

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chat/jinja/callable.h"
#include "chat/jinja/loop.h"
#include "chat/jinja/run.h"
#include "chat/jinja/syntax.h"

namespace ebb::jinja {

// The variables of one scope. Names are views into the tree, or into what outlives the run.
class Frame final : public Object {
 public:
  explicit Frame(std::shared_ptr<Frame> outer) : outer_(std::move(outer)) {}
  ~Frame() override { let_go(); }

  void set(std::string_view name, Value value);
  // Here or further out; null when there is none. Says how many frames it looked into.
  [[nodiscard]] const Value* find(std::string_view name, std::size_t& n_frames) const;

 private:
  void let_go() override;
  // How many variables there are when there is none of this name.
  [[nodiscard]] std::size_t find_here(std::string_view name) const;

  std::shared_ptr<Frame> outer_;
  std::vector<std::pair<std::string_view, Value>> values_;
  // Where each stands; filled once a search through values_ would be slow.
  std::unordered_map<std::string_view, std::size_t> index_;
};
using FrameRef = std::shared_ptr<Frame>;

// Frames that a name is looked for in for one step.
constexpr std::size_t kFramesAStep = 16;

class Interpreter {
 public:
  // The tree and the names in `variables` must outlive it.
  Interpreter(Run& run, FrameRef variables) : run_(run), frame_(std::move(variables)) {}

  // The whole text; meaningless when the run failed.
  MarkedText render(const Block& block);

  // What a macro says when it is called.
  Value call_macro(const Statement& macro, const FrameRef& closure, const Arguments& arguments);

 private:
  enum class Flow : std::uint8_t { kOn, kBreak, kContinue };
  // A loop that is running, for loop(items) inside recursive ones.
  struct Running {
    LoopRef loop;
    const Statement* statement;
    FrameRef outer;
    int depth;
  };

  Flow execute(const Block& block);
  Flow execute(const Statement& node);
  Flow execute_if(const Statement& node);
  Flow execute_for(const Statement& node);
  void run_loop(const Statement& node, const Value& items, int depth);
  void execute_set(const Statement& node);
  void execute_set_block(const Statement& node);
  void execute_call(const Statement& node);
  void execute_with(const Statement& node);
  Flow execute_inside(const Block& block);
  void write(const Value& value);
  void assign(const Target& target, const Value& value);
  // What the block says, in a scope of its own.
  MarkedText capture(const Block& block);

  Value evaluate(const Expression& node);
  Value evaluate_name(const Expression& node);
  Value evaluate_slice(const Expression& node);
  Value evaluate_call(const Expression& node, const Value* caller = nullptr);
  Value evaluate_filter(const Expression& node);
  Value evaluate_test(const Expression& node);
  Value evaluate_compare(const Expression& node);
  Value evaluate_concat(const Expression& node);
  Value evaluate_dict(const Expression& node);
  Value evaluate_choice(const Expression& node);
  Value call_loop(const LoopRef& loop, const Arguments& arguments);
  std::vector<Value> evaluate_all(const std::vector<ExpressionRef>& nodes);
  // The node's parts behind the first, which is what is called.
  Arguments evaluate_arguments(const Expression& node);

  Run& run_;
  FrameRef frame_;
  MarkedText* out_ = nullptr;
  Value block_input_;  // what a filter block's filters work on
  std::vector<Running> running_;
};

}  // namespace ebb::jinja
