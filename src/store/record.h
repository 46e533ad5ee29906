// Record: one block's K and V, or other state of a sequence, with all that is needed to tell whether they may be used
// again, as the bytes that every tier keeps.
//
// It knows bytes, not frames of a cache, tiers or files. A record is written once into a buffer of its exact size,
// sealed, and shared from then on between tiers and readers without a copy. Nothing of it may be used before its
// checksums hold (law 2): those of header, tokens and table are checked when a record is opened, those of frames while
// they are copied out, in the same pass over memory, each by itself: some frames can be had, and believed, without the
// others. A record that was read in part has its front and some of its frames. docs/store_format.md has the grammar and
// an example.
//
//   offset  bytes  what (little-endian; a record and its parts begin and end on a multiple of 64 bytes)
//        0      8  "ebbblock"
//        8      4  format version, 3
//       12      4  flags, 0
//       16      4  kind
//       20      4  n_tokens
//       24      4  n_frames, all of one size
//       28      4  0
//       32      8  bytes of all frames together
//       40      4  position of the first token
//       44      4  anchor: rotary position of the first token
//       48     16  model fingerprint (low half, high half; so are all hashes)
//       64     16  layout fingerprint
//       80     16  exact name
//       96     16  body checksum: XXH3-128 of tokens and table
//      112     16  header checksum: XXH3-128 of bytes 0..111
//      128  4 * n_tokens   token ids, then zeros up to a multiple of 64
//        .  16 * n_frames  the table: XXH3-128 of each frame, then zeros up to a multiple of 64
//        .  ...            frames, [layer][KV head] in a block, padded as the layout says, then zeros likewise
//
// Thread rule: a sealed or opened record never changes; any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/status.h"

namespace ebb {

// What the frames of a record are. The store asks no more of a kind than that it is the one that was asked for.
enum class RecordKind : std::uint32_t {
  kBlock = 1,          // K and V of one block
  kSequenceState = 2,  // a snapshot: at a block's border, whatever else than K and V a sequence carries on
  kKeyDigest = 3,      // of a block's keys, what they are found by while it is cold; under a name made of the block's
  kMeaning =
      4,  // vectors of a block's sentences (session/meanings.h); under a name made of the block's and the embedding model's
  kReliances = 5,  // what a block's slices rely on (session/reliance_records.h); under a name made of the block's
};

// What a record must match to be used.
struct RecordKey {
  Hash128 model;
  Hash128 layout;
  Hash128 name;  // the exact name: lineage and tokens
  RecordKind kind = RecordKind::kBlock;

  friend bool operator==(const RecordKey&, const RecordKey&) = default;
};

struct RecordHeader {
  RecordKey key;
  Hash128 body;  // what bytes these are (store/body_checksum.h); a builder computes it
  Position begin;
  Position anchor;                // begin, unless the block was moved
  std::int32_t n_tokens = 0;      // a builder takes it from the tokens
  std::int32_t n_frames = 0;      // 0 only when there are no frame bytes
  std::uint64_t frame_bytes = 0;  // of all frames; a multiple of n_frames

  // The bytes of the whole record.
  [[nodiscard]] std::uint64_t record_bytes() const;
  // From the record's beginning; what lies before is its front: header, tokens, table.
  [[nodiscard]] std::uint64_t table_offset() const;
  [[nodiscard]] std::uint64_t frames_offset() const;
  // The bytes of one frame; 0 where there is none.
  [[nodiscard]] std::uint64_t bytes_per_frame() const;

  friend bool operator==(const RecordHeader&, const RecordHeader&) = default;
};

inline constexpr std::size_t kRecordHeaderBytes = 128;
inline constexpr std::size_t kRecordAlignment = 64;

// Reads the header at the beginning of `bytes`, which must be at least kRecordHeaderBytes (fewer: kDamaged). kDamaged
// unless every bit of it is as it was sealed; kUnsupported for another version. Whether as many bytes follow as
// record_bytes() says is the caller's to check: it alone knows where the bytes end.
Result<RecordHeader> parse_record_header(std::span<const std::byte> bytes);

// Memory of a record: uninitialised at first, aligned to kRecordAlignment.
class RecordBytes {
 public:
  explicit RecordBytes(std::size_t n_bytes);
  [[nodiscard]] std::span<std::byte> bytes() { return {data_.get(), n_bytes_}; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_.get(), n_bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t n_bytes_;
};

class EncodedRecord;
using RecordHandle = std::shared_ptr<const EncodedRecord>;

// Takes frame i of a record. It must not keep the bytes.
using FrameSink = std::function<void(std::int32_t frame, std::span<const std::byte> bytes)>;

// Indices of frames, ascending, each once. None means all of them.
using FrameList = std::span<const std::int32_t>;

class EncodedRecord {
 public:
  // Takes the bytes of a whole record, which come from a tier. Checks all but the frames.
  static Result<RecordHandle> open(RecordBytes bytes);
  // Takes the bytes of a record that was read in part, and checks as open() does: its front, and behind it the bytes of
  // `frames`, which are not all.
  static Result<RecordHandle> open_part(RecordBytes bytes, FrameList frames);

  [[nodiscard]] const RecordHeader& header() const { return header_; }
  [[nodiscard]] const RecordKey& key() const { return header_.key; }
  [[nodiscard]] bool is_whole() const { return held_.empty(); }
  // What is in memory: of a whole record all that a tier keeps.
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_.bytes(); }
  [[nodiscard]] std::span<const Token> tokens() const;
  // kDamaged, in words, when this is not the record that `key` asks for, or one without such frames.
  [[nodiscard]] Status match(const RecordKey& key, FrameList frames = {}) const;

  // Gives those frames (none named: all that it has), in order, to `sink`, and checks them on the way: each is hashed
  // and then copied while it is in the processor's cache. kDamaged at the end when one is not what was sealed; what the
  // sink took must then be forgotten, and the store told (ColdStore::refuse).
  [[nodiscard]] Status copy_frames(const FrameSink& sink, FrameList frames = {}) const;
  // Copies the frames likewise into memory of the host, past the cache: the i-th of them goes to into[i].
  [[nodiscard]] Status copy_frames(std::span<std::byte* const> into, FrameList frames = {}) const;
  // Checks all that it has as copy_frames() does, without a copy.
  [[nodiscard]] Status verify() const;

 private:
  friend class RecordBuilder;
  EncodedRecord(const RecordHeader& header, RecordBytes bytes, std::vector<std::int32_t> held = {})
      : header_(header), bytes_(std::move(bytes)), held_(std::move(held)) {}
  [[nodiscard]] Status check_front() const;
  [[nodiscard]] std::span<const std::byte> frame(std::int32_t index) const;
  template <class Take>
  Status check_and_take(FrameList frames, const Take& take) const;

  RecordHeader header_;
  RecordBytes bytes_;
  std::vector<std::int32_t> held_;  // frames of a part, ascending; none for a whole record
};

// Where frames lie in a record, as few runs of bytes: those that touch are one.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t n_bytes = 0;

  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};
[[nodiscard]] std::vector<ByteRange> frame_ranges(const RecordHeader& header, FrameList frames);

// Makes one record: header and tokens at once, then the frames by the caller, then the seal.
class RecordBuilder {
 public:
  RecordBuilder(const RecordHeader& header, std::span<const Token> tokens);

  // [n_frames * bytes of a frame]; every byte must be written before seal().
  [[nodiscard]] std::span<std::byte> frames();
  [[nodiscard]] RecordHandle seal() &&;

 private:
  RecordHeader header_;
  RecordBytes bytes_;
};

}  // namespace ebb
