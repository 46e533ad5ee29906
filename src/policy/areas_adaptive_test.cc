// Areas as a policy with norm=2, Adaptive R-KV: beside a plain reading of the definition, and beside the scheme itself.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/to_size.h"
#include "policy/areas.h"
#include "policy/choose.h"
#include "policy/key_diversity.h"
#include "policy/policy_test.h"

namespace ebb::areas_adaptive_test {
namespace {

using ::testing::HasSubstr;

constexpr std::int32_t kBlock = 8;
constexpr std::int32_t kStart = 16;
constexpr std::int32_t kRecent = 32;
constexpr std::int32_t kPrompt = 203;
constexpr std::int32_t kHeads = 2;
constexpr std::int32_t kDim = 4;
constexpr std::int32_t kEnd = (kPrompt + 1) / kBlock * kBlock - kRecent;  // of the evictable area

// What a prompt's last queries gave its tokens together, and their keys.
struct Told {
  std::vector<float> scores;  // [token]
  std::vector<float> keys;    // [token][head][dim]
};

// Few scores, so that there are ties; keys along axes, whose cosines tie and are exact, or any.
Told random_prompt(std::uint32_t seed, bool along_axes) {
  std::mt19937 random(seed);
  Told told;
  for (std::int32_t i = 0; i < kPrompt; ++i) told.scores.push_back(static_cast<float>(random() % 7) / 4.0F);
  for (std::int32_t i = 0; i < (kPrompt + 1) * kHeads; ++i) {
    std::vector<float> key(kDim, 0.0F);
    if (along_axes) {
      key[random() % kDim] = 1.0F;
    } else {
      for (float& x : key) x = static_cast<float>(random() % 2000) / 1000.0F - 0.7F;
    }
    told.keys.insert(told.keys.end(), key.begin(), key.end());
  }
  return told;
}

// Rows of so many tokens.
Evidence evidence_of(const Told& told, std::int32_t grain) {
  const std::int32_t n_rows = (kPrompt + grain) / grain;
  Evidence evidence = policy_test::blocks(n_rows, 1, grain);
  evidence.end = Position(kPrompt + 1);
  evidence.blocks.back().span.end = evidence.end;
  evidence.blocks.back().hold = evidence.blocks.back().span.n_tokens() < grain ? Hold::kPinned : Hold::kNone;
  ScopeEvidence& scope = evidence.scopes.front();
  std::vector<double> means(told.scores.begin(), told.scores.end());
  for (double& mean : means) mean /= 8.0;
  means.resize(to_size(n_rows * grain), 0.0);
  if (grain == 1) {
    scope.window_mean = means;
  } else {
    scope.window_mean.assign(to_size(n_rows), 5.0);  // is not looked at
    scope.slices = {.n_tokens = 1, .n_slices = to_size(grain), .window_mean = means};
  }
  scope.n_key_heads = kHeads;
  scope.n_key_dims = kHeads * kDim;
  for (std::int32_t row = 0; row < n_rows; ++row) {
    const bool is_full = (row + 1) * grain <= kPrompt + 1;
    scope.is_read.push_back(is_full);
    for (std::int32_t i = 0; i < kHeads * kDim; ++i) {
      double sum = 0.0;
      for (std::int32_t t = row * grain; is_full && t < (row + 1) * grain; ++t) {
        double square = 0.0;
        for (std::int32_t d = 0; d < kDim; ++d) {
          const double x = told.keys[to_size(t * kHeads * kDim + i / kDim * kDim + d)];
          square += x * x;
        }
        sum += double{told.keys[to_size(t * kHeads * kDim + i)]} / std::sqrt(square);
      }
      scope.key_direction.push_back(static_cast<float>(sum / grain));
    }
  }
  return evidence;
}

std::string spec_of(double mass, std::int32_t block = kBlock) {
  return fmt::format("areas:norm=2,start={},recent={},block={},mass={}", kStart, kRecent, block, mass);
}

// Blocks, which leave whole.
std::set<std::int32_t> victims_of_policy(const std::string& spec, const Evidence& evidence, std::int32_t n_blocks,
                                         std::int32_t block = kBlock) {
  const std::int32_t n_in_block = block / evidence.grain;
  const std::int32_t n_rows = n_blocks * n_in_block;
  std::map<std::int32_t, std::int32_t> rows;
  for (const Victim& victim : choose_victims(*policy_test::policy(spec), evidence, n_rows, n_rows)) {
    ++rows[victim.block.value() / n_in_block];
  }
  std::set<std::int32_t> blocks;
  for (const auto& [b, n] : rows) {
    EXPECT_EQ(n, n_in_block) << "block " << b << " leaves in part";
    blocks.insert(b);
  }
  return blocks;
}

// The definition, read plainly: numbers of blocks of the prompt of which n_keep evictable ones stay. Rows of `grain` tokens are
// what is compared; of one token, the original's.
std::set<std::int32_t> victims_by_definition(const Told& told, double mass, std::int32_t n_keep, std::int32_t grain) {
  std::map<std::int32_t, double> scores;
  double total = 0.0;
  for (std::int32_t b = kStart / kBlock; b < kEnd / kBlock; ++b) {
    for (std::int32_t t = b * kBlock; t < (b + 1) * kBlock; ++t) {
      double most = 0.0;
      for (std::int32_t u = t; u < std::min(t + 7, kPrompt); ++u)
        most = std::max(most, double{told.scores[to_size(u)]});
      scores[b] += most;
    }
    total += scores[b];
  }
  std::set<std::int32_t> left;
  for (const auto& [b, score] : scores) left.insert(b);
  double taken = 0.0;
  std::int32_t n_taken = 0;
  for (; n_taken < n_keep && taken < mass * total; ++n_taken) {
    const auto best = std::ranges::max_element(left, {}, [&](std::int32_t b) { return scores.at(b); });
    taken += scores.at(*best);
    left.erase(best);
  }
  if (n_taken == n_keep) return left;

  const auto cosine = [&](std::int32_t s, std::int32_t t, std::int32_t head) {
    double st = 0.0;
    double ss = 0.0;
    double tt = 0.0;
    for (std::int32_t d = 0; d < kDim; ++d) {
      const double x = told.keys[to_size((s * kHeads + head) * kDim + d)];
      const double y = told.keys[to_size((t * kHeads + head) * kDim + d)];
      st += x * y;
      ss += x * x;
      tt += y * y;
    }
    return s == t ? 0.0 : st / std::sqrt(ss * tt);
  };
  const auto row_cosine = [&](std::int32_t a, std::int32_t b, std::int32_t head) {
    double sum = 0.0;
    for (std::int32_t s = a * grain; s < (a + 1) * grain; ++s) {
      for (std::int32_t t = b * grain; t < (b + 1) * grain; ++t) sum += cosine(s, t, head);
    }
    return sum / (grain * grain);
  };
  std::map<std::int32_t, double> diversity;
  for (const std::int32_t b : left) {
    for (std::int32_t head = 0; head < kHeads; ++head) {
      for (std::int32_t row = b * kBlock / grain; row < (b + 1) * kBlock / grain; ++row) {
        std::map<std::int32_t, double> to_row;
        double mean = 0.0;
        for (std::int32_t other = kStart / grain; other < kEnd / grain; ++other) {
          to_row[other] = row_cosine(row, other, head);
          mean += to_row[other] / ((kEnd - kStart) / grain);
        }
        for (const auto& [other, value] : to_row) {
          if (value >= mean && left.contains(other * grain / kBlock)) diversity[b] -= value;
        }
      }
    }
  }
  for (; n_taken < n_keep; ++n_taken) {
    left.erase(std::ranges::max_element(left, {}, [&](std::int32_t b) { return diversity.at(b); }));
  }
  return left;
}

TEST(AreasAdaptive, chooses_what_the_definition_says_however_many_stay) {
  constexpr std::int32_t kEvictable = (kEnd - kStart) / kBlock;
  std::size_t n_by_score = 0;
  std::size_t n_by_keys = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const std::int32_t grain = 1 << (seed % 4);
    const double mass = seed % 5 == 0 ? 0.0 : 0.2 * (seed % 5);
    // Means over rows do not tie as means over tokens do.
    const Told told = random_prompt(seed, seed % 8 == 0);
    const Evidence evidence = evidence_of(told, grain);
    for (const std::int32_t n_keep : {0, 3, 9, kEvictable - 1}) {
      SCOPED_TRACE(fmt::format("seed {}, grain {}, mass {}, {} stay", seed, grain, mass, n_keep));
      const std::set<std::int32_t> expected = victims_by_definition(told, mass, n_keep, grain);
      const std::int32_t n_leaving = kEvictable - n_keep;
      EXPECT_EQ(victims_of_policy(spec_of(mass), evidence, n_leaving), expected);
      n_by_score += victims_by_definition(told, 1.0, n_keep, grain) == expected ? 0 : 1;
      n_by_keys += victims_by_definition(told, 0.0, n_keep, grain) == expected ? 0 : 1;
    }
  }
  EXPECT_GT(n_by_score, 60U) << "keys count";
  EXPECT_GT(n_by_keys, 40U) << "scores count";
}

TEST(AreasAdaptive, chooses_behind_a_prompt_what_the_scheme_chooses) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Told told = random_prompt(seed, seed % 2 == 0);
    const AreasConfig config{.start_tokens = kStart,
                             .recent_tokens = kRecent,
                             .max_tokens = kStart + kRecent + 6 * kBlock,
                             .aggregation = Aggregation::kAdaptiveRkv,
                             .n_window_queries = 8,
                             .adaptive = {.attention_mass = 0.3}};
    AreasSequence sequence = AreasSequence::make(config, {.block_size = kBlock, .n_layers = 1}, kPrompt).value();
    ASSERT_TRUE(sequence.register_scores({.n_scheduled = kPrompt, .scores = {{told.scores}}}).ok());
    ASSERT_TRUE(sequence.evict().ok());
    // A token that looks at nothing halves all means.
    const std::vector<float> nothing(kPrompt + 1, 0.0F);
    ASSERT_EQ(sequence.wanted_diversity(1), kEnd - kStart);
    ASSERT_TRUE(sequence.register_scores({.n_scheduled = 1, .scores = {{nothing}}}).ok());
    const std::vector<float> keys(told.keys.begin() + kStart * kHeads * kDim, told.keys.begin() + kEnd * kHeads * kDim);
    const auto diversity =
        key_diversity(keys, {.n_tokens = kEnd - kStart, .n_kv_heads = kHeads, .head_dim = kDim, .block_size = kBlock});
    ASSERT_TRUE(sequence.register_diversity(LayerIndex(0), diversity.value()).ok());
    const std::vector<std::int32_t> victims = sequence.evict().value().front().victims;
    EXPECT_EQ(victims_of_policy(spec_of(0.3), evidence_of(told, 1), static_cast<std::int32_t>(victims.size())),
              std::set<std::int32_t>(victims.begin(), victims.end()))
        << "seed " << seed;
  }
}

TEST(AreasAdaptive, compares_no_more_rows_than_it_may) {
  const Told told = random_prompt(1, false);
  const Evidence evidence = evidence_of(told, kBlock);
  const auto victims = [&](const std::string& parameters) {
    return victims_of_policy(spec_of(0.0) + parameters, evidence, 2);
  };
  const std::set<std::int32_t> by_score = victims_by_definition(told, 1.0, (kEnd - kStart) / kBlock - 2, kBlock);
  EXPECT_EQ(victims(",most=2"), by_score) << "the two that are looked at least are compared, and both leave";
  EXPECT_NE(victims(""), by_score);
}

TEST(AreasAdaptive, gives_a_score_to_every_row_whatever_the_evidence) {
  std::mt19937 random(7);
  const auto unit = [&] { return static_cast<double>(random() % 1001) / 1000.0; };
  for (int round = 0; round < 200; ++round) {
    Evidence evidence = policy_test::blocks(static_cast<std::int32_t>(random() % 40), 1, 1 << (random() % 7));
    ScopeEvidence& scope = evidence.scopes.front();
    // Some rows are not hot.
    std::erase_if(scope.rows, [&](const ScopeRow&) { return random() % 4 == 0; });
    policy_test::fill_columns(scope, unit);
    scope.n_key_heads = 3;
    const auto policy =
        policy_test::policy(fmt::format("areas:norm=2,slice=0,start={},recent={},block={},mass={},most={}",
                                        random() % 30, random() % 70, 1 + random() % 40, unit(), 2 + random() % 9));
    const std::vector<double> scores = policy->score(evidence, scope);
    ASSERT_EQ(scores.size(), scope.rows.size());
    for (const double score : scores) EXPECT_TRUE(std::isfinite(score));
  }
}

TEST(AreasAdaptive, asks_for_its_history_and_for_keys_and_refuses_what_has_no_meaning) {
  const Ask ask = policy_test::policy("areas:norm=2,history=20")->asks();
  EXPECT_EQ(ask, (Ask{.scope = Scope::kLayer, .window = 20, .slice = 1, .keys = true}));
  EXPECT_EQ(policy_test::policy("areas:norm=2")->asks().window, 8);
  EXPECT_FALSE(policy_test::policy("areas:mass=0.5")->asks().keys) << "which norm=2 alone looks at";
  EXPECT_THAT(policy_test::policy("areas:norm=2,crush=1")->check_grain(1).message(),
              HasSubstr("give crush=0, or norm=1"));
  EXPECT_TRUE(policy_test::policy("areas:norm=2")->check_grain(64).ok());
  for (const char* spec : {"areas:norm=3", "areas:norm=1.5", "areas:mass=1.1", "areas:mass=-0.1", "areas:history=0",
                           "areas:history=513", "areas:most=1", "areas:most=4097"}) {
    EXPECT_EQ(make_policy(spec).status().code(), Code::kInvalidArgument) << spec;
  }
}

}  // namespace
}  // namespace ebb::areas_adaptive_test
