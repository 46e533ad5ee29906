#include "store/cold_store.h"

#include <algorithm>
#include <utility>

namespace ebb {

TierStats StoreStats::tier(std::string_view name) const {
  const auto found = std::ranges::find(tiers, name, &TierStats::name);
  return found != tiers.end() ? *found : TierStats{};
}

ColdStore::ColdStore(std::vector<std::unique_ptr<Tier>> tiers, std::size_t queue_bytes) : copier_(queue_bytes) {
  std::ranges::stable_sort(tiers, {}, [](const auto& tier) { return tier->cost_us(); });
  for (std::unique_ptr<Tier>& tier : tiers) {
    auto writer = tier->may_wait() ? std::make_unique<WorkThread>(queue_bytes) : nullptr;
    levels_.push_back({.tier = std::move(tier), .queued = {}, .writer = std::move(writer)});
  }
  fetches_ = std::make_unique<FetchThread>(
      queue_bytes, [this](const RecordRequest& request) { return get(request.key, request.frames); });
}

// What is pending is copied, then written, by each tier's thread in turn, while every tier is there.
ColdStore::~ColdStore() {
  fetches_.reset();
  copier_.wait_idle();
  for (Level& level : levels_) level.writer.reset();
}

// --- what there is ---

std::optional<Tier::Kept> ColdStore::Level::find(const Hash128& name) const {
  return writing == name && !queued.contains(name) ? std::nullopt : tier->find(name);
}

std::optional<Hash128> ColdStore::find(const Hash128& exact_name) const {
  const std::lock_guard lock(mutex_);
  return find_body(exact_name);
}

std::optional<Hash128> ColdStore::find_body(const Hash128& name) const {
  for (const Level& level : levels_) {
    if (const auto queued = level.queued.find(name); queued != level.queued.end()) return queued->second->header().body;
    if (const auto kept = level.find(name)) return kept->body;
  }
  const auto pending = pending_.find(name);
  return pending != pending_.end() ? std::optional(pending->second) : std::nullopt;
}

bool ColdStore::touch(const Hash128& exact_name, const Hash128& body) {
  const std::lock_guard lock(mutex_);
  bool is_kept = false;
  for (Level& level : levels_) {
    const auto queued = level.queued.find(exact_name);
    is_kept = is_kept || (queued != level.queued.end() && queued->second->header().body == body);
    const auto kept = level.find(exact_name);
    if (!kept || kept->body != body) continue;
    level.tier->touch(exact_name);
    is_kept = true;
  }
  return is_kept;
}

bool ColdStore::is_pending(const Hash128& exact_name) const {
  const std::lock_guard lock(mutex_);
  return pending_.contains(exact_name);
}

void ColdStore::wait(const Hash128& exact_name) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !pending_.contains(exact_name); });
}

bool ColdStore::is_verified(const Level& level, const RecordHeader& header) const {
  const auto kept = level.find(header.key.name);
  return kept && kept->is_verified && kept->body == header.body;
}

bool ColdStore::is_backed(std::size_t level, const Hash128& name) const {
  return std::any_of(levels_.begin() + static_cast<std::ptrdiff_t>(level) + 1, levels_.end(), [&](const Level& dearer) {
    const auto kept = dearer.find(name);
    return kept && kept->is_verified;
  });
}

// Every tier that costs less than level `below`.
void ColdStore::tell_backed(std::size_t below, const Hash128& name) {
  for (std::size_t i = 0; i < below; ++i) levels_[i].tier->set_backed(name, is_backed(i, name));
}

// --- put ---

Result<bool> ColdStore::put(const RecordHandle& record) {
  EBB_CHECK(record->is_whole(), "block {}: some frames are put as if they were all", record->key().name.hex());
  return keep(record, Came::kWhole);
}

// What was put behind is pending no more as soon as a tier or a queue has it. A whole record of the same name changes
// nothing about that: frames are still to be read for the pending one.
Result<bool> ColdStore::keep(const RecordHandle& record, Came came) {
  const Hash128 name = record->key().name;
  Status kept = error(Code::kOutOfBudget, "the cold store has no tier for block {}", name.hex());
  std::vector<std::size_t> behind;
  {
    const std::lock_guard lock(mutex_);
    // A record that was pending was compared with what is there when it became so.
    const std::optional<Hash128> body = came == Came::kWhole ? find_body(name) : std::nullopt;
    if (body && *body != record->header().body) return false;
    // The dearest first, so that the cheaper ones know what is backed.
    for (std::size_t i = levels_.size(); i-- > 0;) {
      Level& level = levels_[i];
      if (level.writer == nullptr) {
        Status status = level.tier->put(record);
        level.tier->set_backed(name, is_backed(i, name));
        if (!kept.ok()) kept = std::move(status);
        continue;
      }
      kept = {};
      if (is_verified(level, record->header())) continue;
      if (level.queued.emplace(name, record).second) behind.push_back(i);
    }
    if (came == Came::kBehind) pending_.erase(name);
  }
  changed_.notify_all();
  for (const std::size_t i : behind)
    levels_[i].writer->push(record->bytes().size(), [this, i, name] { write(i, name); });
  EBB_RETURN_IF_ERROR(kept);
  return true;
}

bool ColdStore::put_behind(const RecordHeader& header, std::span<const Token> tokens, Fill fill) {
  const Hash128& name = header.key.name;
  {
    const std::lock_guard lock(mutex_);
    const std::optional<Hash128> body = find_body(name);
    if (body && *body != header.body) return false;
    if (pending_.contains(name)) return true;
    const auto has = [&](const Level& level) { return level.queued.contains(name) || is_verified(level, header); };
    if (std::ranges::any_of(levels_, has)) {
      for (Level& level : levels_) level.tier->touch(name);
      return true;
    }
    pending_.emplace(name, header.body);
  }
  const std::size_t cost = header.frame_bytes + tokens.size_bytes() + kRecordHeaderBytes;
  copier_.push(cost, [this, header, copy = std::vector<Token>(tokens.begin(), tokens.end()), fill = std::move(fill)] {
    RecordBuilder builder(header, copy);
    fill(builder.frames());
    const RecordHandle record = std::move(builder).seal();
    if (record->header().body == header.body) {
      // A record that no tier takes is counted by the tiers, and costs work later.
      (void)keep(record, Came::kBehind);
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      ++n_changed_;
      pending_.erase(header.key.name);
    }
    changed_.notify_all();
  });
  return true;
}

void ColdStore::write(std::size_t level, const Hash128& name) {
  Level& to = levels_[level];
  RecordHandle record;
  {
    const std::lock_guard lock(mutex_);
    const auto queued = to.queued.find(name);
    if (queued == to.queued.end()) return;  // dropped meanwhile
    record = queued->second;
    to.writing = name;
  }
  // What it refuses is counted there.
  (void)to.tier->put(record);
  const std::lock_guard lock(mutex_);
  to.writing.reset();
  // Dropped while it was written: it goes again.
  const auto queued = to.queued.find(name);
  const bool was_dropped = queued == to.queued.end() || queued->second != record;
  if (was_dropped) {
    to.tier->drop(name);
  } else {
    to.queued.erase(queued);
  }
  tell_backed(level, name);
  for (const Hash128& lost : to.tier->take_lost()) tell_backed(level, lost);
}

// --- get ---

Result<RecordHandle> ColdStore::get(const RecordKey& key, FrameList frames) {
  Status why;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !pending_.contains(key.name); });
    Result<RecordHandle> record = get_from_memory(key, frames);
    if (record.ok()) return record;
    why = record.status();
  }
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    if (levels_[i].writer == nullptr) continue;
    Result<RecordHandle> record = levels_[i].tier->get(key, frames);
    if (record.ok()) {
      promote(i, *record);
      return record;
    }
    // That it was there and wrong says more than that it is nowhere.
    if (why.code() == Code::kNotFound) why = record.status();
  }
  return why;
}

// From tiers that do not wait, or on its way to one that does. Why not is worded only where it was not.
Result<RecordHandle> ColdStore::get_from_memory(const RecordKey& key, FrameList frames) {
  Status why;
  for (Level& level : levels_) {
    if (level.writer == nullptr) {
      Result<RecordHandle> record = level.tier->get(key, frames);
      if (record.ok()) return record;
      if (why.ok() || why.code() == Code::kNotFound) why = record.status();
    } else if (const auto queued = level.queued.find(key.name); queued != level.queued.end()) {
      if (queued->second->match(key, frames).ok()) return queued->second;
      level.queued.erase(queued);
    }
  }
  if (why.ok()) return error(Code::kNotFound, "block {} is not in the cold store", key.name.hex());
  return why;
}

// Into every tier that costs less; what is only some frames stays with who asked for them.
void ColdStore::promote(std::size_t from, const RecordHandle& record) {
  if (!record->is_whole()) return;
  const Hash128 name = record->key().name;
  const std::lock_guard lock(mutex_);
  // Dropped since it was read: it does not come back.
  const auto kept = levels_[from].find(name);
  if (!kept || kept->body != record->header().body) return;
  for (std::size_t i = 0; i < from; ++i) {
    Level& level = levels_[i];
    if (level.writer == nullptr) {
      // A record larger than such a tier is served all the same.
      (void)level.tier->put(record);
      level.tier->set_backed(name, true);
    } else if (!level.find(name) && !level.queued.contains(name) &&
               level.writer->try_push(record->bytes().size(), [this, i, name] { write(i, name); })) {
      level.queued.emplace(name, record);
    }
  }
}

std::shared_ptr<Fetch> ColdStore::fetch(std::vector<RecordRequest> requests, std::function<void()> notify, ReadBy by) {
  const auto have = [this](const RecordRequest& request) -> std::optional<RecordHandle> {
    const std::lock_guard lock(mutex_);
    Result<RecordHandle> record = get_from_memory(request.key, request.frames);
    return record.ok() ? std::optional(*std::move(record)) : std::nullopt;
  };
  return fetches_->fetch(std::move(requests), std::move(notify), have, by);
}

void ColdStore::refuse(const RecordHandle& record) {
  const bool is_sound = record->verify().ok();
  const std::lock_guard lock(mutex_);
  for (Level& level : levels_) {
    const auto queued = level.queued.find(record->key().name);
    if (queued != level.queued.end() && queued->second == record) level.queued.erase(queued);
    level.tier->refuse(record);
    if (is_sound) level.tier->drop(record->key().name);
  }
}

void ColdStore::drop(const Hash128& exact_name) {
  wait(exact_name);
  const std::lock_guard lock(mutex_);
  for (Level& level : levels_) {
    level.queued.erase(exact_name);
    level.tier->drop(exact_name);
  }
}

// --- the end of writing ---

void ColdStore::after_puts(std::size_t n_bytes, std::function<void()> task) {
  copier_.push(n_bytes, [this, n_bytes, task = std::move(task)]() mutable { push_after(0, n_bytes, std::move(task)); });
}

// Behind what waits for each durable tier from `level` on, one after the other.
void ColdStore::push_after(std::size_t level, std::size_t n_bytes, std::function<void()> task) {
  while (level < levels_.size() && (levels_[level].writer == nullptr || !levels_[level].tier->is_durable())) ++level;
  if (level == levels_.size()) return task();
  levels_[level].writer->push(n_bytes, [this, level, n_bytes, task = std::move(task)]() mutable {
    push_after(level + 1, n_bytes, std::move(task));
  });
}

Status ColdStore::flush() {
  copier_.wait_idle();
  Status status;
  for (Level& level : levels_) {
    if (level.writer != nullptr) level.writer->wait_idle();
    Status synced = level.tier->sync();
    if (status.ok()) status = std::move(synced);
  }
  return status;
}

StoreStats ColdStore::stats() const {
  StoreStats stats;
  stats.queued_bytes = copier_.cost();
  for (const Level& level : levels_) {
    stats.tiers.push_back(level.tier->stats());
    if (level.writer != nullptr) stats.queued_bytes += level.writer->cost();
  }
  const std::lock_guard lock(mutex_);
  stats.n_pending = static_cast<std::int64_t>(pending_.size());
  stats.n_changed = n_changed_;
  return stats;
}

void ColdStore::check_invariants() const {
  const std::lock_guard lock(mutex_);
  for (const Level& level : levels_) {
    level.tier->check_invariants();
    EBB_CHECK(level.writer != nullptr || level.queued.empty(), "{} records queued for a tier that does not wait",
              level.queued.size());
  }
}

}  // namespace ebb
