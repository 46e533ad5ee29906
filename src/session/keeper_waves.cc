// How blocks come: back from the cold store, in frames of other sessions, or into a prompt whole.
//
// A wave is bounded: its records are read while others compute, and only when they are there do its blocks get frames.
#include <algorithm>
#include <atomic>
#include <new>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "device/backend.h"
#include "session/keeper.h"

namespace ebb {
namespace {

// Bytes for which another thread is worth starting. Fewer: on a busy machine the turn waits longer for it than it saves.
constexpr std::size_t kThreadBytes = std::size_t{4} << 20;

std::vector<Result<RecordHandle>> take(const std::shared_ptr<Fetch>& fetch) {
  if (fetch == nullptr) return {};
  fetch->wait();
  return fetch->take();
}

}  // namespace

std::shared_ptr<Fetch> Keeper::fetch(std::vector<RecordRequest> requests, ReadBy by) {
  return requests.empty() ? nullptr : io_.store()->fetch(std::move(requests), deps_.when_fetched, by);
}

// --- waves ---

Wave Keeper::begin_wave(std::span<const BlockIndex> blocks, ReadBy by, std::span<const HeadSet> wanted) {
  Wave wave{.blocks = {blocks.begin(), blocks.end()}, .wanted = {wanted.begin(), wanted.end()}};
  wave.wanted.resize(blocks.size(), hot_.shape().all_heads());
  std::vector<RecordRequest> requests;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const BlockIndex block = blocks[i];
    const HeadSet missing = hot_.missing_heads(block) & wave.wanted[i];
    wave.heads.push_back(missing);
    bool is_listed = missing.empty();
    if (const HotBlock* const listed = hot_.find_listed(block); listed != nullptr) {
      is_listed = true;
      missing.for_each([&](std::size_t head) { is_listed &= listed->frames[head] != kNoFrame; });
    }
    wave.records.push_back(is_listed || !io_.has_store() ? -1 : static_cast<std::int32_t>(requests.size()));
    if (wave.records.back() < 0) continue;
    requests.push_back({.key = io_.record_key(hot_.exact_name(block)), .frames = BlockIo::frames_of(missing)});
  }
  wave.fetch = fetch(std::move(requests), by);
  return wave;
}

void Keeper::end_wave(Wave wave, Acts& acts) {
  const Stopwatch watch;
  const std::vector<Result<RecordHandle>> records = take(wave.fetch);
  std::vector<Arrival> arrivals;
  for (std::size_t i = 0; i < wave.blocks.size(); ++i) {
    const BlockIndex block = wave.blocks[i];
    // It came by itself while the records were read.
    if ((hot_.missing_heads(block) & wave.wanted[i]).empty()) continue;
    const Result<RecordHandle>* const read =
        wave.records[i] < 0 ? nullptr : &records[static_cast<std::size_t>(wave.records[i])];
    Result<Arrival> arrival = begin_arrival(
        {.block = block, .wanted = wave.wanted[i], .read = wave.heads[i], .is_placed = wave.is_placed}, read);
    arrivals.push_back(arrival.ok() ? std::move(arrival).value() : Arrival{.block = block, .status = arrival.status()});
  }
  fill_all(arrivals);
  for (Arrival& arrival : arrivals) {
    arrival.status = end_arrival(arrival);
    note_return(arrival, acts);
  }
  note_peak();
  acts.recall_ms += watch.elapsed_ms();
}

// Frames for a block: those that another session has it in, or else its own and a record to fill them. `read` is null where
// the block was hot elsewhere.
Result<Keeper::Arrival> Keeper::begin_arrival(const Coming& coming, const Result<RecordHandle>* read) {
  const BlockIndex block = coming.block;
  const HeadSet missing = hot_.missing_heads(block) & coming.wanted;
  Arrival arrival{.block = block, .was_cold = hot_.n_hot_frames(block) == 0};
  if (!coming.is_placed) place_cold(block);
  const bool is_read = read != nullptr && read->ok();
  if (is_read) EBB_RETURN_IF_ERROR(io_.check(block, **read));
  EBB_ASSIGN_OR_RETURN(arrival.heads, hot_.come(block, missing));
  const auto give_up = [&](const Status& status) {
    hot_.leave(block, missing);
    return status;
  };
  if (!hot_.is_full(block)) {
    if (Status held = hot_.hold_open(block); !held.ok()) return give_up(held);
  }
  if (arrival.heads.empty()) return arrival;
  if (is_read && (arrival.heads - coming.read).empty()) {
    arrival.record = **read;
    return arrival;
  }
  // What another session had hot may have left meanwhile, saved; and so may more of the block than was asked for.
  Result<RecordHandle> record = io_.get(block, arrival.heads);
  if (!record.ok()) {
    const bool says_more = read != nullptr && !read->ok() && read->status().code() != Code::kNotFound;
    return give_up(says_more ? read->status() : record.status());
  }
  arrival.record = *std::move(record);
  return arrival;
}

// By several threads, where frames are in this process's memory. Each writes its own block's frames and nothing else.
void Keeper::fill_all(std::span<Arrival> arrivals) {
  std::atomic<std::size_t> n_taken{0};
  const auto work = [&] {
    for (std::size_t i = n_taken.fetch_add(1); i < arrivals.size(); i = n_taken.fetch_add(1)) {
      Arrival& arrival = arrivals[i];
      if (arrival.record != nullptr) arrival.status = io_.fill(arrival.block, arrival.heads, *arrival.record);
    }
  };
  static const auto n_cores = static_cast<std::size_t>(default_threads());
  std::size_t n_bytes = 0;
  for (const Arrival& arrival : arrivals) {
    if (arrival.record != nullptr) n_bytes += io_.block_bytes(arrival.block);
  }
  const std::size_t n_useful = io_.is_on_host() ? std::min(arrivals.size(), n_bytes / kThreadBytes) : 1;
  std::vector<std::jthread> threads;
  try {
    while (threads.size() + 1 < std::min(n_cores, n_useful)) threads.emplace_back(work);
  } catch (const std::system_error&) {  // no more than there are: those that began and this one do it
  }
  work();
}

// A block whose bytes did not hold leaves those heads again, and its record goes; one that there was no memory for keeps it.
Status Keeper::end_arrival(Arrival& arrival) {
  const BlockIndex block = arrival.block;
  if (!arrival.status.ok() && arrival.record != nullptr && arrival.status.code() != Code::kOutOfBudget) {
    io_.refuse(arrival.record);
    // A second tier may have a good record where the first had a damaged one.
    Result<RecordHandle> second = io_.get(block, arrival.heads);
    if (second.ok()) {
      arrival.record = *std::move(second);
      arrival.status = io_.fill(block, arrival.heads, *arrival.record);
      if (!arrival.status.ok()) io_.refuse(arrival.record);
    }
  }
  if (!arrival.status.ok()) {
    if (arrival.record != nullptr) hot_.leave(block, arrival.was_cold ? hot_.shape().all_heads() : arrival.heads);
    return arrival.status;
  }
  if (arrival.record != nullptr) {
    const RecordHeader& header = arrival.record->header();
    const bool is_turned = hot_.anchor(block) != header.anchor || hot_.is_uneven(block);
    if (hot_.info(block).body == Hash128()) hot_.set_body(block, header.body, {});
    // Beside heads whose rows were computed again, what came does not make it what its name means.
    hot_.set_turned(block, is_turned || hot_.is_renewed(block));
    if (is_turned) count_move(block);
  } else if (const HotBlock* const listed = hot_.find_listed(block);
             listed != nullptr && hot_.info(block).body == Hash128()) {
    hot_.set_body(block, listed->body, {});
  }
  publish(block);
  return {};
}

void Keeper::note_return(const Arrival& arrival, Acts& acts) {
  const BlockIndex block = arrival.block;
  if (!arrival.status.ok()) {
    // What found no room is there still.
    if (arrival.status.code() == Code::kOutOfBudget) return;
    ++stats_.n_missed_recalls;
    acts.lost.push_back(block);
    return;
  }
  ++stats_.n_recalled_blocks;
  if (arrival.heads.empty()) {
    ++stats_.n_shared_blocks;
    acts.shared.push_back(block);
  }
  acts.recalled.push_back(block);
}

// The block that new tokens join: where they go on, since its anchors must go on without a gap.
Status Keeper::wake_last(Acts& acts) {
  const BlockIndex last = hot_.last_block();
  const bool is_of_epoch = hot_.info(last).epoch == hot_.epoch();
  const Position end_anchor = hot_.anchor(last) + hot_.span(last).n_tokens();
  if (!is_of_epoch || end_anchor != hot_.next_anchor()) place_at_tail(last);
  Acts came;
  Wave wave = begin_wave({&last, 1}, ReadBy::kCaller);
  wave.is_placed = true;
  end_wave(std::move(wave), came);
  acts += came;
  if (hot_.is_hot(last)) return {};
  return came.lost.empty() ? error(Code::kOutOfBudget, "no room for the last block") : error(Code::kNotFound, "lost");
}

// --- adopting ---

Adoption Keeper::find_blocks(std::span<const Token> tokens, bool whole) {
  Adoption adoption;
  std::vector<RecordRequest> requests;
  const auto size = static_cast<std::size_t>(hot_.block_size());
  const auto find = [&](const HotSet::NamedBlock& named, std::span<const Token> own) -> std::optional<Hash128> {
    const HotBlock* listed = deps_.sources.shared == nullptr ? nullptr : deps_.sources.shared->find(named.name);
    const Position anchor = hot_.next_anchor() + static_cast<std::int32_t>(adoption.records.size() * size);
    const bool is_hot = listed != nullptr && listed->n_frames == hot_.shape().frames_per_block() &&
                        listed->anchor == anchor && std::ranges::equal(listed->tokens, own);
    const std::optional<Hash128> body = is_hot ? std::optional(listed->body) : io_.find(named.name);
    if (!body) return std::nullopt;
    adoption.records.push_back(is_hot ? -1 : static_cast<std::int32_t>(requests.size()));
    if (!is_hot) requests.push_back({.key = io_.record_key(named.name), .frames = {}});
    return body;
  };
  adoption.names = hot_.names_behind(tokens, whole, find);
  if (snapshots_) keep_reach(adoption, requests);
  adoption.fetch = fetch(std::move(requests));
  return adoption;
}

// No further than the sequence's state can go along, whose snapshot is read too.
void Keeper::keep_reach(Adoption& adoption, std::vector<RecordRequest>& requests) const {
  const std::optional<Snapshots::Reach> reach = snapshots_->find_reach(adoption.names);
  const std::size_t n_blocks = reach ? reach->n_blocks : 0;
  adoption.names.resize(n_blocks);
  adoption.records.resize(n_blocks);
  requests.resize(static_cast<std::size_t>(std::ranges::count_if(adoption.records, [](int i) { return i >= 0; })));
  if (!reach) return;
  adoption.state_record = static_cast<std::int32_t>(requests.size());
  requests.push_back({.key = reach->key, .frames = {}});
}

Adopted Keeper::adopt(Adoption adoption, std::span<const Token> tokens, Acts& acts) {
  const Stopwatch watch;
  const std::vector<Result<RecordHandle>> records = take(adoption.fetch);
  const auto size = static_cast<std::size_t>(hot_.block_size());
  const Position begin = hot_.end();
  const Position first_anchor = hot_.next_anchor();
  for (std::size_t i = 0; i < adoption.names.size(); ++i) {
    Lineage lineage;
    lineage.add(adoption.names[i].visible, hot_.block_size());
    hot_.add_cold(tokens.subspan(i * size, size), std::move(lineage), adoption.names[i].body);
  }
  // What a window hides from the tokens behind these is not brought in.
  look_from(hot_.end());
  std::vector<Arrival> arrivals;
  for (std::size_t i = 0; i < adoption.names.size(); ++i) {
    const BlockIndex block = hot_.block_at(begin + static_cast<std::int32_t>(i * size));
    EBB_CHECK(hot_.exact_name(block) == adoption.names[i].name, "block {} is adopted by another name", block.value());
    const Result<RecordHandle>* const read =
        adoption.records[i] < 0 ? nullptr : &records[static_cast<std::size_t>(adoption.records[i])];
    const HeadSet all = hot_.shape().all_heads();
    Result<Arrival> arrival = begin_arrival({.block = block, .wanted = all, .read = all, .is_placed = true}, read);
    if (!arrival.ok()) break;
    arrivals.push_back(std::move(arrival).value());
  }
  fill_all(arrivals);
  std::size_t n_good = 0;
  while (n_good < arrivals.size() && end_arrival(arrivals[n_good]).ok()) ++n_good;
  if (snapshots_) {
    const auto at = static_cast<std::size_t>(adoption.state_record);
    const bool is_read = adoption.state_record >= 0 && records[at].ok();
    const Position stays =
        snapshots_->adopt(std::span(adoption.names).first(n_good), is_read ? *records[at] : RecordHandle());
    n_good = static_cast<std::size_t>(stays - begin) / size;
  }
  Adopted adopted;
  for (const Arrival& arrival : std::span(arrivals).first(n_good)) {
    ++stats_.n_recalled_blocks;
    acts.adopted.push_back(arrival.block);
    if (arrival.heads.empty()) acts.shared.push_back(arrival.block);
    if (arrival.heads.empty()) ++stats_.n_shared_blocks;
    (arrival.heads.empty() ? adopted.n_shared : adopted.n_recalled) += hot_.block_size();
  }
  // What did not come is not part of the session.
  if (n_good < adoption.names.size()) {
    const auto n_tokens = static_cast<std::int32_t>(n_good * size);
    hot_.cut(begin + n_tokens);
    hot_.set_next_anchor(first_anchor + n_tokens);
  }
  note_peak();
  acts.recall_ms += watch.elapsed_ms();
  return adopted;
}

}  // namespace ebb
