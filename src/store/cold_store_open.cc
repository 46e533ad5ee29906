// The one place that knows which kinds of tiers there are.
#include "store/cold_store.h"
#include "store/memory_tier.h"

namespace ebb {

Result<std::unique_ptr<ColdStore>> ColdStore::open(const ColdStoreOptions& options) {
  std::vector<std::unique_ptr<Tier>> tiers;
  if (options.ram_bytes > 0) tiers.push_back(std::make_unique<MemoryTier>(options.ram_bytes));
  if (options.disk) {
    FileSystem& system = options.system != nullptr ? *options.system : real_file_system();
    EBB_ASSIGN_OR_RETURN(tiers.emplace_back(), DiskTier::open(*options.disk, system));
  }
  return std::make_unique<ColdStore>(std::move(tiers), options.queue_bytes);
}

}  // namespace ebb
