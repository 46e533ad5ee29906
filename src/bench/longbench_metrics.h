// LongBench's measures of a reply (Bai et al. 2023, "LongBench: A Bilingual, Multitask Benchmark for Long Context
// Understanding"): 0 to 1 for one reply and one right answer.
//
// Small letters, punctuation and white space are those of ASCII. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ebb {

enum class LongBenchMetric : std::uint8_t { kQaF1, kRougeL, kClassification };
// "qa_f1"
[[nodiscard]] std::string_view name_of(LongBenchMetric metric);

// The harmonic mean of precision and recall of words, each counted as often as it stands on both sides; letters small, without
// punctuation and articles (SQuAD's F1).
[[nodiscard]] double qa_f1(std::string_view reply, std::string_view answer);

// ROUGE-L of summaries (Lin 2004), as the Python package `rouge`, which LongBench takes, counts it: sentences end at full
// stops; a word counts once on each side; those in common are the union, over all pairs of a reply's and an answer's
// sentence, of a longest common subsequence.
[[nodiscard]] double rouge_l(std::string_view reply, std::string_view answer);

// Of the classes whose names stand in the reply, one over their number if the right one is among them. Those whose name is
// only a part of the right one's do not count. (Of two such names that follow each other LongBench's own loop counts the second.)
[[nodiscard]] double classification(std::string_view reply, std::string_view answer,
                                    std::span<const std::string> classes);

}  // namespace ebb
