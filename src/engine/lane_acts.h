// Lane acts: what an owner does to one of its sessions between two requests, by the names of its blocks: "reply3#0" is one
// block, "reply3" all that hold tokens of that part.
//
// They find all names before they do anything. The lane is awake; all but set_pinned want it idle. Pins are bounded, so
// that a session can always go on. Thread rule: the scheduler's thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/lanes.h"

namespace ebb {

// In position order, each once. kNotFound says which name no block has.
Result<std::vector<BlockIndex>> find_blocks(const Session& session, std::span<const std::string> names);

// kInvalidArgument, and nothing is pinned, when more than most_tokens would be.
Status set_pinned(Session& session, std::span<const std::string> names, bool pinned, std::int32_t most_tokens);
// Full blocks leave, saved; the last one stays while it is written to.
Status evict_blocks(Session& session, std::span<const std::string> names);
// Saved blocks come back without a forward pass, up to half of the session's budget; lost ones stay missing until a
// request needs them.
Status recall_blocks(Session& session, std::span<const std::string> names);

}  // namespace ebb
