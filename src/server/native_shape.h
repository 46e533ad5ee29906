// The shape of llama.cpp's own /completion. See server/reply_shape.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/reply_shape.h"
#include "text/vocabulary.h"

namespace ebb {

struct NativeShapeOptions {
  ReplyHead head;
  // The text of each choice's prompt.
  std::vector<std::string> prompts;
  // The answer's tokens are told; their chances are then asked for too.
  bool returns_tokens = false;
  // The chances are told.
  bool returns_chances = false;
};
// The vocabulary must outlive it.
std::unique_ptr<ReplyShape> make_native_shape(const Vocabulary& vocabulary, NativeShapeOptions options);

}  // namespace ebb
