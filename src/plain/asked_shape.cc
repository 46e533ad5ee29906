#include "plain/asked_shape.h"

namespace ebb {

AskedShape AskedShape::read(JsonFields& fields) {
  const auto count = [&](const char* name, std::int32_t most) {
    return static_cast<std::int32_t>(fields.integer(name, 1, 1, most));
  };
  return {.n_layers = count("n_layers", kMostLayers),
          .n_kv_heads = count("n_kv_heads", kMostKvHeads),
          .grain = count("grain", kMostGrain)};
}

const char* scope_name(Scope scope) {
  switch (scope) {
    case Scope::kSession: return "session";
    case Scope::kLayer: return "layer";
    case Scope::kHead: return "head";
  }
  return "";
}

Scope read_scope(JsonFields& fields) {
  const std::string name = fields.text("scope", "head");
  for (const Scope scope : {Scope::kSession, Scope::kLayer, Scope::kHead}) {
    if (name == scope_name(scope)) return scope;
  }
  fields.refuse("scope", "must be \"session\", \"layer\" or \"head\"");
  return Scope::kHead;
}

}  // namespace ebb
