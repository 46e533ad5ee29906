// Document engines: engines of one model for the document bench, by the size of their blocks and by where what leaves is kept.
//
// What is evicted and recalled as a whole depends on the budget, and on arms. Disks are folders of their own beside the machine's
// other temporary files, and go when this does. Thread rule: the engines'.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "bench/document.h"
#include "engine/engine.h"

namespace ebb {

class DocumentEngines {
 public:
  // The options must outlive it.
  explicit DocumentEngines(const DocumentOptions& options) : options_(options) {}
  ~DocumentEngines();
  DocumentEngines(const DocumentEngines&) = delete;
  DocumentEngines& operator=(const DocumentEngines&) = delete;

  // `n_ram_blocks`: of what left, how many RAM holds, where a disk holds the others; 0: RAM holds all.
  Result<Engine*> get(std::int32_t block_size, std::int32_t n_ram_blocks = 0);
  // Of a budget; 0: of all that there is.
  [[nodiscard]] std::int32_t block_size(std::int32_t n_tokens) const;

 private:
  Result<ColdStoreOptions> store_for(std::int32_t block_size, std::int32_t n_ram_blocks);

  const DocumentOptions& options_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::unique_ptr<Engine>> engines_;
  std::vector<std::filesystem::path> folders_;
};

}  // namespace ebb
