#include "server/api_state.h"

namespace ebb {
namespace {

constexpr const char* state_name(BlockState state) {
  switch (state) {
    case BlockState::kHot: return "hot";
    case BlockState::kClean: return "clean";
    case BlockState::kSaved: return "saved";
    case BlockState::kMissing: return "missing";
  }
  return "";
}

Json lane_json(const Lane& lane) {
  Json json = {{"id", lane.id.empty() ? Json(nullptr) : Json(lane.id)},
               {"busy", lane.busy},
               {"parked", lane.session == nullptr}};
  if (lane.session == nullptr) {
    json["tokens"] = lane.image ? lane.image->tokens.size() : 0;
    return json;
  }
  const Session& session = *lane.session;
  json["tokens"] = session.end().value();
  json["hot_tokens"] = session.n_hot_tokens();
  json["budget_tokens"] = session.budget_blocks() * session.block_size();
  json["evicted_blocks"] = session.stats().n_evicted_blocks;
  json["recalled_blocks"] = session.stats().n_recalled_blocks;
  json["rebases"] = session.stats().n_rebases;
  Json blocks = Json::array();
  for (std::int32_t b = 0; b < session.n_blocks(); ++b) {
    const BlockIndex block(b);
    const Span span = session.residency().span(block);
    blocks.push_back({{"name", session.block_name(block)},
                      {"begin", span.begin.value()},
                      {"end", span.end.value()},
                      {"state", state_name(session.state(block))}});
  }
  json["blocks"] = std::move(blocks);
  return json;
}

}  // namespace

// Of the caller's own sessions; others' are nobody's business.
void answer_sessions(ApiState& state, const ApiCall& call) {
  Json data = Json::array();
  state.scheduler.inspect([&](const Lanes& lanes) {
    for (const Lane& lane : lanes.all()) {
      if (lane.owner == call.owner) data.push_back(lane_json(lane));
    }
  });
  call.send(json_answer({{"object", "list"}, {"data", std::move(data)}}));
}

}  // namespace ebb
