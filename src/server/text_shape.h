// The shape of OpenAI's text completions. See server/reply_shape.h.
#pragma once

#include <memory>

#include "server/reply_shape.h"
#include "text/vocabulary.h"

namespace ebb {

// `include_usage`: a chunk with the usage comes last. The vocabulary must outlive it.
std::unique_ptr<ReplyShape> make_text_shape(const Vocabulary& vocabulary, ReplyHead head, bool include_usage);

}  // namespace ebb
