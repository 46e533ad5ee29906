// Sessions over HTTP: an owner's list, what one holds, and what may be done to it between two requests.
#include <algorithm>
#include <utility>

#include "engine/lane_acts.h"
#include "engine/lane_image.h"
#include "server/api_state.h"
#include "server/lane_id.h"

namespace ebb {
namespace {

constexpr std::size_t kMostNames = 1024;

constexpr const char* state_name(BlockState state) {
  switch (state) {
    case BlockState::kHot: return "hot";
    case BlockState::kClean: return "clean";
    case BlockState::kPartly: return "partly";
    case BlockState::kSaved: return "saved";
    case BlockState::kMissing: return "missing";
  }
  return "";
}

Json lane_json(const Lanes& lanes, const Lane& lane) {
  Json json = {{"id", lane.public_id}, {"object", "session"}, {"busy", lane.busy}, {"parked", lane.session == nullptr}};
  if (lane.session == nullptr) {
    json["tokens"] = lane.image ? lane.image->tokens.size() : 0;
    json["hot_tokens"] = 0;
    json["blocks"] = lane.image ? lane.image->blocks.size() : 0;
  } else {
    json["tokens"] = lane.session->end().value();
    json["hot_tokens"] = lane.session->n_hot_tokens();
    json["blocks"] = lane.session->n_blocks();
  }
  json["own_budget_tokens"] = lane.budget_tokens > 0 ? Json(lane.budget_tokens) : Json(nullptr);
  json["kv_eviction"] = lanes.policy(lane).spec();
  json["own_kv_eviction"] = lane.policy != nullptr ? Json(lane.own_policy()) : Json(nullptr);
  const SessionStats stats = lane.stats();
  json["evicted_blocks"] = stats.n_evicted_blocks;
  json["saved_blocks"] = stats.n_saved_blocks;
  json["recalled_blocks"] = stats.n_recalled_blocks;
  json["recomputed_blocks"] = stats.n_recomputed_blocks;
  json["missed_recalls"] = stats.n_missed_recalls;
  json["rebases"] = stats.n_rebases;
  return json;
}

Json session_json(const Lanes& lanes, const Lane& lane) {
  Json json = lane_json(lanes, lane);
  if (lane.session != nullptr) {
    const Session& session = *lane.session;
    json["budget_tokens"] = session.budget_tokens();
    json["next_position"] = session.end().value();
    json["parts"] = session.parts().size();
  } else if (lane.image) {
    json["next_position"] = lane.image->tokens.size();
    json["parts"] = lane.image->parts.size();
  }
  return json;
}

Json blocks_json(const Session& session) {
  const std::vector<std::optional<double>> scores = session.scores();
  Json blocks = Json::array();
  for (std::int32_t b = 0; b < session.n_blocks(); ++b) {
    const BlockIndex block(b);
    const Span span = session.hot().span(block);
    const std::optional<double> score = scores[block.index()];
    blocks.push_back({{"name", session.block_name(block)},
                      {"begin", span.begin.value()},
                      {"end", span.end.value()},
                      {"tokens", span.n_tokens()},
                      {"state", state_name(session.state(block))},
                      {"hot_heads", session.hot().n_hot_frames(block)},
                      {"pinned", session.is_pinned(block)},
                      {"score", score ? Json(*score) : Json(nullptr)}});
  }
  return blocks;
}

enum class Wants { kAny, kIdle };

// Has `act` done to the caller's session in the path; others' sessions are not there. Its error is the answer.
bool act_on_session(ApiState& state, const ApiCall& call, Wants wants,
                    const std::function<Status(Lanes&, Lane&)>& act) {
  std::optional<ApiError> failed;
  state.scheduler.act([&](Lanes& lanes) {
    Lane* const lane = lanes.find(call.owner, call.id);
    if (lane == nullptr) {
      failed = ApiError{.status = 404, .type = "not_found_error", .message = "no such session of yours"};
    } else if (wants == Wants::kIdle && lane->busy) {
      failed = ApiError{
          .status = 409, .message = "a request is at work in this session; try again later", .retry_after_s = 1};
    } else if (const Status status = act_on(*lane, [&] { return act(lanes, *lane); }); !status.ok()) {
      failed = to_api_error(status);
    }
  });
  if (failed) call.send(to_answer(*failed));
  return !failed;
}

Result<std::vector<std::string>> read_names(const Json& body) {
  JsonFields fields(body);
  std::vector<std::string> names = fields.texts("names", kMostNames);
  if (names.empty()) fields.refuse("names", "must hold the name of a block or a part");
  EBB_RETURN_IF_ERROR(fields.status());
  return names;
}

// [[layer, KV head], ...]; all of them where none are named.
Result<HeadSet> read_heads(const Json& body, const BlockShape& shape) {
  JsonFields fields(body);
  const Json* const given = fields.find("heads");
  if (given == nullptr) return shape.all_heads();
  HeadSet heads(shape.n_heads());
  const auto add = [&](const Json& pair) {
    if (!pair.is_array() || pair.size() != 2) return false;
    const auto layer = integer_between(pair[0], 0, shape.n_layers - 1);
    const auto head = integer_between(pair[1], 0, shape.n_kv_heads - 1);
    if (layer && head) {
      heads.add(shape.head(LayerIndex(static_cast<std::int32_t>(*layer)), HeadIndex(static_cast<std::int32_t>(*head))));
    }
    return layer && head;
  };
  if (!given->is_array() || given->empty() || given->size() > shape.n_heads() || !std::ranges::all_of(*given, add)) {
    fields.refuse("heads", fmt::format("must be up to {} pairs [layer, KV head], of layers 0 to {} and heads 0 to {}",
                                       shape.n_heads(), shape.n_layers - 1, shape.n_kv_heads - 1));
    return fields.status();
  }
  return heads;
}

}  // namespace

void answer_sessions(ApiState& state, const ApiCall& call) {
  Json data = Json::array();
  state.scheduler.inspect([&](const Lanes& lanes) {
    std::vector<const Lane*> own;
    for (const Lane& lane : lanes.all()) {
      if (lane.owner == call.owner) own.push_back(&lane);
    }
    std::ranges::sort(own, std::greater(), [](const Lane* lane) { return std::pair(lane->busy, lane->last_use); });
    for (const Lane* lane : own) data.push_back(lane_json(lanes, *lane));
  });
  call.send(json_answer({{"object", "list"}, {"data", std::move(data)}}));
}

void answer_session(ApiState& state, const ApiCall& call) {
  Json json;
  const auto look = [&](const Lanes& lanes, const Lane& lane) {
    json = session_json(lanes, lane);
    return Status();
  };
  if (act_on_session(state, call, Wants::kAny, look)) call.send(json_answer(json));
}

void answer_delete_session(ApiState& state, const ApiCall& call) {
  const auto forget = [](Lanes& lanes, Lane& lane) {
    lanes.forget(lane);
    return Status();
  };
  if (!act_on_session(state, call, Wants::kIdle, forget)) return;
  call.send(json_answer({{"id", call.id}, {"object", "session"}, {"deleted", true}}));
}

void answer_blocks(ApiState& state, const ApiCall& call) {
  Json data;
  const auto look = [&](const Lanes& lanes, const Lane& lane) {
    std::unique_ptr<Session> parked;
    if (lane.session == nullptr) {
      EBB_ASSIGN_OR_RETURN(parked, lanes.copy_parked(lane));
    }
    data = blocks_json(parked != nullptr ? *parked : *lane.session);
    return Status();
  };
  if (!act_on_session(state, call, Wants::kAny, look)) return;
  call.send(json_answer({{"object", "list"}, {"session", call.id}, {"data", std::move(data)}}));
}

void answer_block_act(ApiState& state, const ApiCall& call) {
  const bool pins = call.act == "pin" || call.act == "unpin";
  if (!pins && call.act != "evict" && call.act != "recall") {
    return call.send(to_answer({.status = 404, .type = "not_found_error", .message = "no such route"}));
  }
  const std::optional<Json> body = read_body(call);
  if (!body) return;
  const Result<std::vector<std::string>> names = read_names(*body);
  if (!names.ok()) return refuse(call, names.status());
  const Result<HeadSet> heads = read_heads(*body, state.engine.shape());
  if (!heads.ok()) return refuse(call, heads.status());
  if (call.act != "evict" && body->contains("heads")) {
    JsonFields fields(*body);
    fields.refuse("heads",
                  "only evict is done to some heads; pins hold, and recall brings back, a block in all of them");
    return refuse(call, fields.status());
  }
  const std::int32_t most_pinned = state.scheduler.most_pinned_tokens();
  Json data;
  const auto act = [&](Lanes& lanes, Lane& lane) {
    EBB_RETURN_IF_ERROR(lanes.wake(lane));
    Session& session = *lane.session;
    if (pins) EBB_RETURN_IF_ERROR(set_pinned(session, *names, call.act == "pin", most_pinned));
    if (pins && !lane.busy) lanes.keep(lane);
    if (call.act == "evict") EBB_RETURN_IF_ERROR(evict_blocks(session, *names, *heads));
    if (call.act == "recall") EBB_RETURN_IF_ERROR(recall_blocks(session, *names));
    EBB_ASSIGN_OR_RETURN(const std::vector<BlockIndex> blocks, find_blocks(session, *names));
    const Json all = blocks_json(session);
    data = Json::array();
    for (const BlockIndex block : blocks) data.push_back(all[block.index()]);
    return Status();
  };
  if (!act_on_session(state, call, pins ? Wants::kAny : Wants::kIdle, act)) return;
  call.send(json_answer({{"object", "list"}, {"session", call.id}, {"data", std::move(data)}}));
}

void answer_session_budget(ApiState& state, const ApiCall& call) {
  const std::optional<Json> body = read_body(call);
  if (!body) return;
  JsonFields fields(*body);
  const std::int64_t n_tokens = fields.integer("tokens", -1, 0, state.engine.budget_tokens());
  if (n_tokens < 0) fields.refuse("tokens", "must be given; 0 is as much as its share");
  if (!fields.status().ok()) return refuse(call, fields.status());
  Json json;
  const auto act = [&](const Lanes& lanes, Lane& lane) {
    const Status set = state.scheduler.set_budget(lane, static_cast<std::int32_t>(n_tokens));
    if (set.code() == Code::kInvalidArgument) {
      fields.refuse("tokens", set.message());
      return fields.status();
    }
    EBB_RETURN_IF_ERROR(set);
    json = session_json(lanes, lane);
    return Status();
  };
  if (act_on_session(state, call, Wants::kAny, act)) call.send(json_answer(json));
}

void answer_session_policy(ApiState& state, const ApiCall& call) {
  const std::optional<Json> body = read_body(call);
  if (!body) return;
  JsonFields fields(*body);
  const std::shared_ptr<const Policy> policy = read_policy(fields, "kv_eviction", state.limits().policies);
  if (fields.find("kv_eviction") == nullptr) fields.refuse("kv_eviction", "must be given; \"\" is as the server's");
  if (!fields.status().ok()) return refuse(call, fields.status());
  Json json;
  const auto act = [&](Lanes& lanes, Lane& lane) {
    EBB_RETURN_IF_ERROR(lanes.set_policy(lane, policy));
    json = session_json(lanes, lane);
    return Status();
  };
  if (act_on_session(state, call, Wants::kAny, act)) call.send(json_answer(json));
}

void answer_export(ApiState& state, const ApiCall& call) {
  LaneImage image;
  const auto save = [&](Lanes& lanes, Lane& lane) {
    image = make_lane_image(state.engine, lanes.save(lane));
    image.policy = lane.own_policy();
    image.sparse_prompt = lane.sparse_prompt;
    return Status();
  };
  if (!act_on_session(state, call, Wants::kIdle, save)) return;
  const std::vector<std::byte> bytes = encode_lane_image(image);
  call.send({.headers = {{"Content-Type", "application/octet-stream"}},
             .body = {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
}

void answer_import(ApiState& state, const ApiCall& call) {
  const std::string id = call.request.find_query("id").value_or("");
  if (!is_safe_id(id)) {
    return call.send(to_answer({.message = "query 'id': up to 256 letters, digits and any of -._~"}));
  }
  const Result<LaneImage> given = decode_lane_image(std::as_bytes(std::span(call.request.body)));
  if (!given.ok()) return call.send(to_answer({.message = given.status().message()}));
  if (!given->is_of(state.engine)) {
    return call.send(to_answer({.message = "a session of another model, KV type or block size than this server's"}));
  }
  Json json;
  Status status;
  bool taken = false;
  state.scheduler.act([&](Lanes& lanes) {
    taken = lanes.find(call.owner, id) != nullptr;
    if (taken) return;
    const Result<Lane*> lane = lanes.take_in(call.owner, id, *given);
    status = lane.status();
    if (lane.ok()) json = session_json(lanes, **lane);
  });
  if (taken) {
    return call.send(to_answer({.status = 409, .message = "there is a session of that id; delete it first"}));
  }
  // A damaged image is what the client sent.
  if (status.code() == Code::kDamaged) return call.send(to_answer({.message = status.message()}));
  if (!status.ok()) return refuse(call, status);
  call.send(json_answer(json));
}

}  // namespace ebb
