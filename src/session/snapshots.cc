#include "session/snapshots.h"

#include <algorithm>
#include <utility>

namespace ebb {
namespace {

// Where one snapshot may lie: held, in RAM, on disk. More are no others.
constexpr int kMostCopies = 3;

}  // namespace

Snapshots::Snapshots(const Deps& deps) : deps_(deps) {
  EBB_CHECK(deps.state.n_bytes() > 0 && deps.block_size > 0, "a state of {} bytes, at borders of {} tokens",
            deps.state.n_bytes(), deps.block_size);
  deps_.state.reset();
}

// --- names and records ---

Hash128 Snapshots::name_behind(const Hash128& border, const Hash128& exact_name) const {
  return Hasher().add_text("state").add(deps_.state.layout()).add(border).add(exact_name).finish();
}

RecordKey Snapshots::key(const Hash128& name) const {
  return {.model = deps_.model, .layout = deps_.state.layout(), .name = name, .kind = RecordKind::kSequenceState};
}

std::optional<Hash128> Snapshots::find(const Hash128& name) const {
  return deps_.store == nullptr ? std::nullopt : deps_.store->find(name);
}

RecordHandle Snapshots::make_record(const Hash128& name, std::size_t i) const {
  const Position border(static_cast<std::int32_t>(borders_.size() + 1) * deps_.block_size);
  const std::size_t n_bytes = deps_.state.n_bytes();
  RecordBuilder record({.key = key(name), .begin = border, .anchor = border, .n_frames = 1, .frame_bytes = n_bytes},
                       {});
  deps_.state.copy_border(i, record.frames());
  return std::move(record).seal();
}

void Snapshots::hold(RecordHandle record) {
  if (held_.size() == kHeldSnapshots) held_.erase(held_.begin());
  held_.push_back(std::move(record));
}

RecordHandle Snapshots::get(const Hash128& name) {
  const auto held = std::ranges::find(held_, name, [](const RecordHandle& record) { return record->key().name; });
  if (held != held_.end()) return *held;
  if (!find(name)) return nullptr;
  Result<RecordHandle> record = deps_.store->get(key(name));
  return record.ok() ? *std::move(record) : nullptr;
}

// --- steps ---

void Snapshots::begin_step(std::int32_t n_rows) {
  std::vector<std::int32_t> borders;
  for (std::int32_t n = deps_.block_size - end_.value() % deps_.block_size; n <= n_rows; n += deps_.block_size) {
    borders.push_back(n);
  }
  n_taken_ = 0;
  deps_.state.begin_step(borders);
}

void Snapshots::take(const Hash128& exact_name) {
  const std::size_t i = n_taken_++;
  Hash128 name = name_behind(last_name(), exact_name);
  RecordHandle record = make_record(name, i);
  // Computed in other company it may differ in the last bits, and what follows has other names too.
  if (const std::optional<Hash128> kept = find(name); kept && *kept != record->header().body) {
    name = Hasher().add_text("bytes").add(name).add(record->header().body).finish();
    record = make_record(name, i);
  }
  borders_.push_back({.name = name, .body = record->header().body});
  // What cannot be saved is computed again from an earlier border (law 8).
  if (deps_.store != nullptr) (void)deps_.store->put(record);
  hold(std::move(record));
}

void Snapshots::end_step(Position end) {
  EBB_CHECK(std::ssize(borders_) == end.value() / deps_.block_size, "{} snapshots of {} tokens", borders_.size(),
            end.value());
  end_ = end;
}

Status Snapshots::begin_again(BlockIndex block) {
  std::vector<std::byte> own(deps_.state.n_bytes());
  deps_.state.copy_out(own);
  if (block == BlockIndex(0)) {
    deps_.state.reset();
  } else if (!load(block.value())) {
    return error(Code::kNotFound, "the state before block {} is no longer to be had", block.value());
  }
  waiting_ = std::move(own);
  return {};
}

void Snapshots::end_again() {
  if (waiting_.empty()) return;
  deps_.state.copy_in(std::exchange(waiting_, {}));
}

// --- going back ---

// The state as it was at that border; false, and nothing changes, where it is not to be had. A damaged copy is refused, and
// another may be good.
bool Snapshots::load(std::int32_t n_borders) {
  const Border& border = borders_[static_cast<std::size_t>(n_borders - 1)];
  std::vector<std::byte> bytes(deps_.state.n_bytes());
  for (int i = 0; i < kMostCopies; ++i) {
    const RecordHandle record = get(border.name);
    if (record == nullptr) return false;
    const RecordHeader& header = record->header();
    if (border.body != Hash128() && header.body != border.body) return false;  // sound, and another's
    const bool fits = header.begin == Position(n_borders * deps_.block_size) && header.n_frames == 1 &&
                      header.frame_bytes == bytes.size();
    const auto take = [&](std::int32_t, std::span<const std::byte> frame) { std::ranges::copy(frame, bytes.begin()); };
    if (fits && record->copy_frames(take).ok()) {
      deps_.state.copy_in(bytes);
      return true;
    }
    std::erase(held_, record);
    if (deps_.store == nullptr) return false;
    deps_.store->refuse(record);
  }
  return false;
}

Position Snapshots::roll_back(Position end) {
  if (end == end_) return end_;
  std::int32_t n = std::min(end.value() / deps_.block_size, static_cast<std::int32_t>(borders_.size()));
  while (n > 0 && Position(n * deps_.block_size) != end_ && !load(n)) --n;
  if (n == 0) deps_.state.reset();
  borders_.resize(static_cast<std::size_t>(n));
  end_ = Position(n * deps_.block_size);
  std::erase_if(held_, [&](const RecordHandle& record) { return record->header().begin > end_; });
  return end_;
}

void Snapshots::save() {
  if (deps_.store == nullptr) return;
  for (const RecordHandle& record : held_) {
    if (!find(record->key().name)) (void)deps_.store->put(record);
  }
}

void Snapshots::restore(std::vector<Border> borders) { borders_ = std::move(borders); }

// --- adopting ---

std::optional<Snapshots::Reach> Snapshots::find_reach(std::span<const HotSet::NamedBlock> blocks) const {
  std::optional<Reach> reach;
  Hash128 name = last_name();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    name = name_behind(name, blocks[i].name);
    if (find(name)) reach = Reach{.n_blocks = i + 1, .key = key(name)};
  }
  return reach;
}

Position Snapshots::adopt(std::span<const HotSet::NamedBlock> blocks, const RecordHandle& read) {
  for (const HotSet::NamedBlock& block : blocks) {
    const Hash128 name = name_behind(last_name(), block.name);
    borders_.push_back({.name = name, .body = find(name).value_or(Hash128())});
  }
  if (read != nullptr && read->key() == key(last_name())) hold(read);
  return roll_back(Position(static_cast<std::int32_t>(borders_.size()) * deps_.block_size));
}

}  // namespace ebb
