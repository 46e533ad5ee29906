// Request defaults: what holds for requests that do not say.
//
// They are put into a request as if its client had said them, so that every route reads them where it reads the client's.
// Thread rule: values, and functions of their arguments.
#pragma once

#include <string>

#include "engine/sampler.h"
#include "json/json_fields.h"

namespace ebb {

struct RequestDefaults {
  // Without its grammar and biases.
  SamplingOptions sampling;
  std::int32_t max_tokens = -1;
  std::string reasoning_format = "auto";
  std::int32_t max_thinking_tokens = -1;
  // A JSON object; empty: none.
  std::string chat_template_kwargs;
  // Further members of a request's body; they win over the above.
  Json members = Json::object();
};

// As members of a request's body. kInvalidArgument for template arguments that are no JSON object.
Result<Json> default_members(const RequestDefaults& defaults);

// Puts those into `body` that it lacks or has as null; of members that are objects in both, theirs.
void add_missing(Json& body, const Json& defaults);

}  // namespace ebb
