// MeaningThread: computes what texts mean for all sessions of an engine, on threads of its own and an embedding model.
//
// One thread, of low priority, goes through the blocks that filled, oldest first: where all processors compute prompts and replies, it
// takes little from them. Another works while somebody waits: what was just said first, then the blocks that a look waits for. Several
// texts go through the model in one pass; each thread has a context of its own on the same weights. The queue of texts is bounded (ask_behind), and so is the memory of vectors, in the room that digests of keys have too: a block for which
// there is none has no vectors.
//
// Vectors of a block are a record of their own kind in the cold store, within its bound, under a name made of the block's exact name, its
// text and the embedding model's fingerprint: they outlive the process, and those of another model are never used. A text longer than a
// pass takes is cut at its end, and counted.
//
// Thread rule: any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "engine/embedder.h"
#include "session/meanings.h"
#include "store/cold_store.h"

namespace ebb {

struct MeaningStats {
  std::int64_t n_blocks = 0;        // whose vectors were computed
  std::int64_t n_texts = 0;         // of them, and of what was said
  std::int64_t n_read = 0;          // blocks whose vectors came from the store
  std::int64_t n_cut = 0;           // texts
  std::int64_t n_without_room = 0;  // blocks
  std::int64_t n_failed = 0;        // meanings of which the model made no vector
  double ms = 0.0;                  // in the model
  std::size_t n_waiting = 0;        // blocks, now
};

class MeaningThread final : public MeaningSource {
 public:
  // The store may be null; both must outlive it, and it outlives all meanings that it gave.
  struct Deps {
    ColdStore* store = nullptr;
    ByteRoom& room;
  };
  // `model` is kept, for others to open one beside (Engine::open_embedder).
  static Result<std::unique_ptr<MeaningThread>> open(const Embedder& model, const Deps& deps);
  // Ends what is under way; who waits is told.
  ~MeaningThread() override;

  [[nodiscard]] std::shared_ptr<Meaning> ask_behind(const Hash128& exact_name, Passages passages) override;
  [[nodiscard]] std::shared_ptr<Meaning> ask_now(std::string_view text) override;
  [[nodiscard]] std::shared_ptr<MeaningWait> await(std::vector<std::shared_ptr<Meaning>> wanted, double most_ms,
                                                   std::function<void()> notify) override;
  // Until nothing is to be computed.
  void wait_idle();
  [[nodiscard]] MeaningStats stats() const;

 private:
  struct Awaited {
    std::shared_ptr<MeaningWait> wait;
    std::vector<std::shared_ptr<Meaning>> wanted;
    std::size_t n_offered = 0;  // the first of them; some of these may be under way elsewhere
    std::size_t n_done = 0;
  };
  enum class Work : std::uint8_t { kNow, kBehind };
  using Batch = std::vector<std::shared_ptr<Meaning>>;

  MeaningThread(std::unique_ptr<Embedder> for_now, std::unique_ptr<Embedder> for_behind, const Deps& deps);
  void run(Work work, Embedder& embedder);
  // With mutex_ held.
  void wait_for(Work work, std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool has(Work work) const;
  [[nodiscard]] Batch next_batch(Work work);
  [[nodiscard]] std::vector<std::shared_ptr<MeaningWait>> take_ready();
  void forget_gone();

  void make(const Batch& batch, Embedder& embedder);
  [[nodiscard]] RecordKey key(const Meaning& meaning) const;
  [[nodiscard]] bool read(Meaning& meaning);
  void keep(const Meaning& meaning, const MeaningVectors& vectors);
  // None where one of them could not be made.
  [[nodiscard]] std::vector<MeaningVectors> embed(const Batch& batch, Embedder& embedder);
  [[nodiscard]] std::vector<Token> tokenize(const std::string& text);
  void count(const std::function<void(MeaningStats&)>& add);

  const std::unique_ptr<Embedder> for_now_;
  const std::unique_ptr<Embedder> for_behind_;
  const Deps deps_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Meaning>> now_;
  std::deque<Awaited> awaited_;
  std::deque<std::weak_ptr<Meaning>> behind_;
  // By exact name, so that sessions that share blocks share what they mean.
  std::map<Hash128, std::weak_ptr<Meaning>> known_;
  std::size_t n_known_after_sweep_ = 0;
  MeaningStats stats_;
  // By one of the threads.
  std::set<const Meaning*> under_way_;
  std::int32_t n_busy_ = 0;
  bool stops_ = false;
  // Last, so that they are joined before anything above goes.
  std::jthread now_thread_;
  std::jthread behind_thread_;
};

}  // namespace ebb
