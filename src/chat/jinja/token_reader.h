// TokenReader: a template's tokens one after another, and the expressions among them.
//
// Failures latch: after the first, every token is the end, so that whoever reads comes to a stop.
// Thread rule: one thread.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "chat/jinja/lexer.h"
#include "chat/jinja/syntax.h"

namespace ebb::jinja {

class TokenReader {
 public:
  explicit TokenReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  [[nodiscard]] const Token& peek(std::size_t ahead = 0) const;
  Token take();
  [[nodiscard]] bool is_name(std::string_view name, std::size_t ahead = 0) const;
  [[nodiscard]] bool is_operator(std::string_view op, std::size_t ahead = 0) const;
  bool skip_name(std::string_view name);
  bool skip_operator(std::string_view op);
  void expect_operator(std::string_view op);
  // Any name; empty, and failed, when there is none.
  std::string expect_name(std::string_view what);
  void expect_block_end();

  void fail(std::string_view expected);
  [[nodiscard]] bool failed() const { return !failure_.ok(); }
  [[nodiscard]] const Status& failure() const { return failure_; }

  // What {{ }}, set and if take: an expression, or a tuple without parentheses. Without `conditions` an if that follows
  // belongs to someone else.
  ExpressionRef expression_list(bool conditions = true);
  ExpressionRef expression(bool conditions = true);
  // |f|g: filters on `input`, which a filter block has none of. Null when no filter follows.
  ExpressionRef filters(ExpressionRef input, bool first_without_pipe = false);

 private:
  using Kind = Expression::Kind;
  using Operator = Expression::Operator;

  ExpressionRef make(Kind kind, std::vector<ExpressionRef> parts = {});
  ExpressionRef make(Kind kind, ExpressionRef a, ExpressionRef b = nullptr);
  static ExpressionRef make_literal(int line, Value value);
  [[nodiscard]] bool at_list_end() const;

  ExpressionRef disjunction();
  ExpressionRef conjunction();
  ExpressionRef negation();
  ExpressionRef comparison();
  ExpressionRef sum();
  ExpressionRef concatenation();
  ExpressionRef product();
  ExpressionRef power();
  ExpressionRef unary(bool with_filters);
  ExpressionRef primary();
  ExpressionRef number();
  ExpressionRef parenthesis();
  ExpressionRef list_literal();
  ExpressionRef dict_literal();
  ExpressionRef postfix(ExpressionRef object);
  ExpressionRef subscript(ExpressionRef object);
  ExpressionRef filters_and_tests(ExpressionRef input);
  ExpressionRef test(ExpressionRef input);
  void arguments(Expression& call);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  Status failure_;
};

}  // namespace ebb::jinja
