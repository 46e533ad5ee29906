// What may stand behind an expression: attributes, subscripts, calls, filters and tests.
#include <algorithm>
#include <charconv>

#include "chat/jinja/token_reader.h"

namespace ebb::jinja {

ExpressionRef TokenReader::postfix(ExpressionRef object) {
  while (!failed()) {
    if (skip_operator(".")) {
      const Token name = take();
      if (name.kind == Token::Kind::kInteger) {
        std::int64_t index = 0;
        (void)std::from_chars(name.text.data(), name.text.data() + name.text.size(), index);
        object = make(Kind::kItem, std::move(object), make_literal(name.line, index));
        continue;
      }
      if (name.kind != Token::Kind::kName) fail("a name behind '.'");
      object = make(Kind::kAttribute, std::move(object));
      object->name = name.text;
    } else if (is_operator("[")) {
      object = subscript(std::move(object));
    } else if (is_operator("(")) {
      object = make(Kind::kCall, std::move(object));
      arguments(*object);
    } else {
      break;
    }
  }
  return object;
}

ExpressionRef TokenReader::subscript(ExpressionRef object) {
  (void)take();
  const auto at_part_end = [this] { return is_operator(":") || is_operator("]"); };
  ExpressionRef first = at_part_end() ? nullptr : expression();
  if (first != nullptr && skip_operator("]")) return make(Kind::kItem, std::move(object), std::move(first));
  std::vector<ExpressionRef> parts;
  parts.push_back(std::move(object));
  parts.push_back(std::move(first));
  expect_operator(":");
  parts.push_back(at_part_end() ? nullptr : expression());
  parts.push_back(skip_operator(":") && !at_part_end() ? expression() : nullptr);
  expect_operator("]");
  return make(Kind::kSlice, std::move(parts));
}

void TokenReader::arguments(Expression& call) {
  expect_operator("(");
  bool any = false;
  while (!is_operator(")") && !failed()) {
    if (any) {
      expect_operator(",");
      if (is_operator(")")) break;
    }
    any = true;
    if (peek().kind == Token::Kind::kName && is_operator("=", 1)) {
      call.names.push_back(take().text);
      (void)take();
    } else if (!call.names.empty()) {
      fail("an argument with a name, as the ones before it");
    }
    call.parts.push_back(expression());
    call.depth = std::max(call.depth, call.parts.back()->depth + 1);
  }
  expect_operator(")");
  if (call.depth > kMaxTreeDepth) fail(fmt::format("an expression of at most {} levels", kMaxTreeDepth));
}

ExpressionRef TokenReader::filters(ExpressionRef input, bool first_without_pipe) {
  bool first = first_without_pipe;
  while (!failed() && (first || is_operator("|"))) {
    if (!first) (void)take();
    first = false;
    const int line = peek().line;
    std::string name = expect_name("the name of a filter");
    while (skip_operator(".")) name += "." + expect_name("the name of a filter");
    ExpressionRef node = make(Kind::kFilter, std::move(input));
    node->line = line;
    node->name = std::move(name);
    if (is_operator("(")) arguments(*node);
    input = std::move(node);
  }
  return input;
}

ExpressionRef TokenReader::filters_and_tests(ExpressionRef input) {
  while (!failed()) {
    if (is_operator("|")) {
      input = filters(std::move(input));
    } else if (is_name("is")) {
      input = test(std::move(input));
    } else if (is_operator("(")) {
      input = make(Kind::kCall, std::move(input));
      arguments(*input);
    } else {
      break;
    }
  }
  return input;
}

ExpressionRef TokenReader::test(ExpressionRef input) {
  const int line = take().line;
  const bool negated = skip_name("not");
  std::string name = expect_name("the name of a test");
  ExpressionRef node = make(Kind::kTest, std::move(input));
  node->line = line;
  node->name = std::move(name);
  const Token::Kind kind = peek().kind;
  const bool argument_follows = kind == Token::Kind::kString || kind == Token::Kind::kInteger ||
                                kind == Token::Kind::kFloat || is_operator("[") || is_operator("{") ||
                                (kind == Token::Kind::kName && !is_name("else") && !is_name("or") && !is_name("and"));
  if (is_operator("(")) {
    arguments(*node);
  } else if (argument_follows && !is_name("is") && !is_name("if") && !is_name("in") && !is_name("not")) {
    node->parts.push_back(postfix(primary()));
    node->depth = std::max(node->depth, node->parts.back()->depth + 1);
  }
  return negated ? make(Kind::kNot, std::move(node)) : std::move(node);
}

}  // namespace ebb::jinja
