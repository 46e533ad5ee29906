#include "policy/sparse_prompt.h"

#include <algorithm>

namespace ebb {
namespace {

constexpr std::int32_t kMostSparseSize = 1 << 24;
// Of a name that is none, an error repeats no more.
constexpr std::size_t kMostEchoedName = 64;
constexpr std::string_view kTriShapeName = "tri_shape";

constexpr Parameter kTriShapeParameters[] = {
    {.name = "start",
     .value = 128,
     .most = kMostSparseSize,
     .is_whole = true,
     .summary = "first tokens that all look at"},
    {.name = "recent",
     .value = 1920,
     .most = kMostSparseSize,
     .is_whole = true,
     .summary = "tokens before a chunk that it looks at"},
    {.name = "chunk",
     .value = 256,
     .least = 1,
     .most = kMostSparseSize,
     .is_whole = true,
     .summary = "tokens that look at the same"},
    {.name = "tail",
     .value = 100,
     .most = kMostSparseSize,
     .is_whole = true,
     .summary = "a chunk with fewer tokens behind it looks at everything"},
};

}  // namespace

std::span<const Parameter> tri_shape_parameters() { return kTriShapeParameters; }

Result<SparsePrompt> SparsePrompt::parse(std::string_view text) {
  if (text == "none") return SparsePrompt();
  const std::string_view name = text.substr(0, text.find(':'));
  if (name != kTriShapeName) {
    return error(Code::kNotFound, "no sparse prompt is called '{}'; there are none, {}",
                 name.substr(0, kMostEchoedName), kTriShapeName);
  }
  if (text.ends_with(':')) return error(Code::kInvalidArgument, "{}: no parameter behind the colon", name);
  const Result<ParameterValues> values =
      ParameterValues::parse(kTriShapeParameters, name.size() == text.size() ? "" : text.substr(name.size() + 1));
  if (!values.ok()) return error(Code::kInvalidArgument, "{}: {}", name, values.status().message());
  return SparsePrompt{.chunk = values->whole("chunk"),
                      .start_tokens = values->whole("start"),
                      .recent_tokens = values->whole("recent"),
                      .tail_tokens = values->whole("tail")};
}

Status SparsePrompt::check_grain(std::int32_t grain) const {
  if (chunk % grain == 0 && start_tokens % grain == 0 && recent_tokens % grain == 0) return {};
  return error(Code::kInvalidArgument,
               "tri_shape: start {}, recent {} and chunk {} must be multiples of the block size, {}", start_tokens,
               recent_tokens, chunk, grain);
}

std::int32_t SparsePrompt::find_tail(std::int32_t n_tokens) const {
  if (!is_sparse()) return 0;
  // A chunk is sparse that has `tail` tokens behind it; the last token's is not, whatever the tail.
  return std::max(0, std::min(n_tokens - tail_tokens, n_tokens - 1)) / chunk * chunk;
}

}  // namespace ebb
