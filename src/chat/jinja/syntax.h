// The syntax tree of a template: what the parser makes and the interpreter walks.
//
// Every node knows its line. Trees are no deeper than kMaxTreeDepth, so that walking them cannot exhaust the stack.
// Thread rule: immutable once parsed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chat/jinja/value.h"

namespace ebb::jinja {

constexpr int kMaxTreeDepth = 250;

struct Expression;
using ExpressionRef = std::unique_ptr<Expression>;

struct Expression {
  // What `parts` holds is behind each kind; a part may be null only where it says so.
  enum class Kind : std::uint8_t {
    kLiteral,    // value
    kName,       // name
    kList,       // items
    kTuple,      // items
    kDict,       // key, value, key, value ...
    kAttribute,  // object; name
    kItem,       // object, index
    kSlice,      // object, begin, end, step: each but the object may be null
    kCall,       // callee, arguments; names
    kFilter,     // input (null in a filter block), arguments; name, names
    kTest,       // input, arguments; name, names
    kNot,        // operand
    kNegative,   // operand
    kPositive,   // operand
    kAnd,        // left, right
    kOr,         // left, right
    kCompare,    // operands; operators (one less)
    kBinary,     // left, right; operators[0]
    kConcat,     // operands of ~
    kIf,         // condition, then, else (may be null)
  };
  enum class Operator : std::uint8_t {
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kFloorDivide,
    kModulo,
    kPower,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kIn,
    kNotIn,
  };

  Kind kind;
  int line;
  int depth = 1;
  std::string name = {};
  Value value = {};
  std::vector<ExpressionRef> parts = {};
  std::vector<Operator> operators = {};
  // Names of the last parts: of a call's arguments that were given by name.
  std::vector<std::string> names = {};
};

struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

// What set, for and with assign to: one name, or several that share out the items, or an attribute of a namespace.
struct Target {
  std::string name = {};
  std::string attribute = {};
  std::vector<Target> items = {};
  bool is_tuple = false;
};

struct Statement {
  enum class Kind : std::uint8_t {
    kText,      // text
    kOutput,    // expressions[0]
    kIf,        // expressions: conditions; blocks: one for each and maybe one more
    kFor,       // target, expressions: items, condition (may be null); blocks: body, else; recursive
    kSet,       // target, expressions[0]
    kSetBlock,  // target, expressions[0]: filters or null; blocks[0]
    kMacro,     // name, parameters, expressions: their defaults (null: none); blocks[0]
    kFilter,    // expressions[0]: filters; blocks[0]
    kWith,      // targets in parameters, expressions; blocks[0]
    kScope,     // blocks[0]: generation
    kCall,      // expressions[0]: the call; parameters of caller(), defaults behind it; blocks[0]
    kBreak,
    kContinue,
  };

  Kind kind;
  int line;
  std::string name = {};
  TextRef text = nullptr;
  Target target = {};
  std::vector<std::string> parameters = {};
  std::vector<ExpressionRef> expressions = {};
  std::vector<Block> blocks = {};
  bool recursive = false;
};

}  // namespace ebb::jinja
