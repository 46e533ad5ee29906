// What a choice by words takes: sentences asked of so many blocks of 64 tokens, a third of which are hot; words as frequent as in
// a language, and names that stand in one block.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "policy/cues.h"
#include "policy/rare_words.h"
#include "policy/select.h"

namespace ebb {
namespace {

// The n-th word is said 1/n times as often as the first.
std::string draw_word(std::mt19937& random) {
  constexpr double kVocabulary = 20000.0;
  const double u = static_cast<double>(random() % 1'000'000) / 1e6;
  return fmt::format("w{}", static_cast<std::int32_t>(std::pow(kVocabulary, u)));
}

std::string draw_text(std::mt19937& random, std::int32_t n_words) {
  std::string text;
  for (std::int32_t i = 0; i < n_words; ++i) text += draw_word(random) + " ";
  return text;
}

// Arguments: blocks, sentences.
void choose(benchmark::State& state) {
  const auto n_blocks = static_cast<std::int32_t>(state.range(0));
  std::mt19937 random(1);
  WordIndex index;
  for (std::int32_t b = 0; b < n_blocks; ++b) {
    index.add(BlockIndex(b), draw_text(random, 45) + fmt::format("name{}", b));
  }
  std::vector<double> missing(static_cast<std::size_t>(n_blocks), 1.0);
  for (std::size_t b = 0; b < missing.size(); b += 3) missing[b] = 0.0;
  std::string asked;
  for (std::int64_t i = 0; i < state.range(1); ++i) {
    asked += fmt::format("What is {} name{}? ", draw_text(random, 8), random() % static_cast<std::uint32_t>(n_blocks));
  }
  const std::vector<Cue> cues = find_cues(asked);
  for (auto _ : state) {
    std::vector<CueRanking> rankings;
    for (const Cue& cue : cues) rankings.push_back({.weight = cue.weight, .ranked = index.rank(cue.text)});
    benchmark::DoNotOptimize(select_for_cues(rankings, missing, 8));
  }
  state.counters["sentences"] = static_cast<double>(cues.size());
}
BENCHMARK(choose)
    ->Args({1000, 1})
    ->Args({10000, 1})
    ->Args({10000, 10})
    ->Args({10000, 24})
    ->Unit(benchmark::kMillisecond);

// Argument: kilobytes of one message.
void find_asked(benchmark::State& state) {
  std::mt19937 random(1);
  std::string message;
  while (message.size() < static_cast<std::size_t>(state.range(0)) * 1024) {
    message += draw_text(random, 9) + (random() % 9 == 0 ? "? \"" : ". ") + draw_text(random, 4) + ".\n";
  }
  for (auto _ : state) benchmark::DoNotOptimize(find_cues(message));
}
BENCHMARK(find_asked)->Arg(10)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ebb
