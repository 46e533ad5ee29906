// Random and mutated recordings: whatever they hold, there is a report or a refusal that says why.
#include <random>

#include <gtest/gtest.h>

#include "base/toy_rounds.h"
#include "replay/areas_replay.h"

namespace ebb {
namespace {

std::string numbers(std::mt19937& random, std::size_t n) {
  std::string text = "[";
  for (std::size_t i = 0; i < n; ++i) text += (i > 0 ? "," : "") + std::to_string(random() % 5) + ".5";
  return text + "]";
}

std::string random_recording(std::mt19937& random) {
  static const std::vector<std::string> kModes = {"SUM", "NORM_SUM", "ADAPTIVE_RKV"};
  static const std::vector<std::string> kAnchors = {"RANDOM", "ZEROS", "ONES", "MEAN", "ALTERNATE"};
  const bool flag = random() % 2 == 0;
  std::string text =
      R"({"block_size":2,"n_layers":2,"upstream":)" + std::string(flag ? "true" : "false") +
      R"(,"cache_eviction_config":{"start_size":2,"recent_size":2,"max_cache_size":8,"apply_rotation":true,)"
      R"("snapkv_window_size":)" +
      std::to_string(random() % 4) + R"(,"aggregation_mode":")" + kModes[random() % kModes.size()] +
      R"(","kvcrush_config":{"budget":)" + std::to_string(random() % 3) + R"(,"anchor_point_mode":")" +
      kAnchors[random() % kAnchors.size()] + R"("}},"steps":[)";
  std::size_t n_tokens = 3 + random() % 12;
  for (int i = 0; i < 4; ++i) {
    text += i == 0 ? R"({"prompt":true,"scores":[)" : R"(,{"scores":[)";
    text += numbers(random, n_tokens) + "," + numbers(random, n_tokens) + "]}";
    n_tokens = n_tokens < 9 ? n_tokens + 1 : 9;
  }
  return text + "]}";
}

void mutate(std::string& text, std::mt19937& random) {
  static const std::vector<std::string> kWords = {"-1",   "0",    "1e9", "2147483647", "1e400", "null", "[]", "{}",
                                                  "\"\"", "true", ",",   "[[1]]",      "-0.0",  "4096", "9",  "1"};
  const std::size_t at = random() % text.size();
  const std::string& word = kWords[random() % kWords.size()];
  switch (random() % 4) {
    case 0: text[at] = static_cast<char>(random()); break;
    case 1: text.erase(at, 1 + random() % 5); break;
    case 2: text.insert(at, word); break;
    default: {  // another number where one stands, so that much stays JSON
      const std::size_t begin = text.find_first_of("0123456789", at);
      if (begin == std::string::npos) return;
      text.replace(begin, text.find_first_not_of("0123456789.", begin) - begin, word);
    }
  }
  if (text.empty()) text = "{}";
}

TEST(AreasReplayRandom, answers_or_refuses_whatever_a_recording_holds) {
  int n_answered = 0;
  int n_refused = 0;
  for (RandomRounds rounds(6000); rounds.next();) {
    SCOPED_TRACE(rounds.seed());
    std::mt19937 random(rounds.seed());
    std::string text = random_recording(random);
    for (auto n = random() % 4; n > 0; --n) mutate(text, random);
    const Result<AreasReplay> replay = read_areas_replay(text);
    const Result<AreasReplayReport> report = replay.ok() ? run_areas_replay(*replay) : replay.status();
    if (!report.ok()) {
      ++n_refused;
      ASSERT_FALSE(report.status().message().empty()) << text;
      continue;
    }
    ++n_answered;
    ASSERT_FALSE(areas_replay_text(*replay, *report).empty());
    ASSERT_FALSE(areas_replay_json(*report).empty());
  }
  EXPECT_GT(n_answered, 500);
  EXPECT_GT(n_refused, 500);
}

}  // namespace
}  // namespace ebb
