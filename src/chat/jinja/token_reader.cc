#include "chat/jinja/token_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace ebb::jinja {
namespace {

// Parentheses, brackets and the like inside each other; a dozen stack frames each.
constexpr int kMaxNesting = 100;

std::string describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kText: return "text";
    case Token::Kind::kOutputBegin: return "'{{'";
    case Token::Kind::kOutputEnd: return "'}}'";
    case Token::Kind::kBlockBegin: return "'{%'";
    case Token::Kind::kBlockEnd: return "'%}'";
    case Token::Kind::kString: return "a string";
    case Token::Kind::kEnd: return "the end of the template";
    default: return fmt::format("'{:.40}'", token.text);
  }
}

}  // namespace

const Token& TokenReader::peek(std::size_t ahead) const {
  return failed() ? tokens_.back() : tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

Token TokenReader::take() {
  Token token = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenReader::is_name(std::string_view name, std::size_t ahead) const {
  return peek(ahead).kind == Token::Kind::kName && peek(ahead).text == name;
}

bool TokenReader::is_operator(std::string_view op, std::size_t ahead) const {
  return peek(ahead).kind == Token::Kind::kOperator && peek(ahead).text == op;
}

bool TokenReader::skip_name(std::string_view name) {
  const bool found = is_name(name);
  if (found) (void)take();
  return found;
}

bool TokenReader::skip_operator(std::string_view op) {
  const bool found = is_operator(op);
  if (found) (void)take();
  return found;
}

void TokenReader::expect_operator(std::string_view op) {
  if (!skip_operator(op)) fail(fmt::format("'{}'", op));
}

std::string TokenReader::expect_name(std::string_view what) {
  if (peek().kind == Token::Kind::kName) return take().text;
  fail(what);
  return {};
}

void TokenReader::expect_block_end() {
  if (peek().kind == Token::Kind::kBlockEnd) {
    (void)take();
  } else {
    fail("'%}'");
  }
}

void TokenReader::fail(std::string_view expected) {
  if (failed()) return;
  failure_ = error(Code::kInvalidArgument, "chat template, line {}: expected {}, found {}", peek().line, expected,
                   describe(peek()));
}

ExpressionRef TokenReader::make_literal(int line, Value value) {
  auto node = std::make_unique<Expression>(Expression{.kind = Kind::kLiteral, .line = line});
  node->value = std::move(value);
  return node;
}

ExpressionRef TokenReader::make(Kind kind, std::vector<ExpressionRef> parts) {
  auto node = std::make_unique<Expression>(Expression{.kind = kind, .line = peek().line});
  for (const ExpressionRef& part : parts) {
    if (part == nullptr) continue;
    node->depth = std::max(node->depth, part->depth + 1);
    node->line = std::min(node->line, part->line);
  }
  node->parts = std::move(parts);
  if (node->depth > kMaxTreeDepth) fail(fmt::format("an expression of at most {} levels", kMaxTreeDepth));
  return node;
}

ExpressionRef TokenReader::make(Kind kind, ExpressionRef a, ExpressionRef b) {
  std::vector<ExpressionRef> parts;
  parts.push_back(std::move(a));
  if (b != nullptr) parts.push_back(std::move(b));
  return make(kind, std::move(parts));
}

bool TokenReader::at_list_end() const {
  const Token::Kind kind = peek().kind;
  return kind == Token::Kind::kOutputEnd || kind == Token::Kind::kBlockEnd || kind == Token::Kind::kEnd ||
         is_operator(")") || is_operator("=");
}

ExpressionRef TokenReader::expression_list(bool conditions) {
  std::vector<ExpressionRef> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) {
      if (!skip_operator(",")) break;
      is_tuple = true;
    }
    if (at_list_end() || is_name("recursive")) break;
    items.push_back(expression(conditions));
  }
  if (items.empty()) {
    fail("an expression");
    return make_literal(peek().line, {});
  }
  if (!is_tuple) return std::move(items.front());
  return make(Kind::kTuple, std::move(items));
}

ExpressionRef TokenReader::expression(bool conditions) {
  if (++nesting_ > kMaxNesting) fail(fmt::format("at most {} expressions inside each other", kMaxNesting));
  ExpressionRef left = disjunction();
  while (conditions && skip_name("if")) {
    std::vector<ExpressionRef> parts;
    parts.push_back(disjunction());
    parts.push_back(std::move(left));
    parts.push_back(skip_name("else") ? expression() : nullptr);
    left = make(Kind::kIf, std::move(parts));
  }
  --nesting_;
  return left;
}

ExpressionRef TokenReader::disjunction() {
  ExpressionRef left = conjunction();
  while (skip_name("or")) left = make(Kind::kOr, std::move(left), conjunction());
  return left;
}

ExpressionRef TokenReader::conjunction() {
  ExpressionRef left = negation();
  while (skip_name("and")) left = make(Kind::kAnd, std::move(left), negation());
  return left;
}

ExpressionRef TokenReader::negation() {
  std::size_t n = 0;
  while (skip_name("not")) ++n;
  ExpressionRef operand = comparison();
  for (; n > 0 && !failed(); --n) operand = make(Kind::kNot, std::move(operand));
  return operand;
}

ExpressionRef TokenReader::comparison() {
  constexpr std::array<std::pair<std::string_view, Operator>, 6> kComparisons = {{{"==", Operator::kEqual},
                                                                                  {"!=", Operator::kNotEqual},
                                                                                  {"<", Operator::kLess},
                                                                                  {"<=", Operator::kLessEqual},
                                                                                  {">", Operator::kGreater},
                                                                                  {">=", Operator::kGreaterEqual}}};
  std::vector<ExpressionRef> operands;
  std::vector<Operator> operators;
  operands.push_back(sum());
  while (true) {
    const auto* known =
        std::ranges::find_if(kComparisons, [this](const auto& entry) { return is_operator(entry.first); });
    if (known != kComparisons.end()) {
      (void)take();
      operators.push_back(known->second);
    } else if (skip_name("in")) {
      operators.push_back(Operator::kIn);
    } else if (is_name("not") && is_name("in", 1)) {
      (void)take();
      (void)take();
      operators.push_back(Operator::kNotIn);
    } else {
      break;
    }
    operands.push_back(sum());
  }
  if (operators.empty()) return std::move(operands.front());
  ExpressionRef node = make(Kind::kCompare, std::move(operands));
  node->operators = std::move(operators);
  return node;
}

ExpressionRef TokenReader::sum() {
  ExpressionRef left = concatenation();
  while (is_operator("+") || is_operator("-")) {
    const Operator op = take().text == "+" ? Operator::kAdd : Operator::kSubtract;
    left = make(Kind::kBinary, std::move(left), concatenation());
    left->operators = {op};
  }
  return left;
}

ExpressionRef TokenReader::concatenation() {
  std::vector<ExpressionRef> operands;
  operands.push_back(product());
  while (skip_operator("~")) operands.push_back(product());
  return operands.size() == 1 ? std::move(operands.front()) : make(Kind::kConcat, std::move(operands));
}

ExpressionRef TokenReader::product() {
  ExpressionRef left = power();
  while (true) {
    Operator op = Operator::kMultiply;
    if (is_operator("/")) {
      op = Operator::kDivide;
    } else if (is_operator("//")) {
      op = Operator::kFloorDivide;
    } else if (is_operator("%")) {
      op = Operator::kModulo;
    } else if (!is_operator("*")) {
      return left;
    }
    (void)take();
    left = make(Kind::kBinary, std::move(left), power());
    left->operators = {op};
  }
}

ExpressionRef TokenReader::power() {
  ExpressionRef left = unary(true);
  while (skip_operator("**")) {
    left = make(Kind::kBinary, std::move(left), unary(true));
    left->operators = {Operator::kPower};
  }
  return left;
}

ExpressionRef TokenReader::unary(bool with_filters) {
  ExpressionRef node;
  if (is_operator("-") || is_operator("+")) {
    if (++nesting_ > kMaxNesting) fail(fmt::format("at most {} expressions inside each other", kMaxNesting));
    const Kind kind = take().text == "-" ? Kind::kNegative : Kind::kPositive;
    node = make(kind, unary(false));
    --nesting_;
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filters ? filters_and_tests(std::move(node)) : std::move(node);
}

ExpressionRef TokenReader::primary() {
  const Token& token = peek();
  const int line = token.line;
  switch (token.kind) {
    case Token::Kind::kName: {
      const std::string name = take().text;
      if (name == "true" || name == "True") return make_literal(line, true);
      if (name == "false" || name == "False") return make_literal(line, false);
      if (name == "none" || name == "None") return make_literal(line, None{});
      ExpressionRef node = make(Kind::kName);
      node->line = line;
      node->name = name;
      return node;
    }
    case Token::Kind::kString: {
      std::string text;
      while (peek().kind == Token::Kind::kString) text += take().text;
      return make_literal(line, Value::text(std::move(text)));
    }
    case Token::Kind::kInteger:
    case Token::Kind::kFloat: return number();
    default: break;
  }
  if (is_operator("(")) return parenthesis();
  if (is_operator("[")) return list_literal();
  if (is_operator("{")) return dict_literal();
  fail("an expression");
  return make_literal(line, {});
}

ExpressionRef TokenReader::number() {
  const Token token = take();
  const char* end = token.text.data() + token.text.size();
  std::int64_t whole = 0;
  if (token.kind == Token::Kind::kInteger && std::from_chars(token.text.data(), end, whole).ec == std::errc()) {
    return make_literal(token.line, whole);
  }
  if (token.kind == Token::Kind::kInteger) fail("a number below 2**63");
  double real = 0;
  (void)std::from_chars(token.text.data(), end, real);
  return make_literal(token.line, real);
}

ExpressionRef TokenReader::parenthesis() {
  const int line = take().line;
  if (skip_operator(")")) {
    ExpressionRef empty = make(Kind::kTuple);
    empty->line = line;
    return empty;
  }
  ExpressionRef node = expression_list();
  expect_operator(")");
  return node;
}

ExpressionRef TokenReader::list_literal() {
  (void)take();
  std::vector<ExpressionRef> items;
  while (!is_operator("]") && !failed()) {
    if (!items.empty()) {
      expect_operator(",");
      if (is_operator("]")) break;
    }
    items.push_back(expression());
  }
  expect_operator("]");
  return make(Kind::kList, std::move(items));
}

ExpressionRef TokenReader::dict_literal() {
  (void)take();
  std::vector<ExpressionRef> parts;
  while (!is_operator("}") && !failed()) {
    if (!parts.empty()) {
      expect_operator(",");
      if (is_operator("}")) break;
    }
    parts.push_back(expression());
    expect_operator(":");
    parts.push_back(expression());
  }
  expect_operator("}");
  return make(Kind::kDict, std::move(parts));
}

}  // namespace ebb::jinja
