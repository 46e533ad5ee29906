#include "bench/document_engines.h"

#include <system_error>

#include <unistd.h>

namespace ebb {
namespace {

// What a record has beside its frames is less than that part of them; more than half of another block would find room.
constexpr std::size_t kRecordShare = 16;

}  // namespace

// A folder is removed once nobody writes to it.
DocumentEngines::~DocumentEngines() {
  engines_.clear();
  for (const std::filesystem::path& folder : folders_) {
    std::error_code failed;  // what cannot be removed is left
    std::filesystem::remove_all(folder, failed);
  }
}

std::int32_t DocumentEngines::block_size(std::int32_t n_tokens) const {
  return options_.block_size > 0 ? options_.block_size : block_size_for(n_tokens);
}

Result<Engine*> DocumentEngines::get(std::int32_t block_size, std::int32_t n_ram_blocks) {
  std::unique_ptr<Engine>& engine = engines_[{block_size, n_ram_blocks}];
  if (engine == nullptr) {
    EBB_ASSIGN_OR_RETURN(const ColdStoreOptions store, store_for(block_size, n_ram_blocks));
    EBB_ASSIGN_OR_RETURN(engine, Engine::open({.model = options_.model,
                                               .n_threads = options_.n_threads,
                                               .kv_type = options_.kv_type,
                                               .block_size = block_size,
                                               .store = store,
                                               .embedding_model = options_.embedding_model}));
  }
  return engine.get();
}

// How large a block is in frames is known of an engine with blocks as large.
Result<ColdStoreOptions> DocumentEngines::store_for(std::int32_t block_size, std::int32_t n_ram_blocks) {
  if (n_ram_blocks == 0) return ColdStoreOptions();
  EBB_ASSIGN_OR_RETURN(const Engine* const like, get(block_size));
  const std::size_t n_bytes = like->shape().n_heads() * like->layout().frame_bytes();
  std::error_code failed;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(failed);
  if (failed) return error(Code::kIo, "no folder for temporary files: {}", failed.message());
  folders_.push_back(temporary / fmt::format("ebb-document-bench-{}-{}-{}", getpid(), block_size, n_ram_blocks));
  return ColdStoreOptions{.ram_bytes = static_cast<std::size_t>(n_ram_blocks) * (n_bytes + n_bytes / kRecordShare),
                          .disk = DiskOptions{.folder = folders_.back(), .sync = SyncPolicy::kNever}};
}

}  // namespace ebb
