// Lane acts: what an owner does to one of its sessions between two requests, by the names of its blocks: "reply3#0" is one
// block, "reply3" all that hold tokens of that part.
//
// They find all names before they do anything. The lane is awake; all but set_pinned want it idle. Pins are bounded, so
// that a session can always go on. Thread rule: the scheduler's thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/lanes.h"

namespace ebb {

// Does `act` to a lane. What that throws goes on to the caller, and leaves an idle lane as one that was never awake: what it
// was in the midst of is not to be gone on with, and its next request computes or recalls what it needs (law 8).
Status act_on(Lane& lane, const std::function<Status()>& act);

// In position order, each once. kNotFound says which name no block has.
Result<std::vector<BlockIndex>> find_blocks(const Session& session, std::span<const std::string> names);

// kInvalidArgument, and nothing is pinned, when more than most_tokens would be.
Status set_pinned(Session& session, std::span<const std::string> names, bool pinned, std::int32_t most_tokens);
// Full blocks leave in these heads, saved; the last one stays while it is written to.
Status evict_blocks(Session& session, std::span<const std::string> names, const HeadSet& heads);
// Saved blocks come back without a forward pass, up to half of the session's budget; lost ones stay missing until a
// request needs them.
Status recall_blocks(Session& session, std::span<const std::string> names);

}  // namespace ebb
