#include "engine/engine.h"

#include <algorithm>
#include <limits>

#include "budget/budget_file.h"
#include "engine/engine_state.h"

namespace ebb {

Result<std::unique_ptr<Engine>> Engine::open(const EngineOptions& given) {
  EngineOptions options = given;
  if (options.block_size == 0) options.block_size = block_size_for(options.kv_budget_tokens);
  auto state = std::make_unique<State>();
  EBB_ASSIGN_OR_RETURN(state->backend, Backend::open(options.device, options.n_threads));
  // The model first: it checks every byte of the header that libllama's vocabulary would trust.
  EBB_ASSIGN_OR_RETURN(state->model, Model::load(options.model, *state->backend,
                                                 {.use_repacked = options.use_repacked, .progress = options.progress}));
  EBB_ASSIGN_OR_RETURN(state->vocabulary, Vocabulary::load(options.model));
  if (state->vocabulary->n_tokens() > state->model->hparams().n_vocab) {
    return error(Code::kDamaged, "{}: {} tokens in the vocabulary, and {} rows in the embedding",
                 options.model.string(), state->vocabulary->n_tokens(), state->model->hparams().n_vocab);
  }
  EBB_RETURN_IF_ERROR(state->open_frames(options));
  EBB_ASSIGN_OR_RETURN(state->runner,
                       Runner::create(*state->model, *state->backend, *state->memory, {.max_rows = options.chunk}));
  state->pace = Pace(options.most_pause_ms);
  EBB_ASSIGN_OR_RETURN(state->policy, make_policy(options.policy));
  EBB_RETURN_IF_ERROR(state->policy->check_grain(options.block_size));
  EBB_RETURN_IF_ERROR(options.session.validate());
  EBB_RETURN_IF_ERROR(state->check_sparse_prompt(options.session.sparse_prompt));
  state->session_options = options.session;
  EBB_ASSIGN_OR_RETURN(std::shared_ptr<const BudgetList> list, state->read_shares(options.shares));
  if (list != nullptr) state->session_options.budget_list = std::move(list);
  state->mover = std::make_unique<BlockMover>(*state->model, state->memory->layout());
  state->forecaster = std::make_unique<Forecaster>(*state->model, state->backend->n_threads());
  state->scorer = std::make_unique<KeyScorer>(*state->model, state->backend->n_threads());
  state->digest_room = std::make_unique<ByteRoom>(options.digest_bytes);
  if (options.store.ram_bytes > 0 || options.store.disk) {
    EBB_ASSIGN_OR_RETURN(state->store, ColdStore::open(options.store));
  }
  if (!options.embedding_model.empty()) {
    EBB_ASSIGN_OR_RETURN(state->embedder,
                         Embedder::open({.model = options.embedding_model, .n_threads = state->backend->n_threads()}));
    EBB_ASSIGN_OR_RETURN(state->meanings, MeaningThread::open(*state->embedder, {.store = state->store.get(),
                                                                                 .room = *state->digest_room}));
  }
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

Status Engine::State::open_frames(const EngineOptions& options) {
  const Hparams& hparams = model->hparams();
  const FrameLayout layout =
      Runner::layout_for(*model, *backend, options.kv_type, options.block_size, options.composed_attention);
  EBB_RETURN_IF_ERROR(layout.validate());
  shape = {.n_layers = hparams.n_layers, .n_kv_heads = hparams.n_kv_heads, .block_size = options.block_size};
  for (std::int32_t l = 0; l < hparams.n_layers; ++l) shape.windows.push_back(hparams.window(LayerIndex(l)));
  const std::size_t block_bytes = layout.frame_bytes() * static_cast<std::size_t>(shape.frames_per_block());

  if (layout.seals() && options.n_open_blocks < 1) {
    return error(Code::kInvalidArgument, "{} open blocks; every session that is written to needs one",
                 options.n_open_blocks);
  }
  const std::int32_t n_open_frames = layout.seals() ? options.n_open_blocks * shape.frames_per_block() : 0;
  const std::size_t open_bytes = layout.open_layout().frame_bytes() * static_cast<std::size_t>(n_open_frames);

  std::int64_t n_blocks = options.kv_budget_tokens / options.block_size;
  if (options.kv_budget_tokens == 0) {
    n_blocks = (hparams.n_ctx_train + options.block_size - 1) / options.block_size;
    // Half of what is free stays for activations, the cold store and other programs.
    const std::size_t available = available_memory_bytes() / 2;
    const std::size_t for_frames = available - std::min(available, open_bytes);
    if (available > 0) n_blocks = std::min(n_blocks, static_cast<std::int64_t>(for_frames / block_bytes));
  }
  if (n_blocks < kMinSessionBlocks) {
    const std::int64_t n_tokens =
        options.kv_budget_tokens > 0 ? options.kv_budget_tokens : n_blocks * options.block_size;
    return error(Code::kInvalidArgument, "a KV budget of {} tokens is too small: give at least {} ({} blocks of {})",
                 n_tokens, kMinSessionBlocks * options.block_size, kMinSessionBlocks, options.block_size);
  }
  EBB_ASSIGN_OR_RETURN(const std::int32_t n_frames, count_frames(options, n_blocks));
  EBB_ASSIGN_OR_RETURN(memory, FrameMemory::open(*backend, layout, n_frames, n_open_frames));
  if (n_open_frames > 0) open_pool = std::make_unique<FramePool>(n_open_frames);
  pool = std::make_unique<FramePool>(n_frames);
  pool->set_limit(budget.n_frames);
  return {};
}

// Those of a budget of n_blocks, and those that prompts have beside it.
Result<std::int32_t> Engine::State::count_frames(const EngineOptions& options, std::int64_t n_blocks) {
  const std::int64_t n_prompt_tokens = options.session.prompt_budget_tokens;
  if (n_prompt_tokens != 0 && n_prompt_tokens < n_blocks * options.block_size) {
    return error(Code::kInvalidArgument,
                 "a prompt budget of {} tokens is less than the KV budget of {}; give at least as many, or 0 for none",
                 n_prompt_tokens, n_blocks * options.block_size);
  }
  const std::int64_t n_in_all = std::max(n_blocks, n_prompt_tokens / options.block_size) * shape.frames_per_block();
  if (n_in_all > std::numeric_limits<std::int32_t>::max()) {
    return error(Code::kInvalidArgument, "a KV budget of {} tokens needs {} frames, more than can be counted; lower it",
                 std::max<std::int64_t>(options.kv_budget_tokens, n_prompt_tokens), n_in_all);
  }
  budget.n_frames = static_cast<std::int32_t>(n_blocks * shape.frames_per_block());
  prompt_budget = FrameBudget::of_tokens(options.session.prompt_budget_tokens, shape);
  return static_cast<std::int32_t>(n_in_all);
}

Result<std::shared_ptr<const BudgetList>> Engine::State::read_shares(const GivenShares& shares) const {
  if (shares.file.empty() && shares.by_layer.empty()) return std::shared_ptr<const BudgetList>();
  if (!shares.file.empty() && !shares.by_layer.empty()) {
    return error(Code::kInvalidArgument, "{} and shares of layers are both given; give one of them",
                 shares.file.string());
  }
  BudgetList list = {.scope = Scope::kLayer, .weights = shares.by_layer};
  if (!shares.file.empty()) {
    EBB_ASSIGN_OR_RETURN(BudgetFile file, load_budget_file(shares.file));
    if (const Status is_ours = file.check_model(model->fingerprint(), shape.n_layers, shape.n_kv_heads);
        !is_ours.ok()) {
      return error(is_ours.code(), "{}: {}", shares.file.string(), is_ours.message());
    }
    list = std::move(file.list);
  }
  EBB_RETURN_IF_ERROR(list.validate(shape.n_layers, shape.n_kv_heads));
  return std::make_shared<const BudgetList>(std::move(list));
}

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

Result<SessionOptions> Engine::State::checked(SessionOptions options) const {
  EBB_RETURN_IF_ERROR(options.validate());
  const std::int32_t most = budget.n_tokens(shape);
  if (options.budget_tokens == 0) options.budget_tokens = most;
  // Whole blocks, as every budget is.
  options.prompt_budget_tokens = FrameBudget::of_tokens(options.prompt_budget_tokens, shape).n_tokens(shape);
  if (options.budget_tokens < kMinSessionBlocks * shape.block_size || options.budget_tokens > most) {
    return error(Code::kInvalidArgument, "a session's KV budget of {} tokens; give {} to {}", options.budget_tokens,
                 kMinSessionBlocks * shape.block_size, most);
  }
  const std::int32_t most_of_prompt = FrameBudget{pool->n_frames()}.n_tokens(shape);
  const std::int32_t own = FrameBudget::of_tokens(options.budget_tokens, shape).n_tokens(shape);
  if (const std::int32_t n = options.prompt_budget_tokens; n != 0 && (n < own || n > most_of_prompt)) {
    return error(Code::kInvalidArgument,
                 "a session's prompt budget of {} tokens; give {}, its KV budget, to {}, which this engine has frames "
                 "for, or 0 for none",
                 n, own, most_of_prompt);
  }
  if (options.budget_list != nullptr) {
    EBB_RETURN_IF_ERROR(options.budget_list->validate(shape.n_layers, shape.n_kv_heads));
  }
  EBB_RETURN_IF_ERROR(check_sparse_prompt(options.sparse_prompt));
  return options;
}

Status Engine::State::check_sparse_prompt(const SparsePrompt& prompt) const {
  EBB_RETURN_IF_ERROR(prompt.check_grain(shape.block_size));
  if (prompt.threshold == 0.0) return {};
  if (runner->is_composed()) {
    return error(Code::kUnsupported, "xattention is there on the CPU's own kernels only; take tri_shape");
  }
  if (runner->max_rows() >= shape.block_size) return {};
  return error(Code::kInvalidArgument,
               "xattention chooses for a whole block of {} rows at once, and a step takes {}; take a larger chunk",
               shape.block_size, runner->max_rows());
}

// What it asks of the model itself, made once.
Status Engine::State::make_ready(const Policy& asking) {
  EBB_RETURN_IF_ERROR(asking.check_grain(shape.block_size));
  if (asking.asks().output_lengths && !output_lengths) {
    EBB_ASSIGN_OR_RETURN(output_lengths, OutputLengths::make(*model, backend->n_threads()));
  }
  return {};
}

Status Engine::check_sparse_prompt(const SparsePrompt& prompt) const { return state_->check_sparse_prompt(prompt); }

Status Engine::check_selectors(const SelectorList& selectors) const {
  return selectors.asks_meanings() && state_->meanings == nullptr ? no_meanings_error() : Status();
}

Status Engine::set_policy(Session& session, const std::shared_ptr<const Policy>& policy) {
  EBB_RETURN_IF_ERROR(state_->make_ready(policy ? *policy : *state_->policy));
  session.set_policy(policy, state_->output_lengths.get());
  return {};
}

Result<SessionDeps> Engine::State::deps_for(const SessionOptions& options) {
  EBB_RETURN_IF_ERROR(make_ready(options.policy ? *options.policy : *policy));
  return SessionDeps{.pool = *pool,
                     .memory = *memory,
                     .vocabulary = *vocabulary,
                     .policy = policy,
                     .store = store.get(),
                     .mover = mover.get(),
                     .output_lengths = output_lengths.get(),
                     .forecaster = forecaster.get(),
                     .scorer = scorer.get(),
                     .digest_room = digest_room.get(),
                     .meanings = meanings.get(),
                     .open_pool = open_pool.get(),
                     .hot = &hot,
                     .starts = &starts,
                     .shape = shape,
                     .model = model->fingerprint(),
                     .n_ctx_train = model->hparams().n_ctx_train,
                     .gives_sums_only = runner->is_composed(),
                     .when_fetched = when_fetched};
}

Result<std::unique_ptr<Session>> Engine::new_session() {
  SessionOptions options = state_->session_options;
  options.budget_tokens = 0;
  return new_session(options);
}

Result<std::unique_ptr<Session>> Engine::new_session(const SessionOptions& options) {
  EBB_ASSIGN_OR_RETURN(const SessionOptions checked, state_->checked(options));
  EBB_ASSIGN_OR_RETURN(const SessionDeps deps, state_->deps_for(checked));
  return std::make_unique<Session>(deps, checked);
}

Result<std::shared_ptr<const BudgetList>> Engine::read_shares(const GivenShares& shares) const {
  return state_->read_shares(shares);
}

Result<std::unique_ptr<Session>> Engine::restore_session(const SessionOptions& options, const SessionImage& image) {
  EBB_ASSIGN_OR_RETURN(const SessionOptions checked, state_->checked(options));
  EBB_ASSIGN_OR_RETURN(const SessionDeps deps, state_->deps_for(checked));
  return Session::restore(deps, checked, image);
}

Result<Acts> Engine::recall(Session& session, std::span<const BlockIndex> blocks) {
  Acts acts = session.recall(blocks);
  Recompute again(session);
  again.add(acts.lost);
  acts.lost.clear();
  while (const std::optional<SequenceInput> input = again.begin_step(state_->runner->max_rows(), acts)) {
    if (const Status status = state_->run({&*input, 1}); !status.ok()) {
      again.abandon_step();
      again.stop();
      clear_cancel();
      return status;
    }
    again.end_step(acts);
  }
  session.settle_anchors(acts);
  return acts;
}

std::vector<std::byte> Engine::read_block(const Session& session, BlockIndex block) const {
  std::vector<std::byte> bytes(session.block_bytes(block));
  session.read_frames(block, bytes);
  return bytes;
}

void Engine::request_cancel() { state_->backend->request_cancel(); }
void Engine::clear_cancel() { state_->backend->clear_cancel(); }
const Model& Engine::model() const { return *state_->model; }
const Vocabulary& Engine::vocabulary() const { return *state_->vocabulary; }
void Engine::set_when_fetched(std::function<void()> when_fetched) { state_->when_fetched = std::move(when_fetched); }
const BlockShape& Engine::shape() const { return state_->shape; }
const FrameLayout& Engine::layout() const { return state_->memory->layout(); }
FramePool& Engine::pool() { return *state_->pool; }
Runner& Engine::runner() { return *state_->runner; }
MeaningThread* Engine::meanings() const { return state_->meanings.get(); }
ColdStore* Engine::store() { return state_->store.get(); }
const ColdStore* Engine::store() const { return state_->store.get(); }
const SessionOptions& Engine::session_options() const { return state_->session_options; }
const Policy& Engine::policy() const { return *state_->policy; }
std::int32_t Engine::n_threads() const { return state_->backend->n_threads(); }

std::int32_t Engine::budget_tokens() const { return state_->budget.n_tokens(state_->shape); }

std::int32_t Engine::prompt_budget_tokens() const { return state_->prompt_budget.n_tokens(state_->shape); }

std::size_t Engine::peak_open_bytes() const {
  if (state_->open_pool == nullptr) return 0;
  return state_->memory->open_frame_bytes() * static_cast<std::size_t>(state_->open_pool->peak_hot());
}

bool Engine::has_open_blocks(std::int32_t n_blocks) const {
  return state_->open_pool == nullptr || state_->open_pool->n_free() >= n_blocks * state_->shape.frames_per_block();
}

Result<std::unique_ptr<Embedder>> Engine::open_embedder() const {
  if (state_->embedder == nullptr) return std::unique_ptr<Embedder>();
  return state_->embedder->open_beside({.n_threads = n_threads()});
}

EngineMemory Engine::memory() const {
  return {.weights = state_->model->bytes(),
          .frames_reserved = state_->memory->reserved_bytes(),
          .open_reserved = state_->memory->open_reserved_bytes(),
          .compute = state_->runner->compute_bytes()};
}

}  // namespace ebb
