// The public API (include/ebb) on the engine room.
#include <algorithm>
#include <array>
#include <cmath>

#include "ebb/engine.h"
#include "ebb/session.h"
#include "engine/engine.h"
#include "engine/generation.h"
#include "session/image.h"
#include "text/turn_text.h"

namespace ebb::api {

struct Engine::State {
  std::unique_ptr<ebb::Engine> engine;
};

struct Session::State {
  ebb::Engine& engine;
  std::unique_ptr<ebb::Session> session;
};

namespace {

Error to_error(const Status& status) {
  switch (status.code()) {
    case ebb::Code::kOk:
    case ebb::Code::kInvalidArgument: return {Code::kInvalidArgument, status.message()};
    case ebb::Code::kNotFound: return {Code::kNotFound, status.message()};
    case ebb::Code::kDamaged: return {Code::kDamaged, status.message()};
    case ebb::Code::kUnsupported: return {Code::kUnsupported, status.message()};
    case ebb::Code::kOutOfBudget: return {Code::kOutOfBudget, status.message()};
    case ebb::Code::kIo: return {Code::kIo, status.message()};
    case ebb::Code::kCancelled: return {Code::kCancelled, status.message()};
  }
  return {};
}

ebb::SessionOptions to_options(const SessionOptions& options) {
  ebb::Remains remains = ebb::Remains::kBytes;
  if (options.remains == Remains::kNothing) remains = ebb::Remains::kNothing;
  if (options.remains == Remains::kTokens) remains = ebb::Remains::kTokens;
  ebb::RecallPlace place = ebb::RecallPlace::kOriginal;
  if (options.recall_place == RecallPlace::kCompacted) place = ebb::RecallPlace::kCompacted;
  if (options.recall_place == RecallPlace::kTail) place = ebb::RecallPlace::kTail;
  return {.budget_tokens = options.kv_budget_tokens,
          .watermarks = {.high = options.high_watermark, .low = options.low_watermark},
          .sink_tokens = options.sink_tokens,
          .recent_tokens = options.recent_tokens,
          .pinned_tokens = options.pinned_tokens,
          .remains = remains,
          .recall_place = place,
          .removal = options.removal == Removal::kCompact ? ebb::Removal::kCompact : ebb::Removal::kSparse,
          .rebases = options.rebases,
          .adopts = options.adopts};
}

GenerationOptions to_options(const ReplyOptions& options, std::string question) {
  GenerationOptions result{.max_tokens = options.max_tokens,
                           .stop_strings = options.stop,
                           .recall_question = std::move(question),
                           .max_recalled_blocks = options.max_recalled_blocks};
  result.sampling.temperature = options.temperature;
  result.sampling.top_k = options.top_k;
  result.sampling.top_p = options.top_p;
  result.sampling.min_p = options.min_p;
  if (options.seed) result.sampling.seed = static_cast<std::uint32_t>(*options.seed);
  result.sampling.grammar = options.grammar;
  return result;
}

TurnStats to_stats(const Generation& generation) {
  const ebb::TurnStats& turn = generation.turn_stats();
  return {.n_hot_already = turn.n_hot_already,
          .n_shared = turn.n_shared,
          .n_recalled_exact = turn.n_recalled_exact,
          .n_recalled_approximate = turn.n_recalled_approximate,
          .n_recomputed = turn.n_recomputed,
          .n_holes = turn.n_holes,
          .n_new = turn.n_new,
          .n_generated = turn.n_generated,
          .n_evicted_blocks = static_cast<std::int32_t>(turn.evicted.size()),
          .recall_ms = turn.recall_ms,
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
                      .n_evicted_blocks = static_cast<int>(turn.evicted.size() - n_evicted),
                      .n_recalled_blocks = static_cast<int>(turn.recalled.size() - n_recalled)};
    n_evicted = turn.evicted.size();
    n_recalled = turn.recalled.size();
    if (listener && !listener(event)) generation.finish(FinishReason::kCancelled);
  }
  if (!generation.status().ok() && generation.stats().n_generated == 0) return to_error(generation.status());
  return Reply{.text = generation.text(),
               .finish_reason = reason_name(generation),
               .note = generation.status().message(),
               .stats = to_stats(generation)};
}

Before before(const ebb::Session& session, const Vocabulary& vocabulary) {
  if (session.end().value() == 0 && session.n_unfinished() == 0) return Before::kNothing;
  const bool ended = session.n_unfinished() > 0 && vocabulary.is_end_of_generation(session.unfinished().back());
  return ended ? Before::kEndedReply : Before::kCutReply;
}

Result<Reply> reply(ebb::Engine& engine, ebb::Session& session, const PromptPart& part,
                    const GenerationOptions& options, const Listener& listener) {
  ebb::Result<std::unique_ptr<Generation>> generation =
      Generation::start(session, engine.vocabulary(), std::span(&part, 1), options);
  if (!generation.ok()) return to_error(generation.status());
  return run(engine, **generation, listener);
}

std::vector<Block> describe(const ebb::Session& session, const std::vector<BlockIndex>& indices) {
  std::vector<Block> blocks;
  for (const BlockIndex index : indices) {
    const Span span = session.residency().span(index);
    Block block{.index = index.value(), .begin = span.begin.value(), .end = span.end.value()};
    block.name = session.block_name(index);
    switch (session.state(index)) {
      case ebb::BlockState::kHot: block.state = BlockState::kHot; break;
      case ebb::BlockState::kClean: block.state = BlockState::kClean; break;
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
  ebb::Result<std::unique_ptr<ebb::Session>> session = state_->engine->new_session(to_options(options));
  if (!session.ok()) return to_error(session.status());
  return Session(std::make_unique<Session::State>(*state_->engine, *std::move(session)));
}

Result<Session> Engine::restore(std::span<const std::byte> image, const SessionOptions& options) {
  const ebb::Result<SessionImage> decoded = decode_image(image);
  if (!decoded.ok()) return to_error(decoded.status());
  ebb::Result<std::unique_ptr<ebb::Session>> session = state_->engine->restore_session(to_options(options), *decoded);
  if (!session.ok()) return to_error(session.status());
  // What was hot is not any more; as much as fits comes back, with room left for what comes.
  Turn turn(**session, std::span<const Token>());
  turn.refill((*session)->budget_blocks() / 4);
  turn.settle();
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
    const StoreStats tiers = store->stats();
    stats.ram_store_bytes = tiers.ram.bytes;
    stats.disk_store_bytes = tiers.disk.bytes;
    stats.store_error = tiers.disk.last_error.empty() ? tiers.ram.last_error : tiers.disk.last_error;
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
  const Vocabulary& vocabulary = state_->engine.vocabulary();
  const ebb::Result<std::vector<Token>> tokens = turn_tokens(vocabulary, message, before(*state_->session, vocabulary));
  if (!tokens.ok()) return to_error(tokens.status());
  return reply(state_->engine, *state_->session, {.tokens = *tokens, .name = std::string(name)},
               to_options(options, std::string(message)), listener);
}

Result<Reply> Session::go_on(std::string_view text, const ReplyOptions& options, const Listener& listener,
                             std::string_view name) {
  const bool is_new = state_->session->end().value() == 0 && state_->session->n_unfinished() == 0;
  const ebb::Result<std::vector<Token>> tokens = state_->engine.vocabulary().tokenize(text, {.add_bos = is_new});
  if (!tokens.ok()) return to_error(tokens.status());
  return reply(state_->engine, *state_->session, {.tokens = *tokens, .name = std::string(name)},
               to_options(options, std::string(text)), listener);
}

std::vector<Block> Session::blocks() const {
  std::vector<BlockIndex> all;
  for (std::int32_t b = 0; b < state_->session->n_blocks(); ++b) all.emplace_back(b);
  return describe(*state_->session, all);
}

std::vector<Block> Session::find(std::string_view name) const {
  return describe(*state_->session, state_->session->find_blocks(name));
}

Result<std::string> Session::text(std::int32_t block) const {
  if (block < 0 || block >= state_->session->n_blocks()) {
    return Error{Code::kNotFound, fmt::format("no block {}; there are {}", block, state_->session->n_blocks())};
  }
  ebb::Result<std::string> text = state_->session->block_text(BlockIndex(block));
  if (!text.ok()) return to_error(text.status());
  return *std::move(text);
}

std::int32_t Session::pin(std::string_view name, bool pinned) { return state_->session->set_pinned(name, pinned); }

Result<Done> Session::set_priority(std::string_view name, double priority) {
  if (!std::isfinite(priority) || priority < 0.0) {
    return Error{Code::kInvalidArgument, fmt::format("a priority of {}; give 0 or more", priority)};
  }
  state_->session->set_priority(name, priority);
  return Done{};
}

std::int32_t Session::evict(std::string_view name) {
  Turn turn(*state_->session, std::span<const Token>());
  turn.evict(state_->session->find_blocks(name));
  return static_cast<std::int32_t>(turn.settle().evicted.size());
}

Result<std::int32_t> Session::recall(std::string_view name) {
  Turn turn(*state_->session, std::span<const Token>());
  turn.recall(state_->session->find_blocks(name));
  while (turn.n_recomputing() > 0) {
    const ebb::Result<SequenceInput> input = turn.begin_step(state_->engine.runner().max_rows());
    if (!input.ok()) break;
    const Status status = state_->engine.runner().run({&*input, 1});
    if (!status.ok()) {
      turn.abandon_step();
      turn.settle();
      return to_error(status);
    }
    turn.end_step();
  }
  const ebb::TurnStats& stats = turn.settle();
  return static_cast<std::int32_t>(stats.recalled.size() + stats.recomputed.size());
}

Result<std::vector<std::byte>> Session::image() {
  Turn turn(*state_->session, std::span<const Token>());
  // What cannot be saved is computed again by whoever goes on.
  (void)turn.save_hot();
  turn.settle();
  return encode_image(state_->session->image());
}

SessionStats Session::stats() const {
  const ebb::Session& s = *state_->session;
  return {.n_tokens = s.end().value(),
          .n_hot_tokens = s.n_hot_tokens(),
          .budget_tokens = s.budget_blocks() * s.block_size(),
          .peak_hot_tokens = s.stats().peak_hot_blocks * s.block_size(),
          .n_evicted_blocks = s.stats().n_evicted_blocks,
          .n_recalled_blocks = s.stats().n_recalled_blocks,
          .n_recomputed_blocks = s.stats().n_recomputed_blocks,
          .n_missed_recalls = s.stats().n_missed_recalls,
          .n_moved_blocks = s.stats().n_moved_blocks,
          .n_requantised_blocks = s.stats().n_requantised_blocks,
          .n_rebases = s.stats().n_rebases};
}

}  // namespace ebb::api
