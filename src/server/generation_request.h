// Generation requests: the members that chat and text completions share (docs/http_api.md), from JSON to options.
#pragma once

#include <cstdint>
#include <string>

#include "engine/generation.h"
#include "server/fields.h"

namespace ebb {

struct GenerationRequest {
  GenerationOptions options;
  bool stream = false;
  bool include_usage = false;
};

// Counts outside their range are refused, continuous parameters are clamped. kInvalidArgument names the field.
Result<GenerationRequest> parse_generation_request(const Json& body, const Vocabulary& vocabulary);

}  // namespace ebb
