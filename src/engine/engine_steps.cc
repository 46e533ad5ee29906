// How the generations of an engine share its steps.
#include <algorithm>

#include "base/caught.h"
#include "base/clock.h"
#include "engine/engine_state.h"
#include "engine/generation.h"

namespace ebb {
namespace {

bool has_whole_blocks(std::span<Generation* const> generations) {
  return std::ranges::any_of(generations, [](const Generation* g) { return g->computes_whole_blocks(); });
}

}  // namespace

struct Engine::State::Part {
  Generation* generation = nullptr;
  bool was_prefilling = false;
  std::int32_t n_rows = 0;
  // Index of its logits in the step's output; -1 when it asked for none.
  std::int32_t output = -1;
};

// Blocks whose rows choose together are computed whole, whatever time they take.
std::int32_t Engine::State::rows_of_all_prompts(std::span<Generation* const> generations) const {
  const auto is_written = [](const Generation* g) { return !g->finished() && !g->is_prefilling(); };
  const auto n_written = static_cast<std::int32_t>(std::ranges::count_if(generations, is_written));
  const std::int32_t n_rows = std::max(0, runner->max_rows() - n_written);
  const std::int32_t n_in_time = pace.prompt_rows(n_written, n_rows);
  return has_whole_blocks(generations) ? std::min(n_rows, std::max(n_in_time, shape.block_size)) : n_in_time;
}

std::int32_t Engine::rows_of_prompts(std::span<Generation* const> generations) const {
  const auto is_prompt = [](const Generation* g) { return !g->finished() && g->is_prefilling(); };
  const auto n_prompts = static_cast<std::int32_t>(std::ranges::count_if(generations, is_prompt));
  const std::int32_t n_rows = state_->rows_of_all_prompts(generations);
  const std::int32_t n_each = n_rows / std::max(1, n_prompts);
  const std::int32_t n_whole = state_->shape.block_size;
  // By some prompts in one step and by others in the next.
  if (n_each < n_whole && n_rows >= n_whole && has_whole_blocks(generations)) return n_whole;
  return std::max(1, n_each);
}

// Decoding generations first, one row each: they are waited for by people. Prompts share the rest, so that a short one
// does not wait for a long one; what one has no use for is the next one's.
void Engine::State::gather(std::span<Generation* const> generations, std::int32_t n_rows_of_prompts,
                           std::vector<Part>& parts, std::vector<SequenceInput>& inputs) {
  std::int32_t n_rows_left = runner->max_rows();
  std::int32_t n_spare = 0;
  std::int32_t n_outputs = 0;
  const std::size_t first = has_whole_blocks(generations) ? n_taken_turns++ : 0;
  const std::int32_t n_prompt_rows = rows_of_all_prompts(generations);
  for (const bool prefilling : {false, true}) {
    if (prefilling) n_rows_left = std::min(n_rows_left, n_prompt_rows);
    const bool has_whole_block = n_rows_left >= shape.block_size;
    for (std::size_t i = 0; i < generations.size(); ++i) {
      // Those that find no rows left are the first ones soon.
      Generation* const generation = generations[(first + i) % generations.size()];
      if (generation->finished() || generation->is_prefilling() != prefilling || n_rows_left == 0) continue;
      const bool waits = has_whole_block && n_rows_left < shape.block_size;
      if (prefilling && waits && generation->computes_whole_blocks()) continue;
      const std::int32_t n_rows = prefilling ? std::min(n_rows_left, n_rows_of_prompts + n_spare) : n_rows_left;
      std::optional<SequenceInput> input = generation->begin_step(n_rows);
      const std::int32_t n_taken = input ? static_cast<std::int32_t>(input->tokens.size()) : 0;
      n_rows_left -= n_taken;
      if (prefilling) n_spare = n_rows - n_taken;
      if (!input) continue;
      parts.push_back({.generation = generation,
                       .was_prefilling = prefilling,
                       .n_rows = n_taken,
                       .output = input->n_outputs > 0 ? n_outputs++ : -1});
      inputs.push_back(*std::move(input));
    }
  }
}

Status Engine::step(std::span<Generation* const> generations) {
  try {
    return state_->step(generations, rows_of_prompts(generations));
  } catch (...) {
    return caught("a step was begun");
  }
}

Status Engine::State::step(std::span<Generation* const> generations, std::int32_t n_rows_of_prompts) {
  const Stopwatch watch;
  // Their room is there before any session changes.
  std::vector<Part> parts;
  std::vector<SequenceInput> inputs;
  parts.reserve(generations.size());
  inputs.reserve(generations.size());
  gather(generations, n_rows_of_prompts, parts, inputs);
  if (parts.empty()) return {};
  const Status status = run(inputs);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Generation& generation = *parts[i].generation;
    if (!status.ok()) {
      generation.abandon_step();
      continue;
    }
    generation.end_step(runner->mass(static_cast<std::int32_t>(i)));
  }
  EBB_RETURN_IF_ERROR(status);
  for (const Part& part : parts) {
    if (part.output < 0 || part.generation->finished()) continue;
    const auto logits = runner->logits(part.output);
    part.generation->sample(logits.first(static_cast<std::size_t>(vocabulary->n_tokens())));
  }
  // All that they waited for, sampling too.
  const double ms = watch.elapsed_ms();
  Pace::Step paced{.ms = ms};
  for (const Part& part : parts) {
    part.generation->count_step(ms, part.was_prefilling);
    (part.was_prefilling ? paced.n_prompt_rows : paced.n_writing) += part.n_rows;
  }
  pace.note(paced);
  return {};
}

Status Engine::State::run(std::span<const SequenceInput> inputs) {
  try {
    return runner->run(inputs);
  } catch (...) {
    return caught("a step was computed");
  }
}

}  // namespace ebb
