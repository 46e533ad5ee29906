# Headers that most files include are parsed once and not by each of them (docs/decisions/0016-the-first-build.md).
#
# CMAKE_DISABLE_PRECOMPILE_HEADERS=ON turns it off: for ccache over several checkouts, and to see that every file includes
# what it uses.
include_guard(GLOBAL)

set(EBB_STANDARD_HEADERS
  <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstdint> <cstring> <deque> <filesystem> <functional> <limits> <map>
  <memory> <mutex> <optional> <random> <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>
  <fmt/format.h>)

# precompile(TARGET KIND): KIND is "standard", "json" (nlohmann's besides) or "tests" (GoogleTest's besides, for programs).
# The first target of a kind builds it, and the others use that: all are compiled alike.
function(precompile target kind)
  get_property(first GLOBAL PROPERTY EBB_PRECOMPILED_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
    return()
  endif()
  set(headers ${EBB_STANDARD_HEADERS})
  if(kind STREQUAL "json")
    list(APPEND headers <nlohmann/json.hpp>)
  elseif(kind STREQUAL "tests")
    list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  target_precompile_headers(${target} PRIVATE ${headers})
  set_property(GLOBAL PROPERTY EBB_PRECOMPILED_${kind} ${target})
endfunction()
