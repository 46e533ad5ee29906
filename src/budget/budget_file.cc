#include "budget/budget_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include "json/json_fields.h"

namespace ebb {
namespace {

constexpr std::string_view kFormat = "ebb-kv-budgets";
constexpr std::int64_t kVersion = 1;

constexpr std::int64_t kMostLayers = 1 << 14;
constexpr std::int64_t kMostHeads = 1 << 14;
// A value takes 16 bytes, beside the text of two bytes at least that it comes from.
constexpr std::size_t kMostValues = kMostBudgetFileBytes / 2 + 64;
// Of a text that only informs.
constexpr std::size_t kMostTextBytes = 1024;

// Adds the member's numbers; what they may be, and how many, is the list's to say.
bool add_numbers(const Json& numbers, std::vector<double>& weights) {
  if (!numbers.is_array()) return false;
  for (const Json& one : numbers) {
    if (!one.is_number()) return false;
    weights.push_back(one.get<double>());
  }
  return true;
}

void read_layers(JsonFields& fields, BudgetFile& file) {
  file.list.scope = Scope::kLayer;
  if (!add_numbers(*fields.find("layers"), file.list.weights)) {
    fields.refuse_type("layers", "an array with a number for each layer");
  }
}

void read_heads(JsonFields& fields, BudgetFile& file) {
  file.list.scope = Scope::kHead;
  const Json& layers = *fields.find("heads");
  if (!layers.is_array()) return fields.refuse_type("heads", "an array with an array of numbers for each layer");
  for (const Json& layer : layers) {
    if (add_numbers(layer, file.list.weights) && std::cmp_equal(layer.size(), file.n_kv_heads)) continue;
    const auto at = &layer - &layers.front();
    return fields.refuse("heads", fmt::format("layer {} must be an array of {} numbers", at, file.n_kv_heads));
  }
  if (std::cmp_not_equal(layers.size(), file.n_layers)) {
    fields.refuse("heads", fmt::format("has {} layers, and n_layers is {}", layers.size(), file.n_layers));
  }
}

void read_list(JsonFields& fields, BudgetFile& file) {
  const bool has_layers = fields.find("layers") != nullptr;
  const bool has_heads = fields.find("heads") != nullptr;
  if (has_layers == has_heads) return fields.refuse("layers", "give layers or heads, one of them");
  if (has_layers) read_layers(fields, file);
  if (has_heads) read_heads(fields, file);
  if (!fields.status().ok()) return;
  const Status fits = file.list.validate(file.n_layers, file.n_kv_heads);
  if (!fits.ok()) fields.refuse(has_layers ? "layers" : "heads", fits.message());
}

// A fingerprint as Hash128::hex() writes it.
void read_model(JsonFields& fields, BudgetFile& file) {
  constexpr std::size_t kDigits = 32;
  file.model = fields.needed_text("model");
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (file.model.size() == kDigits && std::ranges::all_of(file.model, is_digit)) return;
  fields.refuse("model", "must be the model's fingerprint, 32 hexadecimal digits, as `ebb inspect` shows it");
}

std::string read_note(JsonFields& fields, std::string_view name) {
  std::string text = fields.text(name);
  if (text.size() > kMostTextBytes) fields.refuse(name, fmt::format("has more than {} bytes", kMostTextBytes));
  return text;
}

std::int32_t read_count(JsonFields& fields, std::string_view name, std::int64_t most) {
  if (fields.find(name) == nullptr) fields.refuse_type(name, "a number");
  return static_cast<std::int32_t>(fields.integer(name, 1, 1, most));
}

}  // namespace

Status BudgetFile::check_model(const Hash128& fingerprint, std::int32_t model_layers,
                               std::int32_t model_kv_heads) const {
  if (model != fingerprint.hex()) {
    return error(Code::kInvalidArgument, "the budgets are for the model {}, and this model is {}", model,
                 fingerprint.hex());
  }
  if (n_layers == model_layers && n_kv_heads == model_kv_heads) return {};
  return error(Code::kInvalidArgument, "the budgets are for {} layers of {} KV heads, and the model has {} of {}",
               n_layers, n_kv_heads, model_layers, model_kv_heads);
}

Result<BudgetFile> parse_budget_file(std::string_view text) {
  if (text.size() > kMostBudgetFileBytes) {
    return error(Code::kInvalidArgument, "a budget file of {} bytes; at most {} are read", text.size(),
                 kMostBudgetFileBytes);
  }
  EBB_ASSIGN_OR_RETURN(const Json json, parse_json(text, kMostValues, RepeatedNames::kRefused));
  JsonFields fields(json);
  fields.refuse_others({"format", "version", "model", "n_layers", "n_kv_heads", "layers", "heads", "mean_tokens",
                        "policy", "task", "seed"});
  if (fields.needed_text("format") != kFormat) fields.refuse("format", fmt::format("must be \"{}\"", kFormat));
  if (fields.find("version") == nullptr) fields.refuse_type("version", "a number");
  if (fields.integer("version", kVersion, 0, 1 << 30) != kVersion) {
    fields.refuse("version", fmt::format("must be {}, the one that this ebb reads", kVersion));
  }
  BudgetFile file;
  read_model(fields, file);
  file.n_layers = read_count(fields, "n_layers", kMostLayers);
  file.n_kv_heads = read_count(fields, "n_kv_heads", kMostHeads);
  read_list(fields, file);
  if (const Json* mean = fields.find("mean_tokens"); mean != nullptr) {
    if (!mean->is_number() || mean->get<double>() < 0.0) fields.refuse_type("mean_tokens", "a number, 0 or more");
    if (mean->is_number()) file.mean_tokens = mean->get<double>();
  }
  file.policy = read_note(fields, "policy");
  file.task = read_note(fields, "task");
  if (fields.find("seed") != nullptr) {
    file.seed = fields.integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max());
  }
  EBB_RETURN_IF_ERROR(fields.status());
  return file;
}

Result<BudgetFile> load_budget_file(const std::filesystem::path& path) {
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed)) {
    return error(Code::kNotFound, "{}: is a folder; name a budget file", path.string());
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return error(Code::kNotFound, "{}: cannot be read ({})", path.string(), std::strerror(errno));
  std::string text(kMostBudgetFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  Result<BudgetFile> file = parse_budget_file(text);
  if (!file.ok()) return error(file.status().code(), "{}: {}", path.string(), file.status().message());
  return file;
}

}  // namespace ebb
