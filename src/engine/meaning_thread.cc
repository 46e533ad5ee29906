#include "engine/meaning_thread.h"

#include <algorithm>
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

void lower_priority() {
#ifdef __linux__
  // Of this thread alone, there.
  (void)setpriority(PRIO_PROCESS, 0, kNice);
#endif
}

}  // namespace

Result<std::unique_ptr<MeaningThread>> MeaningThread::open(const Embedder& model, const Deps& deps) {
  EBB_ASSIGN_OR_RETURN(
      std::unique_ptr<Embedder> embedder,
      model.open_beside(
          {.n_threads = 1, .most_tokens = kPassTokens, .n_together = static_cast<std::int32_t>(kTogether)}));
  return std::unique_ptr<MeaningThread>(new MeaningThread(std::move(embedder), deps));
}

MeaningThread::MeaningThread(std::unique_ptr<Embedder> embedder, const Deps& deps)
    : embedder_(std::move(embedder)), deps_(deps) {
  thread_ = std::jthread([this] { run(); });
}

MeaningThread::~MeaningThread() {
  {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
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
  std::erase_if(wanted, [](const auto& meaning) { return meaning->is_done(); });
  auto wait = std::make_shared<MeaningWait>(most_ms, wanted.empty() ? std::function<void()>() : std::move(notify));
  const std::scoped_lock lock(mutex_);
  if (wanted.empty() || stops_) {
    wait->finish();
    return wait;
  }
  awaited_.push_back({.wait = wait, .left = {wanted.begin(), wanted.end()}});
  changed_.notify_all();
  return wait;
}

void MeaningThread::wait_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !is_busy_ && now_.empty() && awaited_.empty() && behind_.empty(); });
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

// --- the thread ---

void MeaningThread::run() {
  lower_priority();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stops_ || !now_.empty() || !awaited_.empty() || !behind_.empty(); });
    if (stops_) break;
    Batch batch = next_batch();
    is_busy_ = true;
    lock.unlock();
    try {
      make(batch);
    } catch (...) {  // short of memory: these are found by others
      for (const std::shared_ptr<Meaning>& meaning : batch) {
        if (!meaning->is_done()) meaning->give_up();
      }
    }
    // What nobody else holds goes here, and not under the lock.
    batch.clear();
    lock.lock();
    is_busy_ = false;
    const std::vector<std::shared_ptr<MeaningWait>> ready = take_ready();
    changed_.notify_all();
    lock.unlock();
    for (const auto& wait : ready) wait->finish();
    lock.lock();
  }
  std::deque<Awaited> left = std::exchange(awaited_, {});
  lock.unlock();
  for (const Awaited& one : left) one.wait->finish();
}

// As many as a pass is likely to take.
MeaningThread::Batch MeaningThread::next_batch() {
  Batch batch;
  std::size_t n_texts = 0;
  const auto take = [&](std::shared_ptr<Meaning> meaning) {
    if (meaning->is_done()) return;
    n_texts += std::max<std::size_t>(1, meaning->texts().size());
    batch.push_back(std::move(meaning));
  };
  for (; !now_.empty() && n_texts < kTogether; now_.pop_front()) take(now_.front());
  // What was said is not held up by blocks.
  if (!batch.empty()) return batch;
  for (Awaited& one : awaited_) {
    for (; !one.left.empty() && n_texts < kTogether; one.left.pop_front()) take(one.left.front());
  }
  return batch.empty() ? next_behind() : batch;
}

MeaningThread::Batch MeaningThread::next_behind() {
  Batch batch;
  std::size_t n_texts = 0;
  for (; !behind_.empty() && n_texts < kTogether; behind_.pop_front()) {
    std::shared_ptr<Meaning> meaning = behind_.front().lock();
    if (meaning == nullptr || meaning->is_done()) continue;
    n_texts += std::max<std::size_t>(1, meaning->texts().size());
    batch.push_back(std::move(meaning));
  }
  return batch;
}

std::vector<std::shared_ptr<MeaningWait>> MeaningThread::take_ready() {
  std::vector<std::shared_ptr<MeaningWait>> ready;
  std::erase_if(awaited_, [&](Awaited& one) {
    while (!one.left.empty() && one.left.front()->is_done()) one.left.pop_front();
    if (!one.left.empty() && !one.wait->is_over()) return false;
    ready.push_back(one.wait);
    return true;
  });
  return ready;
}

// --- making ---

void MeaningThread::make(const Batch& batch) {
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
  std::vector<MeaningVectors> made = embed(to_embed);
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
  return {.model = embedder_->fingerprint(),
          .layout = hash_words({static_cast<std::uint64_t>(embedder_->n_dimensions())}),
          .name = Hasher().add(meaning.name()).add_text("meaning").add(embedder_->fingerprint()).finish(),
          .kind = RecordKind::kMeaning};
}

bool MeaningThread::read(Meaning& meaning) {
  if (deps_.store == nullptr) return false;
  const RecordKey wanted = key(meaning);
  const Result<RecordHandle> record = deps_.store->get(wanted);
  if (!record.ok()) return false;
  const RecordHeader& header = (*record)->header();
  const auto n_dimensions = static_cast<std::size_t>(embedder_->n_dimensions());
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
  Result<std::vector<Token>> tokens = embedder_->tokenize(text);
  if (!tokens.ok()) return {};
  if (std::cmp_greater(tokens->size(), embedder_->max_tokens())) {
    // The mark at its end stays.
    const Token last = tokens->back();
    tokens->resize(static_cast<std::size_t>(embedder_->max_tokens()));
    tokens->back() = last;
    count([](MeaningStats& stats) { ++stats.n_cut; });
  }
  return *std::move(tokens);
}

// [meaning]; without vectors where not all of one's could be made.
std::vector<MeaningVectors> MeaningThread::embed(const Batch& batch) {
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
      if (!pass.empty() && std::cmp_greater(n_tokens, embedder_->max_tokens())) break;
      pass.push_back(texts[i].tokens);
    }
    const Result<std::vector<std::vector<float>>> vectors = embedder_->embed_together(pass, is_cancelled);
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
