// The demo's session: fourteen turns, of which the first plants a fact, the last asks for it, and twelve lie between.
#pragma once

#include <array>
#include <string_view>

namespace ebb {

struct DemoTurns {
  std::array<std::string_view, 14> user;
  // What the last answer must hold.
  std::string_view fact;
};

[[nodiscard]] const DemoTurns& demo_turns();

}  // namespace ebb
