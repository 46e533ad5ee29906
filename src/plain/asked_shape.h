// AskedShape: the layers, heads and tokens that a question is about.
#pragma once

#include <cstdint>

#include "json/json_fields.h"
#include "policy/policy.h"

namespace ebb {

// Products of all of these fit 64 bits; arrays as large are beyond any machine's memory.
inline constexpr std::int32_t kMostLayers = 1024;
inline constexpr std::int32_t kMostKvHeads = 1024;
inline constexpr std::int32_t kMostGrain = 4096;
inline constexpr std::int32_t kMostTokens = 1 << 20;

struct AskedShape {
  std::int32_t n_layers = 1;
  std::int32_t n_kv_heads = 1;
  std::int32_t grain = 1;  // tokens of a full block

  // Errors are the fields'.
  static AskedShape read(JsonFields& fields);

  [[nodiscard]] std::int32_t n_heads() const { return n_layers * n_kv_heads; }
  // How many heads choose together, and how many such scopes there are.
  [[nodiscard]] std::int32_t n_heads_of(Scope scope) const {
    return scope == Scope::kSession ? n_heads() : scope == Scope::kLayer ? n_kv_heads : 1;
  }
  [[nodiscard]] std::int32_t n_scopes(Scope scope) const { return n_heads() / n_heads_of(scope); }
};

[[nodiscard]] const char* scope_name(Scope scope);
// The scope that the member "scope" names; an error of the fields where it is none.
[[nodiscard]] Scope read_scope(JsonFields& fields);

}  // namespace ebb
