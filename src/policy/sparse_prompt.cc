#include "policy/sparse_prompt.h"

#include <algorithm>

#include <fmt/format.h>

namespace ebb {
namespace {

constexpr std::int32_t kMostSparseSize = 1 << 24;
// Of a name that is none, an error repeats no more.
constexpr std::size_t kMostEchoedName = 64;

constexpr Parameter kTriShapeParameters[] = {
    {.name = "start",
     .value = 128,
     .most = kMostSparseSize,
     .is_whole = true,
     .summary = "first tokens that all look at, whole blocks"},
    {.name = "recent",
     .value = 1920,
     .most = kMostSparseSize,
     .is_whole = true,
     .summary = "tokens before a chunk that it looks at, whole blocks"},
    {.name = "chunk",
     .value = 256,
     .least = 1,
     .most = kMostSparseSize,
     .is_whole = true,
     .summary = "tokens that look at the same, whole blocks"},
    {.name = "tail",
     .value = 100,
     .most = kMostSparseSize,
     .is_whole = true,
     .summary = "a chunk with fewer tokens behind it looks at everything"},
};

constexpr Parameter kXAttentionParameters[] = {
    {.name = "threshold",
     .value = 0.8,
     .least = 0.01,
     .most = 1.0,
     .summary = "share of its attention that a block of rows keeps"},
    {.name = "stride",
     .value = 8,
     .least = 2,
     .most = 16,
     .is_whole = true,
     .summary = "of so many antidiagonals one is looked at; 2, 4, 8 or 16, and divides the block"},
    {.name = "tail",
     .value = 100,
     .most = kMostSparseSize,
     .is_whole = true,
     .summary = "a block with fewer tokens behind it looks at everything"},
};

constexpr SparseScheme kSchemes[] = {{.name = "tri_shape", .parameters = kTriShapeParameters},
                                     {.name = "xattention", .parameters = kXAttentionParameters}};

SparsePrompt make_tri_shape(const ParameterValues& values) {
  return {.chunk = values.whole("chunk"),
          .start_tokens = values.whole("start"),
          .recent_tokens = values.whole("recent"),
          .tail_tokens = values.whole("tail")};
}

SparsePrompt make_xattention(const ParameterValues& values) {
  return {.threshold = values["threshold"], .stride = values.whole("stride"), .tail_tokens = values.whole("tail")};
}

}  // namespace

std::span<const SparseScheme> sparse_schemes() { return kSchemes; }

Result<SparsePrompt> SparsePrompt::parse(std::string_view text) {
  if (text == "none") return SparsePrompt();
  const std::string_view name = spec_name(text);
  if (name == "none") return error(Code::kInvalidArgument, "none takes no parameters");
  std::string names = "none";
  for (const SparseScheme& scheme : kSchemes) {
    names += ", " + std::string(scheme.name);
    if (scheme.name != name) continue;
    EBB_ASSIGN_OR_RETURN(const ParameterValues values, ParameterValues::parse_behind_name(scheme.parameters, text, ""));
    return name == "tri_shape" ? make_tri_shape(values) : make_xattention(values);
  }
  return error(Code::kNotFound, "no sparse prompt is called '{}'; there are {}", name.substr(0, kMostEchoedName),
               names);
}

std::string SparsePrompt::text() const {
  if (threshold > 0.0) return fmt::format("xattention:threshold={},stride={},tail={}", threshold, stride, tail_tokens);
  if (chunk == 0) return "none";
  return fmt::format("tri_shape:start={},recent={},chunk={},tail={}", start_tokens, recent_tokens, chunk, tail_tokens);
}

Status SparsePrompt::check_grain(std::int32_t grain) const {
  if (threshold > 0.0) {
    if (16 % stride == 0 && grain % stride == 0) return {};
    return error(Code::kInvalidArgument,
                 "xattention: a stride of {} with blocks of {}; it must be 2, 4, 8 or 16, and divide the block size",
                 stride, grain);
  }
  if (chunk % grain == 0 && start_tokens % grain == 0 && recent_tokens % grain == 0) return {};
  return error(Code::kInvalidArgument,
               "tri_shape: start {}, recent {} and chunk {} must be multiples of the block size, {}", start_tokens,
               recent_tokens, chunk, grain);
}

std::int32_t SparsePrompt::find_tail(std::int32_t n_tokens, std::int32_t grain) const {
  if (!is_sparse()) return 0;
  const std::int32_t unit = chunk > 0 ? chunk : grain;
  // One is sparse that has `tail` tokens behind it; the last token's is not, whatever the tail.
  return std::max(0, std::min(n_tokens - tail_tokens, n_tokens - 1)) / unit * unit;
}

}  // namespace ebb
