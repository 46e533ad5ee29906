// The interpreter's expressions.
#include <utility>

#include "chat/jinja/filters.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/print.h"

namespace ebb::jinja {

Value Interpreter::evaluate(const Expression& node) {
  using Kind = Expression::Kind;
  const Deeper deeper(run_);
  run_.line = node.line;
  if (!run_.pay(1)) return {};
  switch (node.kind) {
    case Kind::kLiteral: return node.value;
    case Kind::kName: return evaluate_name(node);
    case Kind::kList: return run_.list(evaluate_all(node.parts));
    case Kind::kTuple: return run_.list(evaluate_all(node.parts), ListKind::kTuple);
    case Kind::kDict: return evaluate_dict(node);
    case Kind::kAttribute: {
      const Value object = evaluate(*node.parts[0]);
      return run_.failed() ? Value() : attribute(run_, object, node.name);
    }
    case Kind::kItem: {
      const Value object = evaluate(*node.parts[0]);
      const Value index = evaluate(*node.parts[1]);
      return run_.failed() ? Value() : item(run_, object, index);
    }
    case Kind::kSlice: return evaluate_slice(node);
    case Kind::kCall: return evaluate_call(node);
    case Kind::kFilter: return evaluate_filter(node);
    case Kind::kTest: return evaluate_test(node);
    case Kind::kNot: return !evaluate(*node.parts[0]).truthy();
    case Kind::kNegative: {
      const Value operand = evaluate(*node.parts[0]);
      return run_.failed() ? Value() : negative(run_, operand);
    }
    case Kind::kPositive: {
      const Value operand = evaluate(*node.parts[0]);
      if (operand.is_number() || run_.failed()) return operand;
      return run_.fail("+ does not work on {}", operand.type_name());
    }
    case Kind::kAnd:
    case Kind::kOr:
    case Kind::kIf: return evaluate_choice(node);
    case Kind::kCompare: return evaluate_compare(node);
    case Kind::kBinary: {
      const Value left = evaluate(*node.parts[0]);
      const Value right = evaluate(*node.parts[1]);
      run_.line = node.line;
      return run_.failed() ? Value() : binary(run_, node.operators[0], left, right);
    }
    case Kind::kConcat: return evaluate_concat(node);
  }
  return {};
}

Value Interpreter::evaluate_name(const Expression& node) {
  std::size_t n_frames = 0;
  const Value* value = frame_->find(node.name, n_frames);
  if (!run_.pay(n_frames / kFramesAStep)) return {};
  if (value != nullptr) return *value;
  if (const NativeFunction function = find_function(node.name)) {
    return CallableRef(run_.heap.make<Native>(function_name(node.name), function));
  }
  return undefined(fmt::format("'{:.60}' is undefined", node.name));
}

std::vector<Value> Interpreter::evaluate_all(const std::vector<ExpressionRef>& nodes) {
  std::vector<Value> values;
  values.reserve(nodes.size());
  for (const ExpressionRef& node : nodes) {
    values.push_back(evaluate(*node));
    if (run_.failed()) break;
  }
  return values;
}

Value Interpreter::evaluate_dict(const Expression& node) {
  DictRef dict = run_.dict();
  for (std::size_t i = 0; i + 1 < node.parts.size(); i += 2) {
    const Value key = evaluate(*node.parts[i]);
    Value value = evaluate(*node.parts[i + 1]);
    if (run_.failed() || !run_.pay_bytes(sizeof(Dict::Entry))) return {};
    if (!Dict::can_be_key(key)) return run_.fail("a {} cannot be a dict's key", key.type_name());
    run_.set(*dict, key, std::move(value));
  }
  return dict;
}

Value Interpreter::evaluate_choice(const Expression& node) {
  Value first = evaluate(*node.parts[0]);
  if (run_.failed()) return {};
  if (node.kind == Expression::Kind::kAnd) return first.truthy() ? evaluate(*node.parts[1]) : first;
  if (node.kind == Expression::Kind::kOr) return first.truthy() ? first : evaluate(*node.parts[1]);
  if (first.truthy()) return evaluate(*node.parts[1]);
  if (node.parts[2] != nullptr) return evaluate(*node.parts[2]);
  return undefined("an if without else gave no value");
}

Value Interpreter::evaluate_slice(const Expression& node) {
  const Value object = evaluate(*node.parts[0]);
  SliceBounds bounds;
  if (node.parts[1] != nullptr) bounds.begin = evaluate(*node.parts[1]);
  if (node.parts[2] != nullptr) bounds.end = evaluate(*node.parts[2]);
  if (node.parts[3] != nullptr) bounds.step = evaluate(*node.parts[3]);
  return run_.failed() ? Value() : slice(run_, object, bounds);
}

Arguments Interpreter::evaluate_arguments(const Expression& node) {
  Arguments arguments;
  const std::size_t n_positional = node.parts.size() - node.names.size();
  for (std::size_t i = 1; i < node.parts.size() && !run_.failed(); ++i) {
    Value value = evaluate(*node.parts[i]);
    if (i < n_positional) {
      arguments.positional.push_back(std::move(value));
    } else {
      arguments.named.emplace_back(node.names[i - n_positional], std::move(value));
    }
  }
  return arguments;
}

Value Interpreter::evaluate_call(const Expression& node, const Value* caller) {
  const Value callee = evaluate(*node.parts[0]);
  Arguments arguments = evaluate_arguments(node);
  run_.line = node.line;
  if (run_.failed()) return {};
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  if (const auto* callable = callee.find<CallableRef>()) return (*callable)->call(run_, arguments);
  if (const auto* loop = callee.find<LoopRef>()) return call_loop(*loop, arguments);
  if (callee.is_undefined()) return fail_undefined(run_, callee);
  return run_.fail("a {} cannot be called", callee.type_name());
}

Value Interpreter::evaluate_filter(const Expression& node) {
  const Value input = node.parts[0] == nullptr ? block_input_ : evaluate(*node.parts[0]);
  const Arguments arguments = evaluate_arguments(node);
  run_.line = node.line;
  return run_.failed() ? Value() : apply_filter(run_, node.name, input, arguments);
}

Value Interpreter::evaluate_test(const Expression& node) {
  const Value input = evaluate(*node.parts[0]);
  const Arguments arguments = evaluate_arguments(node);
  run_.line = node.line;
  return run_.failed() ? Value() : Value(apply_test(run_, node.name, input, arguments));
}

Value Interpreter::evaluate_compare(const Expression& node) {
  Value left = evaluate(*node.parts[0]);
  for (std::size_t i = 0; i < node.operators.size(); ++i) {
    Value right = evaluate(*node.parts[i + 1]);
    if (run_.failed() || !run_.pay(1)) return {};
    run_.line = node.line;
    if (!compare(run_, node.operators[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluate_concat(const Expression& node) {
  MarkedText text;
  for (const ExpressionRef& part : node.parts) {
    append_text(run_, evaluate(*part), text);
    if (run_.failed()) return {};
    if (text.size() > run_.limits.max_output_bytes)
      return run_.fail("~ makes more than {} bytes", run_.limits.max_output_bytes);
  }
  return run_.text(std::move(text));
}

}  // namespace ebb::jinja
