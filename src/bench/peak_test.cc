#include "bench/peak.h"

#include <array>

#include <gtest/gtest.h>

#include "bench/toy_peak.h"

namespace ebb {
namespace {

TEST(Peak, a_probe_finds_speeds_that_a_machine_can_have) {
  auto probe = PeakProbe::open(2, kToyPeak);
  ASSERT_TRUE(probe.ok()) << probe.status().message();
  probe->choose(std::size_t{3} << 20);
  for (int i = 0; i < 3; ++i) {
    const PeakMoment moment = probe->measure();
    // None of today is outside: a figure beyond means that a loop was optimised away or the clock misread.
    EXPECT_GT(moment.read_gb_s, 0.01);
    EXPECT_LT(moment.read_gb_s, 20000.0);
    EXPECT_GT(moment.copy_gb_s, 0.01);
    EXPECT_LT(moment.copy_gb_s, 20000.0);
  }
  const Peak peak = probe->peak();
  EXPECT_EQ(peak.read_gb_s.n, 3);
  EXPECT_EQ(peak.n_threads, 2);
  EXPECT_EQ(peak.buffer_bytes, std::size_t{3} << 20);
  EXPECT_NE(peak.read_way.find("pages"), std::string::npos) << peak.read_way;
}

TEST(Peak, what_a_pass_reads_is_read_within_the_sizes_that_are_allowed) {
  auto probe = PeakProbe::open(1, kToyPeak);
  ASSERT_TRUE(probe.ok());
  for (const auto& [n_pass_bytes, n_bytes] : {std::pair{std::size_t{1}, kToyPeak.least},
                                              {kToyPeak.most, kToyPeak.most},
                                              {kToyPeak.most * 9, kToyPeak.most}}) {
    probe->choose(n_pass_bytes);
    probe->measure(n_pass_bytes);
    EXPECT_EQ(probe->peak().buffer_bytes, n_bytes);
  }
}

TEST(Peak, multiplies_are_counted_where_the_processor_has_an_instruction_for_them) {
  for (std::size_t i = 0; i < kMultiplyTypes; ++i) {
    const auto type = static_cast<MultiplyType>(i);
    const double n_operations = run_multiplies(type, 10);
    EXPECT_EQ(n_operations > 0.0, !multiply_instruction(type).empty()) << multiply_type_name(type);
    EXPECT_EQ(run_multiplies(type, 20), 2.0 * n_operations) << multiply_type_name(type);
  }
}

TEST(Peak, bytes_are_multiplied_no_slower_than_floats) {
  auto probe = PeakProbe::open(1, kToyPeak);
  ASSERT_TRUE(probe.ok());
  probe->choose(0);
  const PeakMoment moment = probe->measure();
  const double int8 = moment.multiply_gop_s[static_cast<std::size_t>(MultiplyType::kInt8)];
  const double f32 = moment.multiply_gop_s[static_cast<std::size_t>(MultiplyType::kF32)];
  // Four times in theory: half is left to a machine whose cores are taken.
  if (f32 > 0.0) {
    EXPECT_GT(int8, f32 / 2.0);
  }
}

TEST(Peak, shares_are_of_the_same_round_and_tell_how_often_more_was_done_than_probed) {
  const auto share = peak_share(std::array{9.0, 30.0, 10.0}, std::array{10.0, 20.0, 20.0});
  ASSERT_TRUE(share);
  EXPECT_EQ(share->share, (Spread{.median = 0.9, .min = 0.5, .max = 1.5, .n = 3}));
  EXPECT_EQ(share->n_beaten, 1);
  EXPECT_FALSE(peak_share(std::array{9.0}, std::array{0.0})) << "no limit was found";

  PeakBeaten beaten;
  beaten.add(*share);
  beaten.add({.share = {.median = 0.5, .min = 0.4, .max = 0.6, .n = 2}});
  EXPECT_EQ(beaten.n_rounds, 5);
  EXPECT_EQ(beaten.n_beaten, 1);
  EXPECT_EQ(beaten.most, 1.5);
}

TEST(Peak, a_probe_on_no_thread_is_refused) {
  EXPECT_EQ(PeakProbe::open(0, kToyPeak).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(PeakProbe::open(1, {.least = 1, .most = 1}).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ebb
