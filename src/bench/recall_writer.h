// RecallWriter: writes one recall task: draws its facts, lays them into a haystack, cuts that into messages.
//
// bench/recall_tasks.h says what a task is. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "bench/recall_tasks.h"

namespace ebb {

class RecallWriter {
 public:
  // All must outlive it. `sentences`: of the split's half of the text, where the haystack is made of one.
  RecallWriter(const Vocabulary& vocabulary, const RecallTaskOptions& options, std::span<const std::string> sentences,
               std::uint64_t seed);

  // `place`: where the one asked fact lies, as a share of the context; several lie evenly over it.
  Result<RecallTask> write(double place);

 private:
  // A sentence or a turn of small talk, and where it is to stand.
  struct Line {
    HaystackLine said;
    double place = 0.0;
    std::int32_t n_tokens = 0;
    std::int32_t question = -1;  // whose fact it tells
  };
  struct Fact {
    const Relation* relation = nullptr;
    std::string subject;
    std::string value;
    std::size_t wording = 0;
    const char* statement = nullptr;
    std::string twin;  // a subject that differs in one word; empty where none was wanted
  };

  Status draw_facts(double place);
  // No word of our sentences: of four letters, some pseudo-words are.
  std::optional<std::string> draw_name(NameKind kind);
  Result<Fact> draw_fact(const Relation& relation, bool with_twin);
  const Relation& draw_relation();
  // The same of the twin, with another value.
  Result<Fact> twin_of(const Fact& fact);
  Status tell(const Fact& fact, double place, std::int32_t question);
  void ask(const Fact& fact);
  Status mention(const Fact& fact);
  Status fill();
  void lay_out();
  Status write_pairs(double place);

  [[nodiscard]] bool is_clean(const HaystackLine& line) const;
  Result<std::int32_t> count(std::string_view text) const;
  double share() { return static_cast<double>(random_() >> 11U) * 0x1p-53; }
  template <class Words>
  const auto& one_of(const Words& words) {
    return words[random_() % words.size()];
  }

  const Vocabulary& vocabulary_;
  const RecallTaskOptions& options_;
  NameSource names_;
  HaystackWriter haystack_;
  std::mt19937_64 random_;
  std::string frames_;  // the sentences that facts and questions are told in
  RecallTask task_;
  std::vector<std::string> subjects_;
  std::vector<const Relation*> unused_;
  std::vector<Line> told_;
  std::vector<Line> between_;
};

}  // namespace ebb
