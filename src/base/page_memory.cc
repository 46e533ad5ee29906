#include "base/page_memory.h"

#include <sys/mman.h>

namespace ebb {

PageMemory::PageMemory(std::size_t n_bytes) {
  void* const data = mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return;
  madvise(data, n_bytes, MADV_HUGEPAGE);  // advice: a refusal costs speed only
  data_ = static_cast<std::byte*>(data);
  n_bytes_ = n_bytes;
}

PageMemory::~PageMemory() {
  if (data_ != nullptr) munmap(data_, n_bytes_);
}

}  // namespace ebb
