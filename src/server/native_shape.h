// The shape of llama.cpp's own /completion. See server/reply_shape.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/generation_request.h"
#include "server/reply_shape.h"
#include "text/vocabulary.h"

namespace ebb {

struct NativeShapeOptions {
  ReplyHead head;
  // As it was asked for. Parts of a stream tell their tokens, asked for or not, and whole answers where they are asked for.
  GenerationRequest generation;
  // The text of each choice's prompt.
  std::vector<std::string> prompts;
  // What alone is told of each choice's last part, as "stop" or "generation_settings/seed"; empty: all.
  std::vector<std::string> response_fields = {};
};

// Under llama.cpp's names, those of its settings that this server has; no seed: a random one.
[[nodiscard]] Json generation_settings_json(const GenerationRequest& request, std::optional<std::uint32_t> seed);

// The vocabulary must outlive it.
std::unique_ptr<ReplyShape> make_native_shape(const Vocabulary& vocabulary, NativeShapeOptions options);

}  // namespace ebb
