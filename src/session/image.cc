#include "session/image.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/byte_io.h"

namespace ebb {
namespace {

constexpr std::string_view kMagic = "ebbsessn";
constexpr std::uint32_t kVersion = 8;
// Does not say on what slices rely.
constexpr std::uint32_t kUnreliedVersion = 7;
// Does not say whether totals are pooled: none were.
constexpr std::uint32_t kUnpooledVersion = 6;
// Nor has it notes on slices and on queries.
constexpr std::uint32_t kOldestVersion = 5;

// Least bytes of each, to bound counts before anything is allocated for them.
constexpr std::size_t kTokenBytes = 4;
constexpr std::size_t kPartBytes = 28;
constexpr std::size_t kBlockBytes = 80;
constexpr std::size_t kRunBytes = 20;
constexpr std::size_t kBorderBytes = 32;
constexpr std::size_t kNoteBytes = 32;

// More than any block has.
constexpr std::int32_t kMostRunTokens = 512;
constexpr std::int32_t kMostSlices = 1024;

// More than any session counts, and far from overflow.
constexpr std::int64_t kMostCounted = std::int64_t{1} << 60;

// In the order of the bytes.
constexpr std::array kCounters = {
    &SessionStats::n_evicted_blocks, &SessionStats::n_saved_blocks,       &SessionStats::n_recalled_blocks,
    &SessionStats::n_shared_blocks,  &SessionStats::n_recomputed_blocks,  &SessionStats::n_missed_recalls,
    &SessionStats::n_moved_blocks,   &SessionStats::n_requantised_blocks, &SessionStats::n_rebases};

void put_part(ByteWriter& out, const Part& part) {
  out.put(part.span.begin.value());
  out.put(part.span.end.value());
  out.put(static_cast<std::uint32_t>(part.source));
  out.put(std::uint32_t{part.pinned});
  out.put(part.priority);
  out.put_count(part.name.size());
  out.put_text(part.name);
}

Part get_part(ByteReader& in) {
  Part part;
  part.span.begin = Position(in.get<std::int32_t>());
  part.span.end = Position(in.get<std::int32_t>());
  part.source = static_cast<Source>(in.get<std::uint32_t>() & 3U);
  part.pinned = in.get<std::uint32_t>() != 0;
  part.priority = in.get<double>();
  part.name = in.get_text(in.get_count(1));
  return part;
}

void put_block(ByteWriter& out, const SessionImage::Block& block) {
  out.put(block.info.variant);
  out.put(block.info.body);
  out.put(block.info.anchor.value());
  out.put(std::uint32_t{block.info.is_exact});
  out.put(block.info.epoch);
  out.put(std::uint32_t{block.pinned});
  out.put(block.age);
  out.put(block.attention);
  out.put(block.recovery);
  out.put_count(block.info.lineage.runs().size());
  for (const Lineage::Run& run : block.info.lineage.runs()) {
    out.put(run.visible);
    out.put(run.n_tokens);
  }
}

SessionImage::Block get_block(ByteReader& in) {
  SessionImage::Block block;
  block.info.variant = in.get<Hash128>();
  block.info.body = in.get<Hash128>();
  block.info.anchor = Position(in.get<std::int32_t>());
  block.info.is_exact = in.get<std::uint32_t>() != 0;
  block.info.epoch = in.get<std::int64_t>();
  block.pinned = in.get<std::uint32_t>() != 0;
  block.age = in.get<std::int64_t>();
  block.attention = in.get<double>();
  block.recovery = in.get<double>();
  const std::size_t n_runs = in.get_count(kRunBytes);
  for (std::size_t i = 0; i < n_runs; ++i) {
    const auto visible = in.get<Hash128>();
    // What does not fit its block is found out when a session is made of it; here it must only not overflow.
    block.info.lineage.add(visible, std::clamp(in.get<std::int32_t>(), 0, kMostRunTokens));
  }
  return block;
}

void put_note(ByteWriter& out, const AttentionImage::Entry& note) {
  out.put(note.head);
  out.put(note.block);
  for (const float value : {note.total, note.n_queries, note.window_sum, note.window_max, note.last, note.reread}) {
    out.put(value);
  }
  out.put(note.n_in_window);
}

AttentionImage::Entry get_note(ByteReader& in) {
  AttentionImage::Entry note;
  note.head = in.get<std::int32_t>();
  note.block = in.get<std::int32_t>();
  for (float* value : {&note.total, &note.n_queries, &note.window_sum, &note.window_max, &note.last, &note.reread}) {
    *value = in.get<float>();
  }
  note.n_in_window = in.get<std::int32_t>();
  return note;
}

void put_queries(ByteWriter& out, const QueryImage& queries) {
  out.put_count(static_cast<std::size_t>(queries.n_dims));
  if (queries.n_dims == 0) return;
  out.put_count(queries.n_queries.size());
  for (const std::int64_t n : queries.n_queries) out.put(n);
  out.put_bytes(std::as_bytes(std::span(queries.sums)));
  out.put_bytes(std::as_bytes(std::span(queries.products)));
}

std::vector<double> get_numbers(ByteReader& in, std::size_t n) {
  std::vector<double> numbers(n);
  for (double& x : numbers) x = in.get<double>();
  return numbers;
}

// The bytes that follow bound what is allocated. What the numbers say is looked at by who goes on with them.
Result<QueryImage> get_queries(ByteReader& in) {
  QueryImage queries;
  const auto n_dims = in.get<std::uint32_t>();
  if (n_dims == 0) return queries;
  if (n_dims > static_cast<std::uint32_t>(kMaxHeadDim)) {
    return error(Code::kDamaged, "a session image with notes on queries of {} numbers", n_dims);
  }
  queries.n_dims = static_cast<std::int32_t>(n_dims);
  const std::size_t n_products = QueryImage::n_products(n_dims);
  const std::size_t n_heads = in.get_count(sizeof(std::int64_t) + (n_dims + n_products) * sizeof(double));
  for (std::size_t i = 0; i < n_heads; ++i) queries.n_queries.push_back(in.get<std::int64_t>());
  queries.sums = get_numbers(in, n_heads * n_dims);
  queries.products = get_numbers(in, n_heads * n_products);
  return queries;
}

// How many slices; where there are any, the end, which columns there are, and those.
void put_slices(ByteWriter& out, const AttentionImage::Slices& slices) {
  out.put(slices.n_slices);
  if (slices.n_slices == 0) return;
  out.put(slices.end);
  std::uint32_t columns = 0;
  for (std::size_t i = 0; i < AttentionImage::columns().size(); ++i) {
    if (!(slices.*AttentionImage::columns()[i]).empty()) columns |= std::uint32_t{1} << i;
  }
  out.put(columns);
  for (const auto column : AttentionImage::columns()) out.put_bytes(std::as_bytes(std::span(slices.*column)));
}

// Of so many notes; kDamaged where they are not all there.
Status get_slices(ByteReader& in, std::size_t n_notes, AttentionImage::Slices& slices) {
  slices.n_slices = in.get<std::int32_t>();
  if (!in.ok() || slices.n_slices == 0) return {};
  slices.end = in.get<std::int32_t>();
  const auto columns = in.get<std::uint32_t>();
  if (slices.n_slices < 0 || slices.n_slices > kMostSlices) {
    return error(Code::kDamaged, "a session image of blocks of {} slices", slices.n_slices);
  }
  for (std::size_t i = 0; i < AttentionImage::columns().size(); ++i) {
    if ((columns >> i & 1U) == 0) continue;
    const std::span<const std::byte> bytes =
        in.get_bytes(n_notes * static_cast<std::size_t>(slices.n_slices) * sizeof(float));
    std::vector<float>& column = slices.*AttentionImage::columns()[i];
    column.resize(bytes.size() / sizeof(float));
    if (!bytes.empty()) std::memcpy(column.data(), bytes.data(), bytes.size());
  }
  return {};
}

void put_reliances(ByteWriter& out, const std::optional<Reliances>& reliances) {
  out.put(reliances ? reliances->n_slice_tokens() : 0);
  if (!reliances) return;
  out.put(reliances->end().value());
  for (std::int32_t s = 0; s < reliances->n_slices(); ++s) reliances->put(s, out);
}

Result<std::optional<Reliances>> get_reliances(ByteReader& in) {
  const auto n_slice_tokens = in.get<std::int32_t>();
  if (!in.ok() || n_slice_tokens == 0) return std::optional<Reliances>();
  const auto end = in.get<std::int32_t>();
  // A number for each slice follows: the bytes bound what is allocated.
  if (n_slice_tokens < 0 || end < 0 || n_slice_tokens > kMostRunTokens) {
    return error(Code::kDamaged, "a session image with slices of {} tokens, up to {}", n_slice_tokens, end);
  }
  std::vector<std::optional<std::vector<std::int32_t>>> slices;
  for (std::int64_t begin = 0; begin < end; begin += n_slice_tokens) {
    EBB_ASSIGN_OR_RETURN(std::optional<std::vector<std::int32_t>> on, Reliances::get(in));
    slices.push_back(std::move(on));
  }
  EBB_ASSIGN_OR_RETURN(Reliances reliances, Reliances::restore(n_slice_tokens, Position(end), std::move(slices)));
  return std::optional<Reliances>(std::move(reliances));
}

SessionStats get_stats(ByteReader& in) {
  SessionStats stats;
  for (const auto counter : kCounters)
    stats.*counter = std::clamp<std::int64_t>(in.get<std::int64_t>(), 0, kMostCounted);
  return stats;
}

}  // namespace

std::vector<std::byte> encode_image(const SessionImage& image) {
  ByteWriter out;
  out.put_text(kMagic);
  out.put(kVersion);
  for (const std::size_t n : {image.tokens.size(), image.unfinished.size(), image.parts.size(), image.blocks.size()}) {
    out.put_count(n);
  }
  out.put(image.n_turns);
  out.put(image.next_anchor.value());
  out.put(image.epoch);
  for (const auto counter : kCounters) out.put(image.stats.*counter);
  for (const Token token : image.tokens) out.put(token.value());
  for (const Token token : image.unfinished) out.put(token.value());
  for (const Part& part : image.parts) put_part(out, part);
  for (const SessionImage::Block& block : image.blocks) put_block(out, block);
  out.put_count(image.attention.entries.size());
  for (const AttentionImage::Entry& note : image.attention.entries) put_note(out, note);
  out.put(std::uint32_t{image.attention.is_pooled});
  put_slices(out, image.attention.slices);
  put_queries(out, image.queries);
  put_reliances(out, image.reliances);
  if (!image.borders.empty()) out.put_count(image.borders.size());
  for (const Snapshots::Border& border : image.borders) {
    out.put(border.name);
    out.put(border.body);
  }
  out.put(hash_bytes(out.bytes()));
  return std::move(out.bytes());
}

Result<SessionImage> decode_image(std::span<const std::byte> bytes) {
  if (bytes.size() < kMagic.size() + sizeof(Hash128)) {
    return error(Code::kDamaged, "a session image of {} bytes, shorter than its header", bytes.size());
  }
  const auto body = bytes.first(bytes.size() - sizeof(Hash128));
  if (ByteReader(bytes.last(sizeof(Hash128))).get<Hash128>() != hash_bytes(body)) {
    return error(Code::kDamaged, "a session image whose checksum does not match its bytes");
  }
  ByteReader in(body);
  if (in.get_text(kMagic.size()) != kMagic) return error(Code::kDamaged, "bytes that are no session image");
  const auto version = in.get<std::uint32_t>();
  if (version < kOldestVersion || version > kVersion) {
    return error(Code::kUnsupported, "a session image of version {}, and this ebb reads versions {} to {}", version,
                 kOldestVersion, kVersion);
  }
  const std::size_t n_tokens = in.get_count(kTokenBytes);
  const std::size_t n_unfinished = in.get_count(kTokenBytes);
  const std::size_t n_parts = in.get_count(kPartBytes);
  const std::size_t n_blocks = in.get_count(kBlockBytes);
  SessionImage image{.n_turns = in.get<std::int32_t>()};
  image.next_anchor = Position(in.get<std::int32_t>());
  image.epoch = in.get<std::int64_t>();
  image.stats = get_stats(in);
  for (std::size_t i = 0; i < n_tokens; ++i) image.tokens.emplace_back(in.get<std::int32_t>());
  for (std::size_t i = 0; i < n_unfinished; ++i) image.unfinished.emplace_back(in.get<std::int32_t>());
  for (std::size_t i = 0; i < n_parts && in.ok(); ++i) image.parts.push_back(get_part(in));
  for (std::size_t i = 0; i < n_blocks && in.ok(); ++i) image.blocks.push_back(get_block(in));
  const std::size_t n_notes = in.ok() ? in.get_count(kNoteBytes) : 0;
  for (std::size_t i = 0; i < n_notes && in.ok(); ++i) image.attention.entries.push_back(get_note(in));
  if (in.ok() && version > kUnpooledVersion) image.attention.is_pooled = in.get<std::uint32_t>() != 0;
  if (in.ok() && version > kOldestVersion) EBB_RETURN_IF_ERROR(get_slices(in, n_notes, image.attention.slices));
  if (in.ok() && version > kOldestVersion) {
    EBB_ASSIGN_OR_RETURN(image.queries, get_queries(in));
  }
  if (in.ok() && version > kUnreliedVersion) {
    EBB_ASSIGN_OR_RETURN(image.reliances, get_reliances(in));
  }
  const std::size_t n_borders = in.ok() && !in.at_end() ? in.get_count(kBorderBytes) : 0;
  for (std::size_t i = 0; i < n_borders; ++i) {
    const auto name = in.get<Hash128>();
    image.borders.push_back({.name = name, .body = in.get<Hash128>()});
  }
  if (!in.ok() || !in.at_end()) return error(Code::kDamaged, "a session image whose parts do not fill its bytes");
  return image;
}

}  // namespace ebb
