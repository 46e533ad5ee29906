#include "engine/lane_folder.h"

#include <algorithm>
#include <charconv>

namespace ebb {
namespace {

constexpr std::string_view kPrefix = "lane-";
constexpr std::string_view kSuffix = ".ebb";

// The bytes of a block in an image, about.
constexpr std::size_t kBlockBytes = 64;

std::string file_name(std::uint64_t number) { return fmt::format("{}{:08}{}", kPrefix, number, kSuffix); }

std::optional<std::uint64_t> find_number(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  std::uint64_t number = 0;
  (void)std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
  return file_name(number) == name ? std::optional(number) : std::nullopt;
}

}  // namespace

Result<std::unique_ptr<LaneFolder>> LaneFolder::open(const LaneFolderOptions& options) {
  std::unique_ptr<LaneFolder> folder(new LaneFolder(options));
  EBB_RETURN_IF_ERROR(folder->system_.make_folder(options.folder));
  EBB_ASSIGN_OR_RETURN(const std::vector<std::string> names, folder->system_.list(options.folder));
  for (const std::string& name : names) {
    if (const auto number = find_number(name)) folder->file_bytes_[*number] = 0;
  }
  if (!folder->file_bytes_.empty()) folder->n_files_ = folder->file_bytes_.rbegin()->first;
  return folder;
}

LaneFolder::LaneFolder(const LaneFolderOptions& options)
    : options_(options), system_(options.system != nullptr ? *options.system : real_file_system()), writer_(1) {}

std::filesystem::path LaneFolder::path(std::uint64_t file) const { return options_.folder / file_name(file); }

std::vector<LaneImage> LaneFolder::load(const std::function<bool(const LaneImage&)>& fits) {
  std::unique_lock lock(mutex_);
  std::map<Key, LaneImage> images;
  std::vector<std::uint64_t> useless;
  for (const auto& [file, n_bytes] : file_bytes_) {
    Result<LaneImage> image = read(file);
    if (!image.ok()) {
      note(image.status());
      const Code code = image.status().code();
      ++(code == Code::kUnsupported ? stats_.n_foreign : stats_.n_refused);
      if (code == Code::kUnsupported) foreign_.insert(file);
      if (code == Code::kDamaged) useless.push_back(file);
    } else if (!fits(*image)) {
      ++stats_.n_foreign;
      foreign_.insert(file);
    } else {
      Key key(image->owner, image->public_id);
      if (const auto before = kept_.find(key); before != kept_.end()) useless.push_back(before->second.file);
      kept_[key] = {.file = file};
      images.insert_or_assign(std::move(key), *std::move(image));
    }
  }
  std::vector<LaneImage> found;
  for (auto& [key, image] : images) found.push_back(std::move(image));
  std::ranges::sort(found, {}, [&](const LaneImage& image) { return kept_.at({image.owner, image.public_id}).file; });
  stats_.n_resumed = std::ssize(found);
  lock.unlock();
  for (const std::uint64_t file : useless) remove_file(file);
  return found;
}

Result<LaneImage> LaneFolder::read(std::uint64_t file) {
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<File> opened, system_.open(path(file), FileUse::kRead));
  EBB_ASSIGN_OR_RETURN(const std::uint64_t n_bytes, opened->size());
  file_bytes_[file] = n_bytes;
  stats_.bytes += n_bytes;
  if (n_bytes > options_.max_bytes) {
    return error(Code::kUnsupported, "{}: {} bytes, and all images may have {}", path(file).string(), n_bytes,
                 options_.max_bytes);
  }
  std::vector<std::byte> bytes(n_bytes);
  EBB_ASSIGN_OR_RETURN(const std::size_t n_read, opened->read(0, bytes));
  Result<LaneImage> image = decode_lane_image(std::span(bytes).first(n_read));
  if (image.ok()) return image;
  return error(image.status().code(), "{}: {}", path(file).string(), image.status().message());
}

// In the order of the calls, and behind what the cold store was given before.
void LaneFolder::put_behind(std::size_t n_bytes, std::function<void()> task) {
  if (options_.store == nullptr) return task();
  options_.store->after_puts(n_bytes, std::move(task));
}

void LaneFolder::save(LaneImage image) {
  {
    const std::lock_guard lock(mutex_);
    ++stats_.n_waiting;
  }
  const std::size_t n_bytes =
      image.image.tokens.size() * sizeof(Token) + image.image.blocks.size() * kBlockBytes + image.image.queries.bytes();
  put_behind(n_bytes, [this, image = std::move(image)] { take(image); });
}

void LaneFolder::take(LaneImage image) {
  Key key(image.owner, image.public_id);
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    is_new = !waiting_.contains(key);
    if (!is_new) --stats_.n_waiting;
    waiting_[key] = {.image = std::move(image), .call = ++n_calls_};
  }
  if (is_new) writer_.push(0, [this, key = std::move(key)] { write(key); });
}

void LaneFolder::forget(std::string_view owner, std::string_view public_id) {
  put_behind(0, [this, key = Key(owner, public_id)] {
    std::uint64_t call = 0;
    {
      const std::lock_guard lock(mutex_);
      stats_.n_waiting -= static_cast<std::int64_t>(waiting_.erase(key));
      call = ++n_calls_;
    }
    writer_.push(0, [this, key, call] { remove(key, call); });
  });
}

// Unless it was saved again since: that is another session of the same name.
void LaneFolder::remove(const Key& key, std::uint64_t call) {
  std::uint64_t file = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto kept = kept_.find(key);
    if (kept == kept_.end() || kept->second.call > call) return;
    file = kept->second.file;
    kept_.erase(kept);
  }
  remove_file(file);
}

void LaneFolder::write(const Key& key) {
  Waiting next;
  {
    const std::lock_guard lock(mutex_);
    const auto waiting = waiting_.find(key);
    if (waiting == waiting_.end()) return;  // forgotten meanwhile
    next = std::move(waiting->second);
    waiting_.erase(waiting);
  }
  const Status written = replace_file(key, next);
  const std::lock_guard lock(mutex_);
  --stats_.n_waiting;
  ++(written.ok() ? stats_.n_written : stats_.n_write_errors);
  if (!written.ok()) note(written);
}

Status LaneFolder::replace_file(const Key& key, const Waiting& next) {
  const std::vector<std::byte> bytes = encode_lane_image(next.image);
  if (bytes.size() > options_.max_bytes / 4) {
    return error(Code::kOutOfBudget, "a session's image of {} bytes is not kept on disk: all together may have {}",
                 bytes.size(), options_.max_bytes);
  }
  make_room(bytes.size());
  std::uint64_t file = 0;
  {
    const std::lock_guard lock(mutex_);
    file = ++n_files_;
    file_bytes_[file] = bytes.size();
    stats_.bytes += bytes.size();
  }
  Status written = write_file(file, bytes);
  std::optional<std::uint64_t> useless = file;
  if (written.ok()) {
    const std::lock_guard lock(mutex_);
    const auto old = kept_.find(key);
    useless = old != kept_.end() ? std::optional(old->second.file) : std::nullopt;
    kept_[key] = {.file = file, .call = next.call};
  }
  if (useless) remove_file(*useless);
  return written;
}

Status LaneFolder::write_file(std::uint64_t file, std::span<const std::byte> bytes) {
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<File> opened, system_.open(path(file), FileUse::kAppend));
  EBB_RETURN_IF_ERROR(opened->append(bytes));
  EBB_RETURN_IF_ERROR(opened->sync());
  return system_.sync_folder(options_.folder);
}

void LaneFolder::make_room(std::uint64_t n_bytes) {
  while (true) {
    std::uint64_t oldest = 0;
    {
      const std::lock_guard lock(mutex_);
      if (file_bytes_.empty() || stats_.bytes + n_bytes <= options_.max_bytes) return;
      oldest = least_wanted();
      std::erase_if(kept_, [&](const auto& kept) { return kept.second.file == oldest; });
      ++stats_.n_dropped;
    }
    remove_file(oldest);
  }
}

// Of this process's model and owners the oldest of whoever has most bytes, so that a server with another model, tried once, costs the first one's
// sessions nothing; but foreign ones have at most half, for nobody may come back to them.
std::uint64_t LaneFolder::least_wanted() const {
  std::uint64_t n_foreign_bytes = 0;
  for (const std::uint64_t file : foreign_) n_foreign_bytes += file_bytes_.at(file);
  if (n_foreign_bytes > options_.max_bytes / 2) return *foreign_.begin();
  std::map<std::string_view, std::uint64_t> bytes_of;
  for (const auto& [key, kept] : kept_) bytes_of[key.first] += file_bytes_.at(kept.file);
  const auto rank = [&](const auto& kept) {
    return std::pair(-std::int64_t(bytes_of[kept.first.first]), kept.second.file);
  };
  if (const auto least = std::ranges::min_element(kept_, {}, rank); least != kept_.end()) return least->second.file;
  const auto own = std::ranges::find_if(file_bytes_, [&](const auto& file) { return !foreign_.contains(file.first); });
  return own != file_bytes_.end() ? own->first : file_bytes_.begin()->first;
}

// Not under the lock: a disk may take long over it, and who saves or looks does not wait. Only the writer's thread
// removes, and load() before it has anything to write.
void LaneFolder::remove_file(std::uint64_t file) {
  const Status removed = system_.remove(path(file));
  const std::lock_guard lock(mutex_);
  if (!removed.ok() && removed.code() != Code::kNotFound) note(removed);
  const auto found = file_bytes_.find(file);
  if (found == file_bytes_.end()) return;
  stats_.bytes -= found->second;
  file_bytes_.erase(found);
  foreign_.erase(file);
}

void LaneFolder::note(const Status& status) { stats_.last_error = status.message(); }

void LaneFolder::flush() {
  // What the disk refuses is counted there.
  if (options_.store != nullptr) (void)options_.store->flush();
  writer_.wait_idle();
}

LaneFolderStats LaneFolder::stats() const {
  const std::lock_guard lock(mutex_);
  LaneFolderStats stats = stats_;
  stats.n_images = kept_.size();
  return stats;
}

}  // namespace ebb
