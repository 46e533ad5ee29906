// Token origins: where the tokens of a prompt came from, each counted once (law 7).
//
// One struct and one table of names for turns, the scheduler's sums, the API, metrics and benches.
// Thread rule: a value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

namespace ebb {

enum class Origin : std::uint8_t {
  kHotAlready,
  kPartlyHot,            // hot already, in some of the heads that may be looked at
  kShared,               // hot in frames of another session, which now serve both: no byte moved
  kRecalledExact,        // from the cold store, byte for byte
  kRecalledApproximate,  // turned to another anchor, or grafted from behind other text
  kRecomputed,
  kHole,     // visible to no head when the first token was sampled
  kCleared,  // likewise, since whoever said it no longer wanted it in sight
  kNew,      // computed for the first time
};
inline constexpr std::size_t kOrigins = 9;

struct OriginName {
  Origin origin;
  std::string_view name;     // as JSON fields and metrics spell it
  std::string_view meaning;  // for help texts
};
inline constexpr std::array<OriginName, kOrigins> kOriginNames = {{
    {Origin::kHotAlready, "hot", "hot in the cache already"},
    {Origin::kPartlyHot, "partly_hot", "hot already, in some heads only"},
    {Origin::kShared, "shared", "hot in frames of another session"},
    {Origin::kRecalledExact, "recalled_exact", "recalled byte for byte"},
    {Origin::kRecalledApproximate, "recalled_approximate", "recalled at another anchor or behind other text"},
    {Origin::kRecomputed, "recomputed", "computed again"},
    {Origin::kNew, "new", "computed for the first time"},
    {Origin::kHole, "holes", "not visible to the model in any head"},
    {Origin::kCleared, "cleared", "not visible since the client cleared it"},
}};

template <class Count>
class OriginCounts {
 public:
  [[nodiscard]] Count& operator[](Origin origin) { return n_[static_cast<std::size_t>(origin)]; }
  [[nodiscard]] Count operator[](Origin origin) const { return n_[static_cast<std::size_t>(origin)]; }
  [[nodiscard]] Count total() const { return std::accumulate(n_.begin(), n_.end(), Count{0}); }

  // To no head.
  [[nodiscard]] Count n_unseen() const { return (*this)[Origin::kHole] + (*this)[Origin::kCleared]; }
  // By a forward pass.
  [[nodiscard]] Count n_computed() const { return (*this)[Origin::kNew] + (*this)[Origin::kRecomputed]; }

  template <class Other>
  OriginCounts& operator+=(const OriginCounts<Other>& other) {
    for (const OriginName& name : kOriginNames) (*this)[name.origin] += other[name.origin];
    return *this;
  }

  friend bool operator==(const OriginCounts&, const OriginCounts&) = default;

 private:
  std::array<Count, kOrigins> n_{};
};

// The counts of one turn.
using TokenOrigins = OriginCounts<std::int32_t>;
// The sums of many turns.
using TokenOriginSums = OriginCounts<std::int64_t>;

}  // namespace ebb
