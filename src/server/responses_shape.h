// The shape of OpenAI's Responses: items, and events that open, fill and close them. See server/reply_shape.h.
#pragma once

#include <memory>

#include "server/reply_shape.h"
#include "server/responses_request.h"

namespace ebb {

// `request` is the body, whose settings a response repeats; `renamed`: what its tools are called in it.
std::unique_ptr<ReplyShape> make_responses_shape(ReplyHead head, const Json& request, RenamedTools renamed);

}  // namespace ebb
