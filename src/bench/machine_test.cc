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

}  // namespace
}  // namespace ebb
