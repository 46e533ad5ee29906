#include "session/reliance_records.h"

#include <algorithm>
#include <vector>

#include "base/byte_io.h"
#include "store/cold_store.h"

namespace ebb {

// Its own kind under a name of its own, since tiers know records by their names.
RecordKey RelianceRecords::key(BlockIndex block) const {
  const Hash128 name = hot_.exact_name(block);
  RecordKey key = io_.record_key(name);
  key.name = Hasher().add(name).add_text("reliances 1").finish();
  key.kind = RecordKind::kReliances;
  return key;
}

void RelianceRecords::keep(BlockIndex block, const Reliances& reliances) const {
  if (!io_.has_store()) return;
  const Span span = hot_.span(block);
  ByteWriter out;
  for (std::int32_t s = reliances.slice_at(span.begin); s <= reliances.slice_at(span.end - 1); ++s) {
    if (!reliances.of(s)) return;
    reliances.put(s, out);
  }
  const std::span<const std::byte> bytes = out.bytes();
  RecordBuilder record(
      {.key = key(block), .begin = span.begin, .anchor = span.begin, .n_frames = 1, .frame_bytes = bytes.size()},
      hot_.block_tokens(block));
  std::ranges::copy(bytes, record.frames().begin());
  (void)io_.store()->put(std::move(record).seal());
}

void RelianceRecords::read(BlockIndex block, Reliances& reliances) const {
  if (!io_.has_store()) return;
  const Result<RecordHandle> record = io_.store()->get(key(block));
  if (!record.ok() || !(*record)->match(key(block)).ok()) return;
  std::vector<std::byte> bytes;
  const Status copied = (*record)->copy_frames(
      [&](std::int32_t, std::span<const std::byte> frame) { bytes.insert(bytes.end(), frame.begin(), frame.end()); });
  const Span span = hot_.span(block);
  std::vector<SliceReliance> found;
  ByteReader in(bytes);
  bool is_sound = copied.ok();
  for (std::int32_t s = reliances.slice_at(span.begin); s <= reliances.slice_at(span.end - 1) && is_sound; ++s) {
    const Result<std::optional<std::vector<std::int32_t>>> on = Reliances::get(in);
    is_sound = on.ok() && *on;
    for (std::size_t i = 0; is_sound && i < (*on)->size(); ++i) {
      found.push_back({.of = s, .on = (**on)[i]});
      is_sound = found.back().on >= 0 && found.back().on < s;
    }
  }
  if (!is_sound || !in.at_end()) return io_.store()->refuse(*record);
  reliances.add(span, found);
}

}  // namespace ebb
