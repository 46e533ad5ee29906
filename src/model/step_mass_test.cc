#include "model/step_mass.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <span>

#include <gtest/gtest.h>

#include "model/toy_attention.h"
#include "model/toy_tables.h"

namespace ebb::step_mass_test {
namespace {

constexpr std::int32_t kLayers = 2;
constexpr std::int32_t kHeads = 2;
constexpr std::int32_t kBlockSize = 8;

// Sessions of whole blocks with holes, some in single heads only.
class World {
 public:
  explicit World(std::uint32_t seed) : random_(seed) {}

  // Its last n_rows tokens are the step's.
  void add(std::int32_t n_blocks, std::int32_t n_rows, std::int32_t n_mass_rows) {
    toy::ToyTables session(pool_, kLayers, kHeads, kBlockSize);
    for (std::int32_t b = 0; b < n_blocks; ++b) {
      // Positions that no block ever had.
      session.open_block(session.end() + static_cast<std::int32_t>(random_() % 3));
      session.append(kBlockSize);
    }
    for (std::int32_t b = 0; b + 1 < n_blocks; ++b) {
      if (random_() % 4 == 0) session.evict(BlockIndex(b));
      if (random_() % 4 == 0) session.evict(BlockIndex(b), LayerIndex(1), HeadIndex(0));
    }
    step_.sequences.push_back({.row_begin = n_rows_,
                               .n_rows = n_rows,
                               .first = session.end() - n_rows,
                               .n_mass_rows = n_mass_rows,
                               .n_window_rows = std::min(2, n_mass_rows)});
    n_rows_ += n_rows;
    sessions_.push_back(std::move(session));
  }

  // Rows of every layer drawn anew, summed by that many threads.
  void run(std::int32_t n_threads) {
    fill_step();
    mass_.clear();
    mass_.begin(step_);
    mass_.reserve_rows(step_);
    std::mt19937 same(5);
    rows_.clear();
    for (std::int32_t layer = 0; layer < kLayers; ++layer) {
      rows_.emplace_back(to_size(n_rows_ * kHeads * step_.mass_stride));
      for (float& x : rows_.back()) x = std::uniform_real_distribution<float>(0.0F, 1.0F)(same);
      std::copy(rows_.back().begin(), rows_.back().end(), mass_.rows());
      toy::run_threads(n_threads, [&](std::int32_t ith) { mass_.add_rows(step_, LayerIndex(layer), ith, n_threads); });
    }
  }

  // Those of the rows that asked, first to last.
  std::vector<float> asked(std::size_t sequence, std::int32_t layer, std::int32_t head, std::size_t entry) const {
    const SequenceRows& rows = step_.sequences[sequence];
    std::vector<float> asked;
    for (std::int32_t row = rows.n_rows - rows.n_mass_rows; row < rows.n_rows; ++row) {
      const std::size_t at = to_size(((rows.row_begin + row) * kHeads + head) * step_.mass_stride) + entry;
      asked.push_back(rows_[to_size(layer)][at]);
    }
    return asked;
  }

  [[nodiscard]] HeadMass of(std::size_t sequence, std::int32_t layer, std::int32_t head) const {
    return mass_.head(step_, sequence, LayerIndex(layer), HeadIndex(head));
  }
  [[nodiscard]] const StepMass& mass() const { return mass_; }
  [[nodiscard]] const AttentionStep& step() const { return step_; }
  [[nodiscard]] std::size_t n_sessions() const { return sessions_.size(); }

 private:
  void fill_step() {
    step_.n_layers = kLayers;
    step_.n_kv_heads = kHeads;
    step_.tables.clear();
    step_.mass_stride = 3;  // wider than need be
    for (const auto& session : sessions_) {
      for (std::int32_t layer = 0; layer < kLayers; ++layer) {
        for (std::int32_t head = 0; head < kHeads; ++head) {
          step_.tables.push_back(session.table(LayerIndex(layer), HeadIndex(head)));
          step_.mass_stride = std::max(step_.mass_stride, static_cast<std::int32_t>(step_.tables.back().size()) + 3);
        }
      }
    }
  }

  std::mt19937 random_;
  FramePool pool_{4096};
  std::vector<toy::ToyTables> sessions_;
  AttentionStep step_;
  std::int32_t n_rows_ = 0;
  std::vector<std::vector<float>> rows_;
  StepMass mass_;
};

TEST(StepMass, reduces_the_last_rows_of_each_sequence_that_asks) {
  World world(1);
  world.add(200, 17, 17);
  world.add(9, 4, 0);
  world.add(90, 30, 3);
  world.run(2);
  for (std::size_t s = 0; s < world.n_sessions(); ++s) {
    for (std::int32_t layer = 0; layer < kLayers; ++layer) {
      for (std::int32_t head = 0; head < kHeads; ++head) {
        const HeadMass mass = world.of(s, layer, head);
        const BlockTable table = world.step().table(s, LayerIndex(layer), HeadIndex(head));
        ASSERT_EQ(mass.sum.size(), s == 1 ? 0 : table.size());
        ASSERT_EQ(mass.table.data(), s == 1 ? nullptr : table.data());
        for (std::size_t e = 0; e < mass.sum.size(); ++e) {
          const std::vector<float> asked = world.asked(s, layer, head, e);
          ASSERT_EQ(mass.sum[e], static_cast<float>(std::accumulate(asked.begin(), asked.end(), 0.0))) << e;
          const std::span<const float> window = std::span(asked).last(std::min<std::size_t>(2, asked.size()));
          ASSERT_EQ(mass.window_sum[e], static_cast<float>(std::accumulate(window.begin(), window.end(), 0.0))) << e;
          ASSERT_EQ(mass.window_max[e], *std::ranges::max_element(window)) << e;
          ASSERT_EQ(mass.last[e], asked.back()) << e;
        }
      }
    }
  }
}

TEST(StepMass, gives_the_same_bits_for_any_number_of_threads) {
  std::vector<std::vector<float>> first;
  for (const std::int32_t n_threads : {1, 2, 3, 8}) {
    World world(2);
    world.add(300, 40, 33);
    world.add(70, 5, 5);
    world.run(n_threads);
    std::vector<std::vector<float>> all;
    for (std::size_t s = 0; s < 2; ++s) {
      const HeadMass mass = world.of(s, 1, 1);
      for (const auto column : {mass.sum, mass.window_sum, mass.window_max, mass.last})
        all.emplace_back(column.begin(), column.end());
    }
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << n_threads;
  }
}

TEST(StepMassDeathTest, it_refuses_to_answer_for_a_step_that_had_none) {
  World world(4);
  world.add(3, 1, 1);
  world.run(1);
  StepMass mass = world.mass();
  EXPECT_EQ(world.of(0, 0, 0).sum.size(), world.step().tables[0].size());
  EXPECT_DEATH((void)mass.head(world.step(), 1, LayerIndex(0), HeadIndex(0)), "no mass of sequence 1");
  mass.clear();
  EXPECT_DEATH((void)mass.head(world.step(), 0, LayerIndex(0), HeadIndex(0)), "the last step had none");
}

}  // namespace
}  // namespace ebb::step_mass_test
