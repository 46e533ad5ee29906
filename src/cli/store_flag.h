// The --kv-store flag: "ram=1G,disk=/var/lib/ebb,disk-max=16G".
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "store/cold_store.h"

namespace ebb {

// Bytes, or with K, M, G, T (of 1024).
Result<std::uint64_t> parse_size(std::string_view text);

// kInvalidArgument says which part is not understood and what would be. Sizes are in bytes, or with K, M, G, T (of 1024).
Result<ColdStoreOptions> parse_store_flag(std::string_view text);

}  // namespace ebb
