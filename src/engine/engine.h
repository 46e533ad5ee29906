// Engine: a model, its frames and the sessions on it, and the steps that compute them together.
//
// It opens all that is below it (device, model, vocabulary, frame memory and pool, cold store), makes sessions, and
// runs their generations in one graph per step: every generation that decodes gets its one row first, the rest of the
// rows go to those that prefill, in the order in which they came. It does not know HTTP, files of prompts or terminals.
//
// Thread rule: one thread at a time; request_cancel() from any thread or signal handler.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "cache/frame_layout.h"
#include "model/model.h"
#include "model/runner.h"
#include "policy/policy.h"
#include "session/session.h"

namespace ebb {

class Generation;
class Embedder;
class MeaningThread;

// How layers or heads share a budget, where the user says so: one of them, or none.
struct GivenShares {
  // A budget file (budget/budget_file.h).
  std::filesystem::path file;
  // One weight for each layer.
  std::vector<double> by_layer;
};

// Fewer blocks leave no room for a chunk, for what it should see and for what is recalled: the least budget of a
// session.
inline constexpr std::int32_t kMinSessionBlocks = 4;

// Tokens of a block where nobody says: of a small budget fewer, so that there are some to choose from; a budget of 0 is no small one.
// Of ten facts amid a hundred sentences that name their subjects, 4096 tokens, 680 hot, recall tells 78 of 100 with blocks of 64, 85 of 32, 89 of
// 16 (docs/decisions/0021).
[[nodiscard]] std::int32_t block_size_for(std::int32_t budget_tokens);

struct EngineOptions {
  std::filesystem::path model;
  std::string device = "cpu";
  // 0: one per physical core.
  std::int32_t n_threads = 0;
  RowType kv_type = RowType::kF16;
  // 0: block_size_for() the budget.
  std::int32_t block_size = 0;
  // Tokens that may be hot, of all sessions together; 0: the model's trained context, as far as memory allows.
  std::int32_t kv_budget_tokens = 0;
  // With kivi4, blocks that may be open, that is written to in f16, at once; one for each session that lives. They come
  // on top of the budget, and count once they are used.
  std::int32_t n_open_blocks = 16;
  // Rows of one step at most.
  std::int32_t chunk = 512;
  // While replies are written, about the longest that a step with rows of prompts may take (engine/pace.h); 0: as long as its rows do.
  double most_pause_ms = 0.0;
  // What leaves when room is needed; one of policies().
  std::string policy{kDefaultPolicy};
  // The options of sessions that are opened without any of their own; budget_tokens is not looked at. For its
  // prompt_budget_tokens frames are reserved: what is beyond the budget of all is lent while prompts are computed.
  SessionOptions session;
  // The list of those sessions, instead of session.budget_list.
  GivenShares shares;
  // Where evicted blocks go; without RAM and disk they are computed again.
  ColdStoreOptions store;
  // Of what is kept in memory of blocks' keys beside them, by which recall finds those that left (session/finder.h), of all sessions
  // together; 0: recall goes by words alone.
  std::size_t digest_bytes = std::size_t{256} << 20;
  // An embedding model's GGUF file, for the selector `embedding`; empty: there is none. Its vectors have room beside the digests.
  std::filesystem::path embedding_model;
  bool use_repacked = true;
  // Attention composed of ggml operations on the CPU too; slower, for tests.
  bool composed_attention = false;
  std::function<bool(float)> progress = nullptr;
};

struct EngineMemory {
  WeightBytes weights;
  std::size_t frames_reserved = 0;
  // Beside them, for open blocks.
  std::size_t open_reserved = 0;
  std::size_t compute = 0;
};

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> open(const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The engine must outlive its sessions. budget_tokens 0: the engine's whole budget; sessions that live at once share
  // it, and one finds no room where others hold it all.
  Result<std::unique_ptr<Session>> new_session();
  Result<std::unique_ptr<Session>> new_session(const SessionOptions& options);
  // The list that is given for this model; null where none is. kInvalidArgument, kNotFound name the file and what is wrong.
  [[nodiscard]] Result<std::shared_ptr<const BudgetList>> read_shares(const GivenShares& shares) const;
  // One that goes on where `image` was taken; its blocks come from the cold store or are computed again.
  Result<std::unique_ptr<Session>> restore_session(const SessionOptions& options, const SessionImage& image);

  // kInvalidArgument or kUnsupported where prompts cannot be read so here.
  [[nodiscard]] Status check_sparse_prompt(const SparsePrompt& prompt) const;
  // The session chooses by this policy from now on (Session::set_policy); null: by the engine's. kInvalidArgument where its parameters
  // do not suit the engine's blocks.
  Status set_policy(Session& session, const std::shared_ptr<const Policy>& policy);

  // kInvalidArgument where one of them asks for an embedding model, and there is none.
  [[nodiscard]] Status check_selectors(const SelectorList& selectors) const;
  // Another embedder on the embedding model; null where there is none.
  [[nodiscard]] Result<std::unique_ptr<Embedder>> open_embedder() const;
  // Null where there is no embedding model.
  [[nodiscard]] MeaningThread* meanings() const;

  // Session::recall; what is lost is computed again, step by step. kCancelled after request_cancel(), which is over
  // then.
  Result<Acts> recall(Session& session, std::span<const BlockIndex> blocks);

  // The bytes of a hot block's frames, [layer][KV head], one after the other.
  [[nodiscard]] std::vector<std::byte> read_block(const Session& session, BlockIndex block) const;

  // Computes one step for those of the generations that are not finished; samples where a prompt's last token or a
  // generated one was computed. A generation that finds no room, or whose logits are no numbers, ends by itself
  // (Generation::status), and so does one whose own part of the step runs short of memory (is_broken). An error
  // concerns the whole step: no generation has advanced. kCancelled after request_cancel(), kOutOfBudget where the
  // computation ran short of memory.
  Status step(std::span<Generation* const> generations);

  void request_cancel();
  void clear_cancel();
  // Called on a thread of the cold store when records that a generation waits for (Turn::Ready) are there. Set it
  // before sessions are made; it owns what it uses.
  void set_when_fetched(std::function<void()> when_fetched);
  // Rows that each prompt has in a step of these generations, at least.
  [[nodiscard]] std::int32_t rows_of_prompts(std::span<Generation* const> generations) const;

  [[nodiscard]] const Model& model() const;
  [[nodiscard]] const Vocabulary& vocabulary() const;
  [[nodiscard]] const FrameLayout& layout() const;
  [[nodiscard]] const BlockShape& shape() const;
  [[nodiscard]] FramePool& pool();
  [[nodiscard]] Runner& runner();
  // Null without RAM and disk.
  [[nodiscard]] ColdStore* store();
  [[nodiscard]] const ColdStore* store() const;
  [[nodiscard]] std::int32_t n_threads() const;
  // Of all sessions together; and with what is lent while prompts are computed, or 0 where nothing is.
  [[nodiscard]] std::int32_t budget_tokens() const;
  [[nodiscard]] std::int32_t prompt_budget_tokens() const;
  // Those of EngineOptions.
  [[nodiscard]] const SessionOptions& session_options() const;
  // Of sessions that have no other.
  [[nodiscard]] const Policy& policy() const;
  [[nodiscard]] EngineMemory memory() const;
  // The bytes of open blocks that were in use when most were.
  [[nodiscard]] std::size_t peak_open_bytes() const;
  // Whether so many more may be open at once; always, where frames do not seal.
  [[nodiscard]] bool has_open_blocks(std::int32_t n_blocks) const;

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Bytes that can still be allocated without swapping; 0 where the system does not say.
[[nodiscard]] std::size_t available_memory_bytes();

}  // namespace ebb
