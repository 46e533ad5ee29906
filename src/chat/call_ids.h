// CallIds: names for tool calls: 9 letters and digits, which is what the strictest template takes, none given twice.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>

namespace ebb {

class CallIds {
 public:
  static constexpr std::size_t kIdBytes = 9;

  // Without a seed: from the system's randomness, so that ids differ between the replies of a conversation.
  explicit CallIds(std::uint64_t seed = random_seed()) : random_(seed) {}

  [[nodiscard]] std::string next();
  // An id that the conversation or the model already uses; false if it was known.
  bool reserve(std::string_view id) { return used_.emplace(id).second; }
  // 9 letters and digits.
  [[nodiscard]] static bool is_id(std::string_view text);
  // The text where it is one, else one made of it by its hash: other texts have others, but for one chance in 10^16.
  [[nodiscard]] static std::string short_id(std::string_view text);

 private:
  static std::uint64_t random_seed();

  std::mt19937_64 random_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace ebb
