#include "engine/meaning_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <sys/resource.h>

#include "base/clock.h"

namespace ebb {
namespace {

// Tokens of a pass, and texts in it. More: what was just said waits longer for the pass under way. Fewer: weights are read more often for
// the same texts.
constexpr std::int32_t kPassTokens = 512;
constexpr std::size_t kTogether = 16;

// Blocks that may wait. More: their texts take memory. Fewer: of a document that is read faster than it is embedded, blocks are asked for
// only once a look wants them.
constexpr std::size_t kMostWaiting = 16384;

// Against the engine's threads, which have 0. Less: prompts and replies are slower for it. More: of a long prompt on a machine whose
// processors all compute it, little is embedded when it ends.
constexpr int kNice = 10;

// How often it is looked whether a wait is over, while others compute what it waits for.
constexpr std::chrono::milliseconds kLookAgain{5};

void lower_priority() {
#ifdef __linux__
  // Of this thread alone, there.
  (void)setpriority(PRIO_PROCESS, 0, kNice);
#endif
}

}  // namespace

Result<std::unique_ptr<MeaningThread>> MeaningThread::open(const Embedder& model, const Deps& deps) {
  const EmbedderOptions options{
      .n_threads = 1, .most_tokens = kPassTokens, .n_together = static_cast<std::int32_t>(kTogether)};
  EBB_ASSIGN_OR_RETURN(std::unique_ptr<Embedder> for_now, model.open_beside(options));
  EBB_ASSIGN_OR_RETURN(std::unique_ptr<Embedder> for_behind, model.open_beside(options));
  return std::unique_ptr<MeaningThread>(new MeaningThread(std::move(for_now), std::move(for_behind), deps));
}

MeaningThread::MeaningThread(std::unique_ptr<Embedder> for_now, std::unique_ptr<Embedder> for_behind, const Deps& deps)
    : for_now_(std::move(for_now)), for_behind_(std::move(for_behind)), deps_(deps) {
  now_thread_ = std::jthread([this] { run(Work::kNow, *for_now_); });
  behind_thread_ = std::jthread([this] {
    lower_priority();
    run(Work::kBehind, *for_behind_);
  });
}

MeaningThread::~MeaningThread() {
  {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  now_thread_.join();
  behind_thread_.join();
  for (const Awaited& one : awaited_) one.wait->finish();
}

// --- asking ---

std::shared_ptr<Meaning> MeaningThread::ask_behind(const Hash128& exact_name, Passages passages) {
  // The sentence that its begin cuts may have begun otherwise, where what lies before it was a hole.
  Hasher hasher;
  hasher.add(exact_name);
  for (const std::string& text : passages.texts) hasher.add_text(text);
  const Hash128 name = hasher.finish();
  const std::scoped_lock lock(mutex_);
  std::weak_ptr<Meaning>& known = known_[name];
  if (std::shared_ptr<Meaning> meaning = known.lock()) return meaning;
  if (behind_.size() >= kMostWaiting) return nullptr;
  auto meaning = std::make_shared<Meaning>(name, std::move(passages));
  known = meaning;
  behind_.push_back(meaning);
  forget_gone();
  changed_.notify_all();
  return meaning;
}

// Names whose meanings nobody holds, once they may be half of all.
void MeaningThread::forget_gone() {
  constexpr std::size_t kLeast = 1024;
  if (known_.size() < std::max(kLeast, 2 * n_known_after_sweep_)) return;
  std::erase_if(known_, [](const auto& one) { return one.second.expired(); });
  n_known_after_sweep_ = known_.size();
}

std::shared_ptr<Meaning> MeaningThread::ask_now(std::string_view text) {
  auto meaning = std::make_shared<Meaning>(Hash128(), Passages{.texts = {std::string(text)}});
  const std::scoped_lock lock(mutex_);
  now_.push_back(meaning);
  changed_.notify_all();
  return meaning;
}

std::shared_ptr<MeaningWait> MeaningThread::await(std::vector<std::shared_ptr<Meaning>> wanted, double most_ms,
                                                  std::function<void()> notify) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(wanted, [](const auto& meaning) { return meaning->is_done(); });
  auto wait = std::make_shared<MeaningWait>(most_ms, wanted.empty() ? std::function<void()>() : std::move(notify));
  if (wanted.empty() || stops_) {
    wait->finish();
    return wait;
  }
  awaited_.push_back({.wait = wait, .wanted = std::move(wanted)});
  changed_.notify_all();
  return wait;
}

void MeaningThread::wait_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return n_busy_ == 0 && now_.empty() && awaited_.empty() && behind_.empty(); });
}

MeaningStats MeaningThread::stats() const {
  const std::scoped_lock lock(mutex_);
  MeaningStats stats = stats_;
  stats.n_waiting = behind_.size();
  return stats;
}

void MeaningThread::count(const std::function<void(MeaningStats&)>& add) {
  const std::scoped_lock lock(mutex_);
  add(stats_);
}

// --- the threads ---

bool MeaningThread::has(Work work) const {
  if (work == Work::kBehind) return !behind_.empty();
  return !now_.empty() ||
         std::ranges::any_of(awaited_, [](const Awaited& one) { return one.n_offered < one.wanted.size(); });
}

void MeaningThread::wait_for(Work work, std::unique_lock<std::mutex>& lock) {
  const auto is_wanted = [&] { return stops_ || has(work); };
  if (work == Work::kBehind) return changed_.wait(lock, is_wanted);
  changed_.wait(lock, [&] { return is_wanted() || !awaited_.empty(); });
  // Others compute the rest of what is awaited; its time may be over before they have.
  (void)changed_.wait_for(lock, kLookAgain, is_wanted);
}

void MeaningThread::run(Work work, Embedder& embedder) {
  std::unique_lock lock(mutex_);
  while (true) {
    wait_for(work, lock);
    if (stops_) return;
    Batch batch = next_batch(work);
    ++n_busy_;
    lock.unlock();
    try {
      make(batch, embedder);
    } catch (...) {  // short of memory: these are found by others
      for (const std::shared_ptr<Meaning>& meaning : batch) {
        if (!meaning->is_done()) meaning->give_up();
      }
    }
    lock.lock();
    for (const std::shared_ptr<Meaning>& meaning : batch) under_way_.erase(meaning.get());
    const std::vector<std::shared_ptr<MeaningWait>> ready = take_ready();
    lock.unlock();
    for (const auto& wait : ready) wait->finish();
    // What nobody else holds gives its memory back before this thread counts as idle.
    batch.clear();
    lock.lock();
    --n_busy_;
    changed_.notify_all();
  }
}

// As many as a pass is likely to take; what was said is not held up by blocks.
MeaningThread::Batch MeaningThread::next_batch(Work work) {
  Batch batch;
  std::size_t n_texts = 0;
  const auto offer = [&](std::shared_ptr<Meaning> meaning) {
    if (meaning == nullptr || meaning->is_done() || !under_way_.insert(meaning.get()).second) return;
    n_texts += std::max<std::size_t>(1, meaning->texts().size());
    batch.push_back(std::move(meaning));
  };
  if (work == Work::kBehind) {
    for (; !behind_.empty() && n_texts < kTogether; behind_.pop_front()) offer(behind_.front().lock());
    return batch;
  }
  for (; !now_.empty() && n_texts < kTogether; now_.pop_front()) offer(now_.front());
  if (!batch.empty()) return batch;
  for (Awaited& one : awaited_) {
    for (; one.n_offered < one.wanted.size() && n_texts < kTogether; ++one.n_offered) offer(one.wanted[one.n_offered]);
  }
  return batch;
}

std::vector<std::shared_ptr<MeaningWait>> MeaningThread::take_ready() {
  std::vector<std::shared_ptr<MeaningWait>> ready;
  std::erase_if(awaited_, [&](Awaited& one) {
    while (one.n_done < one.wanted.size() && one.wanted[one.n_done]->is_done()) ++one.n_done;
    if (one.n_done < one.wanted.size() && !one.wait->is_over()) return false;
    ready.push_back(one.wait);
    return true;
  });
  return ready;
}

// --- making ---

void MeaningThread::make(const Batch& batch, Embedder& embedder) {
  Batch to_embed;
  for (const std::shared_ptr<Meaning>& meaning : batch) {
    const bool is_blocks = meaning->name() != Hash128();
    if (meaning->texts().empty()) {
      meaning->give_up();
    } else if (!is_blocks || !read(*meaning)) {
      if (!meaning->is_done()) to_embed.push_back(meaning);
    }
  }
  if (to_embed.empty()) return;
  std::vector<MeaningVectors> made = embed(to_embed, embedder);
  for (std::size_t i = 0; i < to_embed.size(); ++i) {
    Meaning& meaning = *to_embed[i];
    if (made[i].size() == 0) {
      count([](MeaningStats& stats) { ++stats.n_failed; });
      meaning.give_up();
      continue;
    }
    if (meaning.name() == Hash128()) {
      meaning.set(std::move(made[i]), nullptr);
      continue;
    }
    keep(meaning, made[i]);
    if (!deps_.room.take(made[i].bytes().size())) {
      count([](MeaningStats& stats) { ++stats.n_without_room; });
      meaning.give_up();
      continue;
    }
    count([](MeaningStats& stats) { ++stats.n_blocks; });
    meaning.set(std::move(made[i]), &deps_.room);
  }
}

// Vectors that another model made are none of these.
RecordKey MeaningThread::key(const Meaning& meaning) const {
  return {.model = for_now_->fingerprint(),
          .layout = hash_words({static_cast<std::uint64_t>(for_now_->n_dimensions())}),
          .name = Hasher().add(meaning.name()).add_text("meaning").add(for_now_->fingerprint()).finish(),
          .kind = RecordKind::kMeaning};
}

bool MeaningThread::read(Meaning& meaning) {
  if (deps_.store == nullptr) return false;
  const RecordKey wanted = key(meaning);
  const Result<RecordHandle> record = deps_.store->get(wanted);
  if (!record.ok()) return false;
  const RecordHeader& header = (*record)->header();
  const auto n_dimensions = static_cast<std::size_t>(for_now_->n_dimensions());
  const std::size_t n_bytes = meaning.texts().size() * MeaningVectors::bytes_of(n_dimensions);
  if (!(*record)->match(wanted).ok() || header.frame_bytes != n_bytes) return false;
  std::vector<std::byte> bytes;
  bytes.reserve(n_bytes);
  const Status copied = (*record)->copy_frames(
      [&](std::int32_t, std::span<const std::byte> frame) { bytes.insert(bytes.end(), frame.begin(), frame.end()); });
  if (!copied.ok()) {
    deps_.store->refuse(*record);
    return false;
  }
  if (!deps_.room.take(n_bytes)) {
    count([](MeaningStats& stats) { ++stats.n_without_room; });
    meaning.give_up();
    return false;
  }
  count([](MeaningStats& stats) { ++stats.n_read; });
  meaning.set(MeaningVectors(n_dimensions, std::move(bytes)), &deps_.room);
  return true;
}

// What the store has no room for is computed again by whoever needs it.
void MeaningThread::keep(const Meaning& meaning, const MeaningVectors& vectors) {
  if (deps_.store == nullptr) return;
  RecordBuilder record({.key = key(meaning),
                        .begin = Position(0),
                        .anchor = Position(0),
                        .n_frames = static_cast<std::int32_t>(vectors.size()),
                        .frame_bytes = vectors.bytes().size()},
                       {});
  std::ranges::copy(vectors.bytes(), record.frames().begin());
  (void)deps_.store->put(std::move(record).seal());
}

std::vector<Token> MeaningThread::tokenize(const std::string& text) {
  Result<std::vector<Token>> tokens = for_now_->tokenize(text);
  if (!tokens.ok()) return {};
  if (std::cmp_greater(tokens->size(), for_now_->max_tokens())) {
    // The mark at its end stays.
    const Token last = tokens->back();
    tokens->resize(static_cast<std::size_t>(for_now_->max_tokens()));
    tokens->back() = last;
    count([](MeaningStats& stats) { ++stats.n_cut; });
  }
  return *std::move(tokens);
}

// [meaning]; without vectors where not all of one's could be made.
std::vector<MeaningVectors> MeaningThread::embed(const Batch& batch, Embedder& embedder) {
  struct Text {
    std::size_t meaning = 0;
    std::vector<Token> tokens;
  };
  std::vector<Text> texts;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    for (const std::string& text : batch[i]->texts()) {
      std::vector<Token> tokens = tokenize(text);
      if (!tokens.empty()) texts.push_back({.meaning = i, .tokens = std::move(tokens)});
    }
  }
  const Stopwatch watch;
  const auto is_cancelled = [this] {
    const std::scoped_lock lock(mutex_);
    return stops_;
  };
  std::vector<MeaningVectors> made(batch.size());
  for (std::size_t first = 0; first < texts.size();) {
    std::vector<std::vector<Token>> pass;
    std::size_t n_tokens = 0;
    for (std::size_t i = first; i < texts.size() && pass.size() < kTogether; ++i) {
      n_tokens += texts[i].tokens.size();
      if (!pass.empty() && std::cmp_greater(n_tokens, embedder.max_tokens())) break;
      pass.push_back(texts[i].tokens);
    }
    const Result<std::vector<std::vector<float>>> vectors = embedder.embed_together(pass, is_cancelled);
    for (std::size_t i = 0; vectors.ok() && i < pass.size(); ++i) made[texts[first + i].meaning].add((*vectors)[i]);
    first += pass.size();
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (made[i].size() != batch[i]->texts().size()) made[i] = {};
  }
  count([&](MeaningStats& stats) {
    stats.n_texts += std::ssize(texts);
    stats.ms += watch.elapsed_ms();
  });
  return made;
}

}  // namespace ebb
