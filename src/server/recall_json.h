// recall_json: what a turn looked for and found, as JSON: by look, and block by block where that is asked for.
//
// The form is that of docs/http_api.md ("ebb.recall"). Thread rule: a pure function.
#pragma once

#include <span>

#include <nlohmann/json.hpp>

#include "engine/generation.h"

namespace ebb {

[[nodiscard]] nlohmann::ordered_json recall_json(std::span<const RecallLook> looks, bool tells_blocks);

}  // namespace ebb
