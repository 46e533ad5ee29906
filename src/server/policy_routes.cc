// Which policies there are, what they take, and which of them a request may choose.
#include "server/api_state.h"

namespace ebb {
namespace {

constexpr const char* scope_name(Scope scope) {
  switch (scope) {
    case Scope::kSession: return "session";
    case Scope::kLayer: return "layer";
    case Scope::kHead: return "head";
  }
  return "";
}

Json parameter_json(const Parameter& parameter) {
  return {{"name", parameter.name},   {"summary", parameter.summary}, {"default", parameter.value},
          {"least", parameter.least}, {"most", parameter.most},       {"whole", parameter.is_whole},
          {"odd", parameter.is_odd}};
}

Json policy_json(const PolicyEntry& entry, const OfferedPolicies& offered) {
  Json parameters = Json::array();
  for (const Parameter& parameter : entry.parameters) parameters.push_back(parameter_json(parameter));
  return {{"name", entry.name},
          {"summary", entry.summary},
          {"source", entry.source},
          {"chooses_by", scope_name(entry.make(ParameterValues(entry.parameters))->asks().scope)},
          {"allowed", offered.has(entry.name)},
          {"parameters", std::move(parameters)}};
}

}  // namespace

void answer_policies(ApiState& state, const ApiCall& call) {
  Json data = Json::array();
  for (const PolicyEntry& entry : policies()) data.push_back(policy_json(entry, state.limits().policies));
  call.send(json_answer({{"object", "list"}, {"default", state.engine.policy().spec()}, {"data", std::move(data)}}));
}

}  // namespace ebb
