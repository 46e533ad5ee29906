// Format fields: the form in which a request wants the answer's text: response_format, json_schema, grammar.
//
// Thread rule: a function of its arguments.
#pragma once

#include <string>
#include <vector>

#include "json/json_fields.h"

namespace ebb {

struct FormatFields {
  // Null: no JSON is asked for.
  Json schema = nullptr;
  // GBNF; empty: none.
  std::string grammar = {};
};

// At most one of them; kInvalidArgument names the field, also for a schema that is strict and asks for what is not enforced.
Result<FormatFields> read_format_fields(const Json& body);

// What a schema that is not strict asks for and is not enforced (JsonGrammar::unsupported), as warnings.
void add_warnings(const std::vector<std::string>& unsupported, std::vector<std::string>& warnings);

}  // namespace ebb
