// Document request: a document and a question as the tokens that a session computes, and what recall may look for in them.
//
// It computes nothing. Thread rule: pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "bench/document.h"
#include "chat/turn_text.h"
#include "policy/cues.h"

namespace ebb {

struct DocumentRequest {
  // Messages of before and the replies to them, each a turn of its own; none where the request holds all.
  std::vector<std::vector<Token>> before;
  std::vector<Token> tokens;
  std::vector<Cue> cues;
  // Names of the blocks that tell the answers, in a session that begins with this request.
  std::vector<std::string> needed;
  // Of those in which the question stands, where the document stands behind it.
  std::vector<std::string> asked;
  // It bounds a reply that does not end: what is asked said again, the answers twice, and some words around them.
  std::int32_t most_reply_tokens = 0;

  [[nodiscard]] std::int32_t n_tokens() const;
};

// kInvalidArgument where a fact of the probe is not in the document, kUnsupported where a model's template tells a message behind
// calls of tools in other tokens than by itself.
Result<DocumentRequest> make_document_request(const Vocabulary& vocabulary, const DocumentCase& document,
                                              const DocumentProbe& probe, QuestionPlace place, std::int32_t block_size);
// Of a probe that follows another's reply in the same session, which began with `first`; `before`: how that reply ended.
Result<DocumentRequest> next_document_request(const Vocabulary& vocabulary, const DocumentRequest& first,
                                              const DocumentProbe& probe, Before before, std::int32_t block_size);

}  // namespace ebb
