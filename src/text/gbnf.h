// Checks a GBNF grammar before libllama compiles it.
//
// libllama prints what it cannot parse, allocates without end for {3,1} or a long literal repeated, and loops for ever
// on left recursion that hides behind rules which may be empty. This check follows its syntax and refuses all of that
// with a line number, so that what passes is compiled quietly and in bounded time and memory. (How long matching takes
// is the grammar's own affair: an ambiguous one keeps many parses alive.)
//
// Thread rule: a function without state.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/vocabulary.h"

namespace ebb {

struct GbnfLimits {
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 19;
  // What the grammar becomes when repetitions are written out. libllama recurses over chains of rules when it compiles;
  // 10000 fit in 2 MB of stack.
  static constexpr std::size_t kMaxRules = 10000;
  static constexpr std::size_t kMaxElements = 500000;
  static constexpr std::size_t kMaxNesting = 200;
  // Ways in which one rule can begin. Compiling and matching compare them all with each other.
  static constexpr std::size_t kMaxBeginnings = 20000;
  // libllama's own, for {m,n} and for products of nested ones.
  static constexpr std::size_t kMaxRepetitions = 2000;
};

// The tokens that the grammar names as <text> or <[id]> (not those that it excludes), which must be tokens of the
// vocabulary. kInvalidArgument with line and reason.
[[nodiscard]] Result<std::vector<Token>> check_gbnf(const Vocabulary& vocabulary, std::string_view grammar,
                                                    std::string_view root);

}  // namespace ebb
