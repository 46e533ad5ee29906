// The public API (include/ebb) on the engine room.
#include <algorithm>
#include <array>
#include <cmath>
#include <new>

#include "base/caught.h"
#include "chat/turn_text.h"
#include "ebb/engine.h"
#include "ebb/session.h"
#include "engine/engine.h"
#include "engine/generation.h"
#include "engine/public_error.h"
#include "session/image.h"

namespace ebb::api {

struct Engine::State {
  std::unique_ptr<ebb::Engine> engine;
};

struct Session::State {
  ebb::Engine& engine;
  // Null once it is lost: what broke off in the midst of a change to it cannot be gone on with.
  std::unique_ptr<ebb::Session> session;
};

namespace {

ebb::Result<ebb::SessionOptions> to_options(const ebb::Engine& engine, const SessionOptions& options) {
  const ebb::SessionOptions& general = engine.session_options();
  std::shared_ptr<const BudgetList> list = general.budget_list;
  if (!options.kv_budgets_file.empty() || !options.kv_layer_shares.empty()) {
    EBB_ASSIGN_OR_RETURN(list,
                         engine.read_shares({.file = options.kv_budgets_file, .by_layer = options.kv_layer_shares}));
  }
  const std::int32_t n_prompt = options.kv_prompt_budget_tokens;
  std::shared_ptr<const Policy> policy;
  if (!options.eviction.empty()) {
    EBB_ASSIGN_OR_RETURN(policy, make_policy(options.eviction));
  }
  SparsePrompt sparse_prompt = general.sparse_prompt;
  if (!options.sparse_prompt.empty()) {
    EBB_ASSIGN_OR_RETURN(sparse_prompt, SparsePrompt::parse(options.sparse_prompt));
  }
  ebb::Remains remains = ebb::Remains::kBytes;
  if (options.remains == Remains::kNothing) remains = ebb::Remains::kNothing;
  if (options.remains == Remains::kTokens) remains = ebb::Remains::kTokens;
  ebb::RecallPlace place = ebb::RecallPlace::kOriginal;
  if (options.recall_place == RecallPlace::kCompacted) place = ebb::RecallPlace::kCompacted;
  if (options.recall_place == RecallPlace::kTail) place = ebb::RecallPlace::kTail;
  return ebb::SessionOptions{
      .budget_tokens = options.kv_budget_tokens,
      .prompt_budget_tokens = n_prompt == 0 ? general.prompt_budget_tokens : n_prompt,
      .budget_list = std::move(list),
      .watermarks = {.high = options.high_watermark, .low = options.low_watermark},
      .policy = std::move(policy),
      .sink_tokens = options.sink_tokens,
      .recent_tokens = options.recent_tokens,
      .pinned_tokens = options.pinned_tokens,
      .remains = remains,
      .sparse_prompt = sparse_prompt,
      .recall_place = place,
      .renewed_tokens = options.renewed_tokens,
      .removal = options.removal == Removal::kCompact ? ebb::Removal::kCompact : ebb::Removal::kSparse,
      .rebases = options.rebases,
      .adopts = options.adopts};
}

ebb::Result<GenerationOptions> to_options(const ReplyOptions& options, std::string_view question) {
  GenerationOptions result{
      .max_tokens = options.max_tokens,
      .stop_strings = options.stop,
      .recall = {
          .cues = find_cues(question), .max_blocks = options.max_recalled_blocks, .most_ms = options.max_recall_ms}};
  if (!(options.max_recall_ms >= 0.0)) {
    return ebb::error(ebb::Code::kInvalidArgument, "max_recall_ms is {}; give 0 or more", options.max_recall_ms);
  }
  EBB_ASSIGN_OR_RETURN(result.recall.selectors, SelectorList::parse(options.selectors));
  result.sampling.temperature = options.temperature;
  result.sampling.top_k = options.top_k;
  result.sampling.top_p = options.top_p;
  result.sampling.min_p = options.min_p;
  if (options.seed) result.sampling.seed = static_cast<std::uint32_t>(*options.seed);
  result.sampling.grammar = options.grammar;
  return result;
}

TurnStats to_stats(const Generation& generation, const BlockShape& shape) {
  const ebb::TurnStats& turn = generation.turn_stats();
  return {.n_hot_already = turn.from[Origin::kHotAlready],
          .n_partly_hot = turn.from[Origin::kPartlyHot],
          .n_shared = turn.from[Origin::kShared],
          .n_recalled_exact = turn.from[Origin::kRecalledExact],
          .n_recalled_approximate = turn.from[Origin::kRecalledApproximate],
          .n_recomputed = turn.from[Origin::kRecomputed],
          .n_holes = turn.from[Origin::kHole],
          .n_new = turn.from[Origin::kNew],
          .n_generated = turn.n_generated,
          .n_evicted_blocks = static_cast<std::int32_t>(turn.acts.evicted.size()),
          .prompt_budget_tokens = turn.prompt.budget.n_tokens(shape),
          .prompt_peak_tokens = FrameBudget{turn.prompt.peak_frames}.n_tokens(shape),
          .reply_budget_tokens = turn.reply.budget.n_tokens(shape),
          .reply_peak_tokens = FrameBudget{turn.reply.peak_frames}.n_tokens(shape),
          .recall_ms = turn.acts.recall_ms,
          .prefill_ms = generation.stats().prefill_ms,
          .decode_ms = generation.stats().decode_ms};
}

const char* reason_name(const Generation& generation) {
  switch (generation.reason().value_or(FinishReason::kCancelled)) {
    case FinishReason::kEndOfGeneration:
    case FinishReason::kStopString: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kCancelled: return "cancelled";
  }
  return "cancelled";
}

Error lost_error() {
  return {Code::kDamaged, "this session was lost when memory ran short; restore it from an image, or begin a new one"};
}

// Steps until it is finished, and tells the listener after each.
Result<Reply> run(ebb::Engine& engine, Generation& generation, const Listener& listener) {
  Generation* const running = &generation;
  std::size_t n_evicted = 0;
  std::size_t n_recalled = 0;
  while (!generation.finished()) {
    const Status status = engine.step({&running, 1});
    if (!status.ok()) {
      generation.finish(FinishReason::kCancelled);
      engine.clear_cancel();
      if (status.code() != ebb::Code::kCancelled) return to_error(status);
    }
    const ebb::TurnStats& turn = generation.turn_stats();
    const Event event{.text = generation.take_text(),
                      .n_evicted_blocks = static_cast<int>(turn.acts.evicted.size() - n_evicted),
                      .n_recalled_blocks = static_cast<int>(turn.acts.n_back() - n_recalled)};
    n_evicted = turn.acts.evicted.size();
    n_recalled = turn.acts.n_back();
    if (listener && !listener(event)) generation.finish(FinishReason::kCancelled);
  }
  if (!generation.status().ok() && generation.stats().n_generated == 0) return to_error(generation.status());
  return Reply{.text = generation.text(),
               .finish_reason = reason_name(generation),
               .note = generation.status().message(),
               .stats = to_stats(generation, engine.shape())};
}

Before before(const ebb::Session& session, const Vocabulary& vocabulary) {
  if (session.end().value() == 0 && session.n_unfinished() == 0) return Before::kNothing;
  const bool ended = session.n_unfinished() > 0 && vocabulary.is_end_of_generation(session.unfinished().back());
  return ended ? Before::kEndedReply : Before::kCutReply;
}

Result<Reply> reply(ebb::Engine& engine, std::unique_ptr<ebb::Session>& session, std::vector<Token> tokens,
                    std::string_view name, const ebb::Result<GenerationOptions>& options, const Listener& listener) {
  if (!options.ok()) return to_error(options.status());
  std::unique_ptr<Generation> generation;
  bool has_begun = false;
  const auto answer = [&]() -> Result<Reply> {
    const auto n_tokens = static_cast<std::int32_t>(tokens.size());
    const Prompt prompt(std::move(tokens), {{.n_tokens = n_tokens, .name = std::string(name)}});
    has_begun = true;
    ebb::Result<std::unique_ptr<Generation>> started =
        Generation::start(*session, engine.vocabulary(), prompt, *options);
    if (!started.ok()) return to_error(started.status());
    generation = *std::move(started);
    return run(engine, *generation, listener);
  };
  Result<Reply> answered = Error();
  bool is_lost = false;
  try {
    answered = answer();
  } catch (const std::bad_alloc&) {
    answered = to_error(caught("a reply was made"));
    if (generation != nullptr) generation->finish(FinishReason::kCancelled);
    is_lost = has_begun && generation == nullptr;
  }
  if (is_lost || (generation != nullptr && generation->is_broken())) {
    generation.reset();
    session.reset();
  }
  return answered;
}

std::vector<Block> describe(const ebb::Session& session, const std::vector<BlockIndex>& indices) {
  std::vector<Block> blocks;
  for (const BlockIndex index : indices) {
    const Span span = session.hot().span(index);
    Block block{.index = index.value(), .begin = span.begin.value(), .end = span.end.value()};
    block.name = session.block_name(index);
    switch (session.state(index)) {
      case ebb::BlockState::kHot: block.state = BlockState::kHot; break;
      case ebb::BlockState::kClean: block.state = BlockState::kClean; break;
      case ebb::BlockState::kPartly: block.state = BlockState::kPartly; break;
      case ebb::BlockState::kSaved: block.state = BlockState::kSaved; break;
      case ebb::BlockState::kMissing: block.state = BlockState::kMissing; break;
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

}  // namespace

// --- engine ---

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

Result<Engine> Engine::open(const EngineOptions& options) {
  const std::optional<RowType> kv_type = find_row_type(options.kv_type);
  if (!kv_type) {
    return Error{Code::kInvalidArgument,
                 fmt::format("no KV type '{}'; there are f16, bf16, f32, q8_0, kivi4", options.kv_type)};
  }
  ebb::EngineOptions inner{.model = options.model,
                           .device = options.device,
                           .n_threads = options.n_threads,
                           .kv_type = *kv_type,
                           .block_size = options.block_size,
                           .kv_budget_tokens = options.kv_budget_tokens,
                           .n_open_blocks = options.n_open_blocks,
                           .policy = options.eviction,
                           .session = {.prompt_budget_tokens = options.kv_prompt_budget_tokens},
                           .shares = {.file = options.kv_budgets_file, .by_layer = options.kv_layer_shares},
                           .digest_bytes = options.digest_bytes,
                           .embedding_model = options.embedding_model,
                           .progress = options.progress};
  inner.store.ram_bytes = options.ram_bytes;
  if (!options.disk_folder.empty()) {
    inner.store.disk = DiskOptions{.folder = options.disk_folder, .max_bytes = options.disk_max_bytes};
  }
  ebb::Result<std::unique_ptr<ebb::Engine>> engine = ebb::Engine::open(inner);
  if (!engine.ok()) return to_error(engine.status());
  return Engine(std::make_unique<State>(State{.engine = *std::move(engine)}));
}

Result<Session> Engine::new_session(const SessionOptions& options) {
  const ebb::Result<ebb::SessionOptions> inner = to_options(*state_->engine, options);
  if (!inner.ok()) return to_error(inner.status());
  ebb::Result<std::unique_ptr<ebb::Session>> session = state_->engine->new_session(*inner);
  if (!session.ok()) return to_error(session.status());
  return Session(std::make_unique<Session::State>(*state_->engine, *std::move(session)));
}

Result<Session> Engine::restore(std::span<const std::byte> image, const SessionOptions& options) {
  const ebb::Result<SessionImage> decoded = decode_image(image);
  if (!decoded.ok()) return to_error(decoded.status());
  const ebb::Result<ebb::SessionOptions> inner = to_options(*state_->engine, options);
  if (!inner.ok()) return to_error(inner.status());
  ebb::Result<std::unique_ptr<ebb::Session>> session = state_->engine->restore_session(*inner, *decoded);
  if (!session.ok()) return to_error(session.status());
  // What was hot is not any more; as much as fits comes back, with room left for what comes.
  (*session)->refill(plan_left_free((*session)->n_blocks(), 1, kReplyBlocks, (*session)->budget_blocks()));
  return Session(std::make_unique<Session::State>(*state_->engine, *std::move(session)));
}

void Engine::cancel() { state_->engine->request_cancel(); }

Result<Done> Engine::flush() {
  if (state_->engine->store() == nullptr) return Done{};
  const Status status = state_->engine->store()->flush();
  return status.ok() ? Result<Done>(Done{}) : Result<Done>(to_error(status));
}

EngineStats Engine::stats() const {
  const EngineMemory memory = state_->engine->memory();
  EngineStats stats{.weight_bytes = memory.weights.mapped + memory.weights.copied,
                    .frame_bytes = memory.frames_reserved + memory.open_reserved,
                    .compute_bytes = memory.compute};
  if (const ColdStore* store = state_->engine->store(); store != nullptr) {
    for (const ebb::TierStats& tier : store->stats().tiers) {
      stats.tiers.push_back(
          {.name = tier.name, .n_records = tier.n_records, .bytes = tier.bytes, .max_bytes = tier.max_bytes});
      if (!tier.last_error.empty()) stats.store_error = tier.last_error;
    }
  }
  return stats;
}

// --- session ---

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

Result<Reply> Session::say(std::string_view message, const ReplyOptions& options, const Listener& listener,
                           std::string_view name) {
  if (state_->session == nullptr) return lost_error();
  const Vocabulary& vocabulary = state_->engine.vocabulary();
  ebb::Result<std::vector<Token>> tokens = turn_tokens(vocabulary, message, before(*state_->session, vocabulary));
  if (!tokens.ok()) return to_error(tokens.status());
  return reply(state_->engine, state_->session, *std::move(tokens), name, to_options(options, message), listener);
}

Result<Reply> Session::go_on(std::string_view text, const ReplyOptions& options, const Listener& listener,
                             std::string_view name) {
  if (state_->session == nullptr) return lost_error();
  const bool is_new = state_->session->end().value() == 0 && state_->session->n_unfinished() == 0;
  ebb::Result<std::vector<Token>> tokens = state_->engine.vocabulary().tokenize(text, {.add_bos = is_new});
  if (!tokens.ok()) return to_error(tokens.status());
  return reply(state_->engine, state_->session, *std::move(tokens), name, to_options(options, text), listener);
}

std::vector<Block> Session::blocks() const {
  if (state_->session == nullptr) return {};
  std::vector<BlockIndex> all;
  for (std::int32_t b = 0; b < state_->session->n_blocks(); ++b) all.emplace_back(b);
  return describe(*state_->session, all);
}

std::vector<Block> Session::find(std::string_view name) const {
  if (state_->session == nullptr) return {};
  return describe(*state_->session, state_->session->find_blocks(name));
}

Result<std::string> Session::text(std::int32_t block) const {
  if (state_->session == nullptr) return lost_error();
  if (block < 0 || block >= state_->session->n_blocks()) {
    return Error{Code::kNotFound, fmt::format("no block {}; there are {}", block, state_->session->n_blocks())};
  }
  ebb::Result<std::string> text = state_->session->block_text(BlockIndex(block));
  if (!text.ok()) return to_error(text.status());
  return *std::move(text);
}

std::int32_t Session::pin(std::string_view name, bool pinned) {
  return state_->session == nullptr ? 0 : state_->session->set_pinned(name, pinned);
}

Result<Done> Session::set_priority(std::string_view name, double priority) {
  if (state_->session == nullptr) return lost_error();
  if (!std::isfinite(priority) || priority < 0.0) {
    return Error{Code::kInvalidArgument, fmt::format("a priority of {}; give 0 or more", priority)};
  }
  state_->session->set_priority(name, priority);
  return Done{};
}

std::int32_t Session::evict(std::string_view name) {
  if (state_->session == nullptr) return 0;
  return static_cast<std::int32_t>(state_->session->evict(state_->session->find_blocks(name)).evicted.size());
}

Result<std::int32_t> Session::recall(std::string_view name) {
  if (state_->session == nullptr) return lost_error();
  const ebb::Result<Acts> acts = state_->engine.recall(*state_->session, state_->session->find_blocks(name));
  if (!acts.ok()) return to_error(acts.status());
  return static_cast<std::int32_t>(acts->n_back());
}

Result<std::vector<std::byte>> Session::image() {
  if (state_->session == nullptr) return lost_error();
  // What cannot be saved is computed again by whoever goes on.
  (void)state_->session->save();
  return encode_image(state_->session->image());
}

SessionStats Session::stats() const {
  if (state_->session == nullptr) return {};
  const ebb::Session& s = *state_->session;
  return {.n_tokens = s.end().value(),
          .n_hot_tokens = s.n_hot_tokens(),
          .budget_tokens = s.budget_tokens(),
          .peak_hot_tokens = s.peak_hot_tokens(),
          .n_evicted_blocks = s.stats().n_evicted_blocks,
          .n_recalled_blocks = s.stats().n_recalled_blocks,
          .n_recomputed_blocks = s.stats().n_recomputed_blocks,
          .n_missed_recalls = s.stats().n_missed_recalls,
          .n_moved_blocks = s.stats().n_moved_blocks,
          .n_requantised_blocks = s.stats().n_requantised_blocks,
          .n_rebases = s.stats().n_rebases};
}

}  // namespace ebb::api
