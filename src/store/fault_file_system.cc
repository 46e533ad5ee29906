#include "store/fault_file_system.h"

namespace ebb {

class FaultFile : public File {
 public:
  FaultFile(FaultFileSystem& system, std::string path, std::shared_ptr<FaultFileSystem::Content> content)
      : system_(system), path_(std::move(path)), content_(std::move(content)) {}
  ~FaultFile() override {
    if (holds_lock_) system_.locked([&] { content_->locked = false; });
  }

  Status append(std::span<const std::byte> bytes) override {
    if (const auto hook = system_.locked([&] { return system_.before_append_; })) hook();
    return system_.locked([&] { return system_.append(path_, *content_, bytes); });
  }

  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into) const override {
    if (const auto hook = system_.locked([&] { return system_.before_read_; })) hook();
    return system_.locked([&] { return system_.read(path_, *content_, offset, into); });
  }

  Result<std::uint64_t> size() const override {
    return system_.locked([&]() -> Result<std::uint64_t> {
      if (!system_.power_ || system_.fails()) return system_.refuse(path_);
      return std::uint64_t{content_->data.size()};
    });
  }

  Status truncate(std::uint64_t n_bytes) override {
    return system_.locked([&] {
      if (!system_.power_ || system_.fails()) return system_.refuse(path_);
      content_->data.resize(n_bytes);
      content_->n_synced = std::min<std::size_t>(content_->n_synced, n_bytes);
      return Status();
    });
  }

  Status sync() override {
    return system_.locked([&] {
      ++system_.n_syncs_;
      if (!system_.power_ || system_.fails()) return system_.refuse(path_);
      content_->n_synced = content_->data.size();
      return Status();
    });
  }

  Result<bool> try_lock() override {
    return system_.locked([&]() -> Result<bool> {
      if (content_->locked) return false;
      content_->locked = holds_lock_ = true;
      return true;
    });
  }

 private:
  FaultFileSystem& system_;
  std::string path_;
  std::shared_ptr<FaultFileSystem::Content> content_;
  bool holds_lock_ = false;
};

void FaultFileSystem::power_on() {
  const std::lock_guard lock(mutex_);
  // A removal that was not synced may not have happened, nor the making of a file.
  for (auto& [path, content] : removed_) {
    if (draw(2) == 0) files_.emplace(path, content);
  }
  removed_.clear();
  std::erase_if(files_, [&](const auto& file) { return !file.second->in_folder && draw(2) == 0; });
  for (auto& [path, content] : files_) {
    std::vector<std::byte>& data = content->data;
    data.resize(content->n_synced + draw(data.size() - content->n_synced + 1));
    // The length may have reached the device before the bytes did.
    if (data.size() > content->n_synced && draw(2) == 0) {
      const std::size_t n_lost = draw(data.size() - content->n_synced + 1);
      std::fill(data.end() - static_cast<std::ptrdiff_t>(n_lost), data.end(), std::byte{0});
    }
    content->n_synced = data.size();
    content->in_folder = true;
    content->locked = false;
  }
  power_ = true;
}

void FaultFileSystem::set_bytes(const std::filesystem::path& path, std::vector<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  set_content(path.string(), std::move(bytes));
}

FaultFileSystem::Copy FaultFileSystem::copy() {
  const std::lock_guard lock(mutex_);
  Copy copy;
  for (const auto& [path, content] : files_) copy.emplace(path, content->data);
  return copy;
}

void FaultFileSystem::put_back(const Copy& copy) {
  const std::lock_guard lock(mutex_);
  std::erase_if(files_, [&](const auto& file) { return !copy.contains(file.first); });
  for (const auto& [path, bytes] : copy) set_content(path, bytes);
}

void FaultFileSystem::set_content(const std::string& path, std::vector<std::byte> bytes) {
  auto& content = files_[path];
  if (!content) content = std::make_shared<Content>();
  content->n_synced = bytes.size();
  content->data = std::move(bytes);
}

std::vector<std::string> FaultFileSystem::paths() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> paths;
  for (const auto& [path, content] : files_) paths.push_back(path);
  return paths;
}

Status FaultFileSystem::append(const std::string& path, Content& content, std::span<const std::byte> bytes) {
  ++n_appends_;
  if (!power_) return refuse(path);
  if (read_only_) return error(Code::kIo, "{}: cannot be written to: Read-only file system", path);
  std::uint64_t n_used = 0;
  for (const auto& [name, file] : files_) n_used += file->data.size();
  const std::uint64_t n_free = n_used < space_ ? space_ - n_used : 0;
  const std::uint64_t n_written = fails() ? draw(bytes.size()) : std::min<std::uint64_t>(bytes.size(), n_free);
  content.data.insert(content.data.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n_written));
  if (n_written == bytes.size()) return {};
  if (n_written < n_free) return refuse(path);
  return error(Code::kOutOfBudget, "{}: cannot be written to: No space left on device", path);
}

Result<std::size_t> FaultFileSystem::read(const std::string& path, const Content& content, std::uint64_t offset,
                                          std::span<std::byte> into) {
  ++n_reads_;
  if (!power_) return refuse(path);
  if (offset >= content.data.size()) return std::size_t{0};
  std::size_t n_read = std::min<std::size_t>(into.size(), content.data.size() - offset);
  std::copy_n(content.data.begin() + static_cast<std::ptrdiff_t>(offset), n_read, into.begin());
  if (n_read == 0 || !fails()) return n_read;
  switch (draw(3)) {
    case 0: return refuse(path);
    case 1: return static_cast<std::size_t>(draw(n_read));
    default: into[draw(n_read)] ^= static_cast<std::byte>(1U << draw(8)); return n_read;
  }
}

Result<std::unique_ptr<File>> FaultFileSystem::open(const std::filesystem::path& path, FileUse use) {
  const std::lock_guard lock(mutex_);
  if (!power_ || fails()) return refuse(path.string());
  auto found = files_.find(path.string());
  if (found == files_.end()) {
    if (use == FileUse::kRead) return error(Code::kNotFound, "{}: cannot be opened: No such file", path.string());
    if (read_only_) return error(Code::kIo, "{}: cannot be opened: Read-only file system", path.string());
    found = files_.emplace(path.string(), std::make_shared<Content>()).first;
  }
  if (use == FileUse::kAppend && read_only_) {
    return error(Code::kIo, "{}: cannot be opened: Read-only file system", path.string());
  }
  return std::unique_ptr<File>(std::make_unique<FaultFile>(*this, path.string(), found->second));
}

Result<std::vector<std::string>> FaultFileSystem::list(const std::filesystem::path& folder) {
  const std::lock_guard lock(mutex_);
  if (!power_) return refuse(folder.string());
  std::vector<std::string> names;
  for (const auto& [path, content] : files_) {
    if (std::filesystem::path(path).parent_path() == folder) {
      names.push_back(std::filesystem::path(path).filename().string());
    }
  }
  return names;
}

Status FaultFileSystem::remove(const std::filesystem::path& path) {
  std::function<void()> hook;
  {
    const std::lock_guard lock(mutex_);
    if (!power_ || read_only_ || fails()) return refuse(path.string());
    const auto found = files_.find(path.string());
    if (found == files_.end()) return error(Code::kNotFound, "{}: cannot be removed: No such file", path.string());
    if (found->second->in_folder) removed_[found->first] = found->second;
    files_.erase(found);
    hook = after_remove_;
  }
  if (hook) hook();
  return {};
}

Status FaultFileSystem::make_folder(const std::filesystem::path& folder) {
  const std::lock_guard lock(mutex_);
  return power_ ? Status() : refuse(folder.string());
}

Status FaultFileSystem::sync_folder(const std::filesystem::path& folder) {
  const std::lock_guard lock(mutex_);
  if (!power_ || fails()) return refuse(folder.string());
  for (auto& [path, content] : files_) content->in_folder = true;
  removed_.clear();
  return {};
}

}  // namespace ebb
