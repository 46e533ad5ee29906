// BudgetFile: a list of budgets as people and tuners write it down, with the model that it was made for.
//
// The format: docs/budget_file.md. The text is a stranger's: whatever it holds, the answer is a list that fits its own counts or
// a refusal that says what is wrong. It knows no model beyond its fingerprint.
//
// Thread rule: values; functions of their arguments.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "policy/budget_list.h"

namespace ebb {

// A list for some ten thousand heads has some hundred kilobytes.
inline constexpr std::size_t kMostBudgetFileBytes = std::size_t{4} << 20;

struct BudgetFile {
  // Hash128::hex() of the model's fingerprint, as records carry it.
  std::string model;
  std::int32_t n_layers = 0;
  std::int32_t n_kv_heads = 0;
  BudgetList list;
  // What a tuner says of it; nothing depends on it. Tokens in each head, on average, that it was made for;
  std::optional<double> mean_tokens;
  // the policy, the task and the seed that it was found with.
  std::string policy;
  std::string task;
  std::optional<std::int64_t> seed;

  // kInvalidArgument names both models, or both shapes.
  [[nodiscard]] Status check_model(const Hash128& fingerprint, std::int32_t model_layers,
                                   std::int32_t model_kv_heads) const;
};

// kInvalidArgument names the field, and what it may be.
Result<BudgetFile> parse_budget_file(std::string_view text);
// The same of a file; errors begin with its name. kNotFound where it cannot be read.
Result<BudgetFile> load_budget_file(const std::filesystem::path& path);

}  // namespace ebb
