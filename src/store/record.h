// Record: one block's K and V with all that is needed to tell whether they may be used again, as the bytes that every
// tier keeps.
//
// It knows bytes, not frames of a cache, tiers or files. A record is written once into a buffer of its exact size,
// sealed, and shared from then on between tiers and readers without a copy. Nothing of it may be used before its
// checksums hold (law 2): the header's are checked when a record is opened, the body's while its frames are copied out,
// in the same pass over memory. docs/store_format.md has the grammar and an example.
//
//   offset  bytes  what (little-endian; a record begins and ends on a multiple of 64 bytes)
//        0      8  "ebbblock"
//        8      4  format version, 2
//       12      4  flags, 0
//       16      4  n_tokens
//       20      4  n_frames, all of one size
//       24      8  bytes of all frames together
//       32      4  position of the first token
//       36      4  anchor: rotary position of the first token
//       40      8  0
//       48     16  model fingerprint (low half, high half; so are all hashes)
//       64     16  layout fingerprint
//       80     16  exact name
//       96     16  content name
//      112     16  lineage
//      128     32  0
//      160     16  XXH3-128 of bytes 192 to the end
//      176     16  XXH3-128 of bytes 0..175
//      192  4 * n_tokens   token ids, then zeros up to a multiple of 64
//        .  ...            frames, [layer][KV head], padded as the layout says, then zeros up to a multiple of 64
//
// Thread rule: a sealed or opened record never changes; any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/hash.h"
#include "base/ids.h"
#include "base/status.h"

namespace ebb {

// What a record must match to be used.
struct RecordKey {
  Hash128 model;
  Hash128 layout;
  Hash128 name;  // the exact name: lineage and tokens

  friend bool operator==(const RecordKey&, const RecordKey&) = default;
};

struct RecordHeader {
  RecordKey key;
  Hash128 content;  // tokens and fingerprints without lineage: what approximate reuse looks for
  Hash128 lineage;
  Position begin;
  Position anchor;                // begin, unless the block was moved
  std::int32_t n_tokens = 0;      // a builder takes it from the tokens
  std::int32_t n_frames = 0;      // 0 only when there are no frame bytes
  std::uint64_t frame_bytes = 0;  // of all frames; a multiple of n_frames

  // Of the whole record.
  [[nodiscard]] std::uint64_t record_bytes() const;
  // From the record's beginning.
  [[nodiscard]] std::uint64_t frames_offset() const;

  friend bool operator==(const RecordHeader&, const RecordHeader&) = default;
};

inline constexpr std::size_t kRecordHeaderBytes = 192;
inline constexpr std::size_t kRecordAlignment = 64;

// Reads the header at the front of `bytes`, which must be at least kRecordHeaderBytes (fewer: kDamaged). kDamaged unless
// every bit of it is as it was sealed; kUnsupported for another version. Whether as many bytes follow as record_bytes()
// says is the caller's to check: it alone knows where the bytes end.
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

class EncodedRecord {
 public:
  // Takes bytes that come from a tier. Checks the header and the size, not yet the body.
  static Result<RecordHandle> open(RecordBytes bytes);

  [[nodiscard]] const RecordHeader& header() const { return header_; }
  [[nodiscard]] const RecordKey& key() const { return header_.key; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_.bytes(); }
  // Not to be believed until copy_frames() or verify() said ok.
  [[nodiscard]] std::span<const Token> tokens() const;
  // kDamaged, in words, when this is not the record that `key` asks for.
  [[nodiscard]] Status match(const RecordKey& key) const;

  // Gives every frame, in order, to `sink`, and checks the body on the way: each frame is hashed and then copied while
  // it is in the processor's cache. kDamaged at the end when the body is not what was sealed; what the sink took must
  // then be forgotten, and the store told (ColdStore::refuse).
  [[nodiscard]] Status copy_frames(const FrameSink& sink) const;
  // The same into memory of the host, past the cache: frame i goes to into[i], which has n_frames places.
  [[nodiscard]] Status copy_frames(std::span<std::byte* const> into) const;
  // The same check without a copy.
  [[nodiscard]] Status verify() const;

 private:
  friend class RecordBuilder;
  EncodedRecord(const RecordHeader& header, RecordBytes bytes) : header_(header), bytes_(std::move(bytes)) {}
  template <class Take>
  Status hash_and_take(const Take& take) const;

  RecordHeader header_;
  RecordBytes bytes_;
};

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
