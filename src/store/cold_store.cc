#include "store/cold_store.h"

namespace ebb {

Result<std::unique_ptr<ColdStore>> ColdStore::open(const ColdStoreOptions& options) {
  std::unique_ptr<ColdStore> store(new ColdStore(options));
  if (options.disk) {
    FileSystem& system = options.system != nullptr ? *options.system : real_file_system();
    EBB_ASSIGN_OR_RETURN(store->disk_, DiskTier::open(*options.disk, system));
    store->writer_ = std::make_unique<WorkThread>(options.queue_bytes);
  }
  return store;
}

ColdStore::ColdStore(const ColdStoreOptions& options) : ram_(options.ram_bytes), copier_(options.queue_bytes) {}

ColdStore::~ColdStore() = default;

bool ColdStore::contains(const Hash128& exact_name) const {
  const std::lock_guard lock(mutex_);
  return ram_.contains(exact_name) || queued_.contains(exact_name) || (disk_ && disk_->contains(exact_name));
}

bool ColdStore::touch(const Hash128& exact_name) {
  const std::lock_guard lock(mutex_);
  return ram_.touch(exact_name) || queued_.contains(exact_name) || (disk_ && disk_->contains(exact_name));
}

std::optional<Hash128> ColdStore::find_content(const Hash128& content_name) const {
  const std::lock_guard lock(mutex_);
  if (const auto name = ram_.find_content(content_name)) return name;
  for (const auto& [name, record] : queued_) {
    if (record->header().content == content_name) return name;
  }
  return disk_ ? disk_->find_content(content_name) : std::nullopt;
}

Status ColdStore::put(const RecordHandle& record) { return keep(record, Came::kWhole); }

// What was put behind is pending no more as soon as a tier or the queue has it. A whole record of the same name changes
// nothing about that: frames are still to be read for the pending one.
Status ColdStore::keep(const RecordHandle& record, Came came) {
  const Hash128 name = record->key().name;
  Status kept;
  bool on_disk = false;
  bool to_disk = false;
  {
    const std::lock_guard lock(mutex_);
    on_disk = disk_ && disk_->is_verified(name);
    kept = ram_.put(record, on_disk);
    to_disk = disk_ && !on_disk && queued_.emplace(name, record).second;
    if (came == Came::kBehind) pending_.erase(name);
  }
  changed_.notify_all();
  if (to_disk) writer_->push(record->bytes().size(), [this, name] { write_to_disk(name); });
  return on_disk || to_disk ? Status() : kept;
}

void ColdStore::put_behind(const RecordHeader& header, std::span<const Token> tokens, Fill fill) {
  {
    const std::lock_guard lock(mutex_);
    const Hash128& name = header.key.name;
    if (ram_.touch(name) || queued_.contains(name) || (disk_ && disk_->is_verified(name))) return;
    if (!pending_.insert(name).second) return;
  }
  const std::size_t cost = header.frame_bytes + tokens.size_bytes() + kRecordHeaderBytes;
  copier_.push(cost, [this, header, copy = std::vector<Token>(tokens.begin(), tokens.end()), fill = std::move(fill)] {
    RecordBuilder builder(header, copy);
    fill(builder.frames());
    // A record that no tier takes is counted by the tiers, and costs work later.
    (void)keep(std::move(builder).seal(), Came::kBehind);
  });
}

bool ColdStore::is_pending(const Hash128& exact_name) const {
  const std::lock_guard lock(mutex_);
  return pending_.contains(exact_name);
}

void ColdStore::wait(const Hash128& exact_name) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !pending_.contains(exact_name); });
}

void ColdStore::write_to_disk(const Hash128& name) {
  RecordHandle record;
  {
    const std::lock_guard lock(mutex_);
    const auto queued = queued_.find(name);
    if (queued == queued_.end()) return;  // dropped meanwhile
    record = queued->second;
  }
  const bool written = disk_->put(*record).ok();
  const std::lock_guard lock(mutex_);
  // Dropped while it was written: it goes again.
  if (queued_.erase(name) == 0) disk_->drop(name);
  ram_.set_on_disk(name, written);
  for (const Hash128& lost : disk_->take_lost()) ram_.set_on_disk(lost, false);
}

Result<RecordHandle> ColdStore::get(const RecordKey& key) {
  Status why;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !pending_.contains(key.name) && !reading_.contains(key.name); });
    Result<RecordHandle> record = ram_.get(key);
    if (record.ok()) return record;
    why = record.status();
    if (const auto queued = queued_.find(key.name); queued != queued_.end()) {
      if (queued->second->match(key).ok()) return queued->second;
      queued_.erase(queued);
    }
  }
  if (!disk_) return why;
  Result<RecordHandle> record = disk_->get(key);
  if (!record.ok()) return why.code() == Code::kNotFound ? record.status() : why;
  const std::lock_guard lock(mutex_);
  // A record larger than RAM's cap is served all the same.
  (void)ram_.put(*record, true);
  return record;
}

void ColdStore::refuse(const RecordHandle& record) {
  const bool is_sound = record->verify().ok();
  const std::lock_guard lock(mutex_);
  if (is_sound && disk_) disk_->drop(record->key().name);
  const auto queued = queued_.find(record->key().name);
  if (queued != queued_.end() && queued->second == record) queued_.erase(queued);
  ram_.refuse(record);
}

void ColdStore::drop(const Hash128& exact_name) {
  wait(exact_name);
  const std::lock_guard lock(mutex_);
  ram_.drop(exact_name);
  queued_.erase(exact_name);
  if (disk_) disk_->drop(exact_name);
}

void ColdStore::prefetch(std::span<const Hash128> exact_names) {
  if (!disk_) return;
  // Each goes to the front, so the first must come last.
  for (std::size_t i = exact_names.size(); i > 0; --i) {
    writer_->push_first([this, name = exact_names[i - 1]] { read_ahead(name); });
  }
}

void ColdStore::read_ahead(const Hash128& name) {
  {
    const std::lock_guard lock(mutex_);
    if (ram_.contains(name) || queued_.contains(name) || !disk_->contains(name)) return;
    reading_.insert(name);
  }
  const Result<RecordHandle> record = disk_->get(name);
  {
    const std::lock_guard lock(mutex_);
    reading_.erase(name);
    if (record.ok() && !ram_.contains(name)) (void)ram_.put(*record, true);
  }
  changed_.notify_all();
}

void ColdStore::after_puts(std::size_t n_bytes, std::function<void()> task) {
  copier_.push(n_bytes, [this, n_bytes, task = std::move(task)] {
    if (writer_) {
      writer_->push(n_bytes, task);
    } else {
      task();
    }
  });
}

Status ColdStore::flush() {
  copier_.wait_idle();
  if (!disk_) return {};
  writer_->wait_idle();
  return disk_->sync();
}

StoreStats ColdStore::stats() const {
  StoreStats stats;
  {
    const std::lock_guard lock(mutex_);
    stats.ram = ram_.stats();
    stats.n_pending = static_cast<std::int64_t>(pending_.size());
  }
  if (disk_) stats.disk = disk_->stats();
  stats.queued_bytes = copier_.cost() + (writer_ ? writer_->cost() : 0);
  return stats;
}

void ColdStore::check_invariants() const {
  const std::lock_guard lock(mutex_);
  ram_.check_invariants();
  EBB_CHECK(disk_ || queued_.empty(), "{} records queued for no disk", queued_.size());
  if (disk_) disk_->check_invariants();
}

}  // namespace ebb
