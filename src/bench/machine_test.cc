#include "bench/machine.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(Machine, names_its_processor_and_its_memory) {
  const Machine machine = read_machine();
  EXPECT_FALSE(machine.cpu.empty());
  EXPECT_GE(machine.n_cpus, 1);
  EXPECT_GT(machine.memory_bytes, std::size_t{64} << 20);
  EXPECT_LE(machine.available_bytes, machine.memory_bytes);
}

TEST(Machine, bandwidth_is_measured_over_more_than_the_last_cache_holds) {
  const auto bandwidth = measure_bandwidth(2, 3);
  ASSERT_TRUE(bandwidth.ok()) << bandwidth.status().message();
  EXPECT_GE(bandwidth->buffer_bytes, 4 * read_machine().last_cache_bytes);
  EXPECT_EQ(bandwidth->read_gb_s.n, 3);
  EXPECT_EQ(bandwidth->copy_gb_s.n, 3);
  // No memory of today is outside: a figure beyond means that the loop was optimised away or the clock misread.
  EXPECT_GT(bandwidth->read_gb_s.min, 0.01);
  EXPECT_LT(bandwidth->read_gb_s.max, 5000.0);
  EXPECT_GT(bandwidth->copy_gb_s.min, 0.01);
  EXPECT_LT(bandwidth->copy_gb_s.max, 5000.0);
}

TEST(Machine, a_measurement_on_no_thread_is_refused) {
  EXPECT_EQ(measure_bandwidth(0, 3).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(measure_bandwidth(1, 0).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ebb
