// Passed fields: what means the same in a chat request and in those that are said as one (Responses, Messages).
#pragma once

#include <span>

#include "json/json_fields.h"

namespace ebb {

void copy_fields(const Json& from, std::span<const char* const> names, Json& to);
// What all of them share, kSamplingFields included.
void pass_fields(const Json& from, Json& to);

}  // namespace ebb
