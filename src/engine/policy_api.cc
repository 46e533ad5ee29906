// The public areas scheme (include/ebb/policy.h) on the policy room.
#include <new>

#include "base/caught.h"
#include "ebb/policy.h"
#include "engine/public_error.h"
#include "policy/areas.h"
#include "policy/kvcrush.h"
#include "policy/rotation.h"

namespace ebb::api {

struct Areas::State {
  AreasSequence sequence;
};

namespace {

// Both have the same values in the same order. One that is none of them stays none, so that it is refused.
template <class To, class From>
To to_inner(From value) {
  const int number = static_cast<int>(value);
  return static_cast<To>(number < 0 || number > 255 ? 255 : number);
}

ebb::CrushConfig to_config(const CrushOptions& options) {
  return {.budget_blocks = options.budget_blocks,
          .anchor = to_inner<ebb::CrushAnchor>(options.anchor),
          .rng_seed = options.rng_seed};
}

static_assert(static_cast<int>(CrushAnchor::kAlternating) == static_cast<int>(ebb::CrushAnchor::kAlternating));
static_assert(static_cast<int>(Aggregation::kAdaptiveRkv) == static_cast<int>(ebb::Aggregation::kAdaptiveRkv));

AreasConfig to_config(const AreasOptions& options) {
  return {.start_tokens = options.start_tokens,
          .recent_tokens = options.recent_tokens,
          .max_tokens = options.max_tokens,
          .aggregation = to_inner<ebb::Aggregation>(options.aggregation),
          .n_window_queries = options.n_window_queries,
          .crush = to_config(options.crush),
          .adaptive = {.attention_mass = options.adaptive.attention_mass, .n_passes = options.adaptive.n_passes},
          .upstream = options.upstream};
}

Result<Done> done_or_error(const Status& status) {
  return status.ok() ? Result<Done>(Done{}) : Result<Done>(to_error(status));
}

// What short memory throws becomes an error like any other.
template <class Work>
auto within_memory(std::string_view doing, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return to_error(caught(doing));
  }
}

}  // namespace

Areas::Areas(std::unique_ptr<State> state) : state_(std::move(state)) {}
Areas::~Areas() = default;
Areas::Areas(Areas&&) noexcept = default;
Areas& Areas::operator=(Areas&&) noexcept = default;

Result<Areas> Areas::make(const AreasOptions& options, const AreasShape& shape, std::int32_t n_prompt) {
  return within_memory("a sequence was begun", [&]() -> Result<Areas> {
    ebb::Result<AreasSequence> sequence =
        AreasSequence::make(to_config(options), {.block_size = shape.block_size, .n_layers = shape.n_layers}, n_prompt);
    if (!sequence.ok()) return to_error(sequence.status());
    return Areas(std::make_unique<State>(State{.sequence = *std::move(sequence)}));
  });
}

Result<Areas> Areas::copy() const {
  return within_memory("a sequence was copied",
                       [&]() -> Result<Areas> { return Areas(std::make_unique<State>(*state_)); });
}

std::int32_t Areas::count_queries(std::int32_t n_scheduled) const {
  return state_->sequence.count_next_queries(n_scheduled);
}

Result<Done> Areas::register_scores(std::int32_t n_scheduled, std::span<const std::vector<float>> scores,
                                    std::span<const std::int32_t> skipped) {
  return within_memory("scores were registered", [&]() -> Result<Done> {
    return done_or_error(
        state_->sequence.register_scores({.n_scheduled = n_scheduled, .scores = scores, .skipped = skipped}));
  });
}

std::int32_t Areas::wanted_diversity(std::int32_t n_scheduled) const {
  return state_->sequence.wanted_diversity(n_scheduled);
}

Result<Done> Areas::register_diversity(std::int32_t layer, std::span<const float> diversity) {
  return within_memory("diversity was registered", [&]() -> Result<Done> {
    return done_or_error(state_->sequence.register_diversity(LayerIndex(layer), diversity));
  });
}

Result<std::vector<AreasEviction>> Areas::evict() {
  return within_memory("blocks were chosen", [&]() -> Result<std::vector<AreasEviction>> {
    ebb::Result<std::vector<ebb::AreasEviction>> chosen = state_->sequence.evict();
    if (!chosen.ok()) return to_error(chosen.status());
    std::vector<AreasEviction> evictions;
    for (ebb::AreasEviction& eviction : *chosen) {
      evictions.push_back({.victims = std::move(eviction.victims), .rescued = std::move(eviction.rescued)});
    }
    return evictions;
  });
}

Result<Done> Areas::reset(std::int32_t n_prompt) { return done_or_error(state_->sequence.reset(n_prompt)); }

std::int32_t Areas::n_processed() const { return state_->sequence.n_processed(); }
std::int32_t Areas::n_cached() const { return state_->sequence.n_cached(); }
std::int32_t Areas::max_tokens_after_eviction() const {
  return state_->sequence.config().max_tokens_after_eviction(state_->sequence.shape().block_size);
}

Result<std::vector<std::int32_t>> rescue_blocks(std::span<const double> sums, std::int32_t block_size,
                                                std::span<const std::int32_t> victims, const CrushOptions& options,
                                                std::mt19937& random) {
  return within_memory("blocks were rescued", [&]() -> Result<std::vector<std::int32_t>> {
    const CrushChoice choice{.sums = sums, .block_size = block_size, .victims = victims};
    const Status status = check_crush(choice, to_config(options));
    if (!status.ok()) return to_error(status);
    return ebb::rescue_blocks(choice, to_config(options), random);
  });
}

Result<std::vector<BlockShift>> find_shifts(std::int32_t n_blocks, std::span<const std::int32_t> victims,
                                            std::int32_t block_size, std::int32_t n_rows) {
  return within_memory("shifts were counted", [&]() -> Result<std::vector<BlockShift>> {
    const ebb::Result<std::vector<ebb::BlockShift>> found = ebb::find_shifts(n_blocks, victims, block_size, n_rows);
    if (!found.ok()) return to_error(found.status());
    std::vector<BlockShift> shifts;
    for (const ebb::BlockShift& shift : *found) {
      shifts.push_back({.from = shift.from, .to = shift.to, .n_tokens = shift.n_tokens});
    }
    return shifts;
  });
}

Result<RotationTable> make_rotation_table(std::int32_t n_rows, std::int32_t block_size, std::int32_t head_dim,
                                          double theta) {
  return within_memory("a rotation table was made", [&]() -> Result<RotationTable> {
    ebb::Result<ebb::RotationTable> table = ebb::RotationTable::make(n_rows, block_size, head_dim, theta);
    if (!table.ok()) return to_error(table.status());
    return RotationTable{.n_rows = table->n_rows,
                         .half_dim = table->half_dim,
                         .cos = std::move(table->cos),
                         .negative_sin = std::move(table->negative_sin)};
  });
}

}  // namespace ebb::api
