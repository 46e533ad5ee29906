// BodyShares: how many bytes of request bodies each owner has on their way, so that one cannot take the room of all.
//
// It does not know requests or keys. Owners that have none take no memory. Thread rule: any thread.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace ebb {

class BodyShares {
 public:
  // One body of this owner's has n_now bytes instead of n_before; all that the owner has then.
  std::size_t change(const std::string& owner, std::size_t n_before, std::size_t n_now) {
    // What has no body takes no memory, nor does giving back, which must not fail.
    if (n_before == 0 && n_now == 0) return 0;
    const std::lock_guard lock(mutex_);
    const auto entry = n_now > n_before ? bytes_.try_emplace(owner, 0).first : bytes_.find(owner);
    if (entry == bytes_.end()) return 0;
    const std::size_t n_all = entry->second += n_now - n_before;
    if (n_all == 0) bytes_.erase(entry);
    return n_all;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::size_t> bytes_;
};

}  // namespace ebb
