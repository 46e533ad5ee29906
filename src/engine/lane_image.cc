#include "engine/lane_image.h"

#include <ctime>

#include "base/byte_io.h"

namespace ebb {
namespace {

constexpr std::string_view kMagic = "ebb lane";
constexpr std::uint32_t kVersion = 3;

void put_text(ByteWriter& out, std::string_view text) {
  out.put_count(text.size());
  out.put_text(text);
}

}  // namespace

bool LaneImage::is_of(const Engine& engine) const {
  return model == engine.model().fingerprint() && layout == engine.layout().fingerprint() &&
         block_size == engine.layout().block_size;
}

LaneImage make_lane_image(const Engine& engine, SessionImage image) {
  return {.model = engine.model().fingerprint(),
          .layout = engine.layout().fingerprint(),
          .block_size = engine.layout().block_size,
          .saved_at = std::time(nullptr),
          .owner = {},
          .id = {},
          .public_id = {},
          .policy = {},
          .image = std::move(image)};
}

std::vector<std::byte> encode_lane_image(const LaneImage& lane) {
  ByteWriter out;
  out.put_text(kMagic);
  out.put(kVersion);
  out.put(lane.block_size);
  out.put(lane.model);
  out.put(lane.layout);
  out.put(lane.saved_at);
  put_text(out, lane.owner);
  put_text(out, lane.id);
  put_text(out, lane.public_id);
  put_text(out, lane.policy);
  put_text(out, lane.sparse_prompt);
  const std::vector<std::byte> image = encode_image(lane.image);
  out.put_count(image.size());
  out.put_bytes(image);
  out.put(hash_bytes(out.bytes()));
  return std::move(out.bytes());
}

Result<LaneImage> decode_lane_image(std::span<const std::byte> bytes) {
  if (bytes.size() < kMagic.size() + sizeof kVersion + sizeof(Hash128)) {
    return error(Code::kDamaged, "{} bytes, which are no exported session", bytes.size());
  }
  const auto body = bytes.first(bytes.size() - sizeof(Hash128));
  ByteReader in(body);
  if (in.get_text(kMagic.size()) != kMagic) return error(Code::kDamaged, "bytes that are no exported session");
  const auto version = in.get<std::uint32_t>();
  if (version < 1 || version > kVersion) {
    return error(Code::kUnsupported, "an exported session of version {}, and this ebb reads 1 to {}", version,
                 kVersion);
  }
  if (ByteReader(bytes.last(sizeof(Hash128))).get<Hash128>() != hash_bytes(body)) {
    return error(Code::kDamaged, "an exported session whose checksum does not match its bytes");
  }
  LaneImage lane;
  lane.block_size = in.get<std::int32_t>();
  lane.model = in.get<Hash128>();
  lane.layout = in.get<Hash128>();
  lane.saved_at = in.get<std::int64_t>();
  lane.owner = in.get_text(in.get_count(1));
  lane.id = in.get_text(in.get_count(1));
  lane.public_id = in.get_text(in.get_count(1));
  if (version > 1) lane.policy = in.get_text(in.get_count(1));
  if (version > 2) lane.sparse_prompt = in.get_text(in.get_count(1));
  const auto image = in.get_bytes(in.get_count(1));
  if (!in.ok() || !in.at_end()) return error(Code::kDamaged, "an exported session whose parts do not fill its bytes");
  EBB_ASSIGN_OR_RETURN(lane.image, decode_image(image));
  return lane;
}

}  // namespace ebb
