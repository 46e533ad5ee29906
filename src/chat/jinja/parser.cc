#include "chat/jinja/parser.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "chat/jinja/token_reader.h"
#include "text/utf8_stream.h"

namespace ebb::jinja {
namespace {

// Statements inside each other.
constexpr int kMaxNesting = 100;

using Kind = Statement::Kind;
using StatementRef = std::unique_ptr<Statement>;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : reader_(std::move(tokens)) {}

  Result<Block> parse() {
    Block block = read_block({});
    if (reader_.failed()) return reader_.failure();
    return block;
  }

 private:
  // Up to one of `ends`, whose name it takes; the rest of that tag is the caller's. Without ends: to the template's end.
  Block read_block(std::initializer_list<std::string_view> ends);
  StatementRef read_statement();
  StatementRef read_if(StatementRef node);
  StatementRef read_for(StatementRef node);
  StatementRef read_set(StatementRef node);
  StatementRef read_macro(StatementRef node);
  StatementRef read_call(StatementRef node);
  StatementRef read_filter(StatementRef node);
  StatementRef read_with(StatementRef node);
  Target read_target(bool with_attribute, std::string_view end);
  Target read_one_target(bool with_attribute);
  void read_parameters(Statement& node);
  // The body and the end tag of a statement.
  void read_body(Statement& node, std::string_view end);
  void read_body_of_its_own(Statement& node, std::string_view end);
  void read_else(Statement& node, std::string_view end);

  TokenReader reader_;
  std::string end_;  // the name that ended the last block
  int nesting_ = 0;
  int loops_ = 0;
};

Block Parser::read_block(std::initializer_list<std::string_view> ends) {
  Block block;
  if (++nesting_ > kMaxNesting) reader_.fail(fmt::format("at most {} statements inside each other", kMaxNesting));
  while (!reader_.failed()) {
    const Token& token = reader_.peek();
    const int line = token.line;
    if (token.kind == Token::Kind::kText) {
      auto node = std::make_unique<Statement>(Statement{.kind = Kind::kText, .line = line});
      node->text = std::make_shared<const MarkedText>(reader_.take().text);
      block.push_back(std::move(node));
    } else if (token.kind == Token::Kind::kOutputBegin) {
      (void)reader_.take();
      auto node = std::make_unique<Statement>(Statement{.kind = Kind::kOutput, .line = line});
      node->expressions.push_back(reader_.expression_list());
      if (reader_.peek().kind != Token::Kind::kOutputEnd) reader_.fail("'}}'");
      (void)reader_.take();
      block.push_back(std::move(node));
    } else if (token.kind == Token::Kind::kBlockBegin) {
      const Token& name = reader_.peek(1);
      if (name.kind == Token::Kind::kName && std::ranges::find(ends, name.text) != ends.end()) {
        (void)reader_.take();
        end_ = reader_.take().text;
        break;
      }
      (void)reader_.take();
      if (StatementRef node = read_statement()) block.push_back(std::move(node));
    } else {
      if (ends.size() > 0) reader_.fail(fmt::format("{{% {} %}}", *(ends.end() - 1)));
      break;
    }
  }
  --nesting_;
  return block;
}

StatementRef Parser::read_statement() {
  const int line = reader_.peek().line;
  if (reader_.peek().kind != Token::Kind::kName) {
    reader_.fail("the name of a statement");
    return nullptr;
  }
  const std::string name = reader_.peek().text;
  const auto start = [&](Kind kind) {
    (void)reader_.take();
    return std::make_unique<Statement>(Statement{.kind = kind, .line = line});
  };
  if (name == "if") return read_if(start(Kind::kIf));
  if (name == "for") return read_for(start(Kind::kFor));
  if (name == "set") return read_set(start(Kind::kSet));
  if (name == "macro") return read_macro(start(Kind::kMacro));
  if (name == "call") return read_call(start(Kind::kCall));
  if (name == "filter") return read_filter(start(Kind::kFilter));
  if (name == "with") return read_with(start(Kind::kWith));
  if (name == "generation") {
    StatementRef node = start(Kind::kScope);
    reader_.expect_block_end();
    read_body(*node, "endgeneration");
    return node;
  }
  if ((name == "break" || name == "continue") && loops_ > 0) {
    StatementRef node = start(name == "break" ? Kind::kBreak : Kind::kContinue);
    reader_.expect_block_end();
    return node;
  }
  reader_.fail("if, for, set, macro, call, filter, with, generation, or (inside a loop) break or continue");
  return nullptr;
}

void Parser::read_body(Statement& node, std::string_view end) {
  node.blocks.push_back(read_block({end}));
  reader_.expect_block_end();
}

// The body of a macro or a call, which the loops around it do not reach.
void Parser::read_body_of_its_own(Statement& node, std::string_view end) {
  const int loops = std::exchange(loops_, 0);
  read_body(node, end);
  loops_ = loops;
}

// What may follow the last body of an `if` or a `for`, and its end.
void Parser::read_else(Statement& node, std::string_view end) {
  if (end_ == "else") {
    reader_.expect_block_end();
    node.blocks.push_back(read_block({end}));
  }
  reader_.expect_block_end();
}

StatementRef Parser::read_if(StatementRef node) {
  do {
    node->expressions.push_back(reader_.expression_list(false));
    reader_.expect_block_end();
    node->blocks.push_back(read_block({"elif", "else", "endif"}));
  } while (!reader_.failed() && end_ == "elif");
  read_else(*node, "endif");
  return node;
}

StatementRef Parser::read_for(StatementRef node) {
  node->target = read_target(false, "in");
  if (!reader_.skip_name("in")) reader_.fail("'in'");
  node->expressions.push_back(reader_.expression_list(false));
  node->expressions.push_back(reader_.skip_name("if") ? reader_.expression() : nullptr);
  node->recursive = reader_.skip_name("recursive");
  reader_.expect_block_end();
  ++loops_;
  node->blocks.push_back(read_block({"else", "endfor"}));
  --loops_;
  read_else(*node, "endfor");
  return node;
}

Target Parser::read_one_target(bool with_attribute) {
  Target target;
  if (reader_.skip_operator("(")) {
    target = read_target(false, ")");
    reader_.expect_operator(")");
    return target;
  }
  target.name = reader_.expect_name("a name to assign to");
  if (with_attribute && reader_.skip_operator(".")) target.attribute = reader_.expect_name("the namespace's attribute");
  constexpr std::array<std::string_view, 6> kTaken = {"true", "false", "none", "True", "False", "None"};
  if (std::ranges::find(kTaken, target.name) != kTaken.end()) reader_.fail("a name that is no constant");
  return target;
}

Target Parser::read_target(bool with_attribute, std::string_view end) {
  if (++nesting_ > kMaxNesting) reader_.fail(fmt::format("at most {} names inside each other", kMaxNesting));
  Target target = read_one_target(with_attribute);
  if (reader_.is_operator(",")) {
    Target tuple{.is_tuple = true};
    tuple.items.push_back(std::move(target));
    while (reader_.skip_operator(",") && !reader_.is_name(end) && !reader_.is_operator(end)) {
      tuple.items.push_back(read_one_target(with_attribute));
    }
    target = std::move(tuple);
  }
  --nesting_;
  return target;
}

StatementRef Parser::read_set(StatementRef node) {
  node->target = read_target(true, "=");
  if (reader_.skip_operator("=")) {
    node->expressions.push_back(reader_.expression_list());
    reader_.expect_block_end();
    return node;
  }
  node->kind = Kind::kSetBlock;
  node->expressions.push_back(reader_.filters(nullptr));
  reader_.expect_block_end();
  read_body(*node, "endset");
  return node;
}

void Parser::read_parameters(Statement& node) {
  reader_.expect_operator("(");
  while (!reader_.is_operator(")") && !reader_.failed()) {
    if (!node.parameters.empty()) {
      reader_.expect_operator(",");
      if (reader_.is_operator(")")) break;
    }
    node.parameters.push_back(reader_.expect_name("the name of a parameter"));
    const bool has_default = reader_.skip_operator("=");
    if (!has_default && !node.expressions.empty() && node.expressions.back() != nullptr && node.kind == Kind::kMacro) {
      reader_.fail("a default, as the parameters before it have");
    }
    node.expressions.push_back(has_default ? reader_.expression() : nullptr);
  }
  reader_.expect_operator(")");
}

StatementRef Parser::read_macro(StatementRef node) {
  node->name = reader_.expect_name("the name of the macro");
  read_parameters(*node);
  reader_.expect_block_end();
  read_body_of_its_own(*node, "endmacro");
  return node;
}

StatementRef Parser::read_call(StatementRef node) {
  node->name = "caller";
  node->expressions.push_back(nullptr);
  if (reader_.is_operator("(")) read_parameters(*node);
  node->expressions.front() = reader_.expression();
  if (!reader_.failed() && node->expressions.front()->kind != Expression::Kind::kCall) reader_.fail("a call");
  reader_.expect_block_end();
  read_body_of_its_own(*node, "endcall");
  return node;
}

StatementRef Parser::read_filter(StatementRef node) {
  node->expressions.push_back(reader_.filters(nullptr, true));
  reader_.expect_block_end();
  const int loops = std::exchange(loops_, 0);
  read_body(*node, "endfilter");
  loops_ = loops;
  return node;
}

StatementRef Parser::read_with(StatementRef node) {
  while (reader_.peek().kind != Token::Kind::kBlockEnd && !reader_.failed()) {
    if (!node->parameters.empty()) reader_.expect_operator(",");
    node->parameters.push_back(reader_.expect_name("a name to assign to"));
    reader_.expect_operator("=");
    node->expressions.push_back(reader_.expression());
  }
  reader_.expect_block_end();
  read_body(*node, "endwith");
  return node;
}

}  // namespace

Result<Block> parse(std::string_view source) {
  const std::string mended = is_valid_utf8(source) ? std::string() : to_valid_utf8(source);
  EBB_ASSIGN_OR_RETURN(std::vector<Token> tokens, lex(mended.empty() ? source : mended));
  return Parser(std::move(tokens)).parse();
}

}  // namespace ebb::jinja
