#include "engine/lane_acts.h"

#include <algorithm>

#include "session/session.h"

namespace ebb {
namespace {

std::int32_t n_pinned_tokens(const Session& session) {
  std::int32_t n_tokens = 0;
  for (std::int32_t b = 0; b < session.n_blocks(); ++b) {
    if (session.is_pinned(BlockIndex(b))) n_tokens += session.hot().span(BlockIndex(b)).n_tokens();
  }
  return n_tokens;
}

}  // namespace

Status act_on(Lane& lane, const std::function<Status()>& act) {
  try {
    return act();
  } catch (...) {
    if (!lane.busy) {
      lane.session.reset();
      lane.image.reset();
    }
    throw;
  }
}

Result<std::vector<BlockIndex>> find_blocks(const Session& session, std::span<const std::string> names) {
  std::vector<BlockIndex> all;
  for (const std::string& name : names) {
    const std::vector<BlockIndex> found = session.find_blocks(name);
    if (found.empty()) return error(Code::kNotFound, "no block of this session is called '{:.100}'", name);
    all.insert(all.end(), found.begin(), found.end());
  }
  std::ranges::sort(all);
  const auto twice = std::ranges::unique(all);
  all.erase(twice.begin(), twice.end());
  return all;
}

Status set_pinned(Session& session, std::span<const std::string> names, bool pinned, std::int32_t most_tokens) {
  EBB_ASSIGN_OR_RETURN(const std::vector<BlockIndex> blocks, find_blocks(session, names));
  std::int32_t n_tokens = n_pinned_tokens(session);
  for (const BlockIndex block : blocks) {
    if (!session.is_pinned(block)) n_tokens += session.hot().span(block).n_tokens();
  }
  if (pinned && n_tokens > most_tokens) {
    return error(Code::kInvalidArgument,
                 "{} tokens would be pinned, and {} of a session may be; unpin others first, or raise the budget",
                 n_tokens, most_tokens);
  }
  for (const std::string& name : names) {
    if (session.set_pinned(name, pinned) > 0) continue;
    for (const BlockIndex block : session.find_blocks(name)) session.set_pinned(block, pinned);
  }
  return {};
}

Status evict_blocks(Session& session, std::span<const std::string> names, const HeadSet& heads) {
  EBB_ASSIGN_OR_RETURN(const std::vector<BlockIndex> blocks, find_blocks(session, names));
  session.evict(blocks, heads);
  return {};
}

Status recall_blocks(Session& session, std::span<const std::string> names) {
  EBB_ASSIGN_OR_RETURN(const std::vector<BlockIndex> blocks, find_blocks(session, names));
  session.recall(blocks);
  return {};
}

}  // namespace ebb
