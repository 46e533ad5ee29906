#include "cli/engine_flags.h"

#include <map>

#include <CLI/CLI.hpp>

#include "cli/bundled_model.h"
#include "cli/interrupt.h"
#include "cli/store_flag.h"
#include "cli/terminal.h"

namespace ebb {
namespace {

constexpr std::int32_t kMostThreads = 512;
constexpr std::int32_t kMost = 1 << 30;

const std::map<std::string, Remains> kRemains = {
    {"discard", Remains::kNothing}, {"breadcrumb", Remains::kTokens}, {"restore", Remains::kBytes}};

const std::map<std::string, RecallPlace> kRecallPlaces = {
    {"original", RecallPlace::kOriginal}, {"compacted", RecallPlace::kCompacted}, {"tail", RecallPlace::kTail}};

const std::map<std::string, Removal> kRemovals = {{"sparse", Removal::kSparse}, {"compact", Removal::kCompact}};

// llama.cpp's context shift, which is tinfer's mode 0: half of what is hot is discarded when the budget is full, and what
// stays closes up.
constexpr const char* kContextShift = "0";

EngineFlags with_context_shift(EngineFlags flags) {
  flags.eviction = "streaming";
  flags.low_watermark = 0.5;
  flags.remains = "discard";
  flags.removal = "compact";
  return flags;
}

std::string check_eviction(const std::string& spec) { return spec == kContextShift ? "" : check_policy(spec); }

std::string eviction_help() {
  std::vector<std::string> entries;
  for (const PolicyEntry& policy : policies()) entries.push_back(fmt::format("{} ({})", policy.name, policy.summary));
  return fmt::format(
      "What leaves when room is needed: {}. Parameters behind the name, as in snapkv:window=16; ebb policy show NAME "
      "tells them. Numbers as tinfer has them: 0 is llama.cpp's context shift (streaming with --kv-evicted discard, "
      "--kv-removal compact and --kv-low-watermark 0.5, whatever those say), 1 streaming, 2 scored:recent=0.25",
      fmt::join(entries, ", "));
}

std::string sparse_prompt_help() {
  std::vector<std::string> schemes;
  for (const SparseScheme& scheme : sparse_schemes()) {
    std::vector<std::string> parameters;
    for (const Parameter& p : scheme.parameters) {
      parameters.push_back(fmt::format("{} ({}; default {})", p.name, p.summary, p.value));
    }
    schemes.push_back(fmt::format("{} with {}", scheme.name, fmt::join(parameters, ", ")));
  }
  return fmt::format(
      "What the rows of a long prompt need not look at, which is faster and approximate: none; {}; as in "
      "tri_shape:recent=1024. Nothing leaves the cache for it, and what is computed so is never taken for what is not",
      fmt::join(schemes, "; "));
}

void add_eviction_flags(CLI::App& app, EngineFlags& flags) {
  const char* group = "Eviction";
  app.add_option("--kv-eviction", flags.eviction, eviction_help())
      ->check(check_eviction)
      ->type_name("POLICY")
      ->capture_default_str()
      ->group(group);
  const auto add_tokens = [&](const char* name, std::int32_t& value, const char* help) {
    app.add_option(name, value, help)
        ->check(CLI::Range(0, kMost))
        ->type_name("TOKENS")
        ->capture_default_str()
        ->group(group);
  };
  add_tokens(
      "--kv-sink-tokens", flags.sink_tokens,
      "First tokens that leave last, under policies that want that (ebb policy show NAME); --kv-protected-tokens holds "
      "them under all");
  add_tokens("--kv-recent-tokens", flags.recent_tokens, "Last tokens that leave last");
  add_tokens("--kv-protected-tokens", flags.protected_tokens,
             "First tokens that never leave, such as a system prompt's");
  const auto add_mark = [&](const char* name, double& value, const char* help) {
    app.add_option(name, value, help)
        ->check(CLI::Range(0.01, 1.0))
        ->type_name("SHARE")
        ->capture_default_str()
        ->group(group);
  };
  add_mark("--kv-high-watermark", flags.high_watermark, "Evict when this share of the budget is hot");
  add_mark("--kv-low-watermark", flags.low_watermark,
           "... until this share is; both 1: only what is needed, when it is");
  app.add_flag("--no-rebase", flags.no_rebase,
               "End a session where the model's trained context ends, instead of going on with approximate positions")
      ->group(group);
  app.add_option("--kv-evicted", flags.remains,
                 "What remains of evicted blocks: restore brings their bytes back, breadcrumb computes them again, "
                 "discard leaves holes")
      ->check(CLI::IsMember(kRemains))
      ->type_name("MODE")
      ->capture_default_str()
      ->group(group);
  app.add_option("--kv-recall-place", flags.recall_place,
                 "Positions that recalled blocks carry: original, exact; compacted, in their order among hot blocks "
                 "that close up; tail, right before what comes next. All but original are approximate")
      ->check(CLI::IsMember(kRecallPlaces))
      ->type_name("PLACE")
      ->capture_default_str()
      ->group(group);
  app.add_option(
         "--kv-recall-renew", flags.renewed_tokens,
         "Of each recalled block, so many first tokens are computed again where it lies, with what is hot before it "
         "in sight; what is saved of it stays as it was. 0: none, what came back is as it was saved")
      ->check(CLI::Range(0, kMostRenewed))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  app.add_option("--kv-removal", flags.removal,
                 "What survivors of an eviction do: sparse, they stay where they are; compact, they close up as "
                 "shifting caches do, in each head by what left that head, which is approximate")
      ->check(CLI::IsMember(kRemovals))
      ->type_name("WAY")
      ->capture_default_str()
      ->group(group);
  app.add_option("--kv-sparse-prompt", flags.sparse_prompt, sparse_prompt_help())
      ->check(check_sparse_prompt)
      ->type_name("SCHEME")
      ->capture_default_str()
      ->group(group);
}

}  // namespace

std::string check_sparse_prompt(const std::string& text) {
  const Result<SparsePrompt> prompt = SparsePrompt::parse(text);
  return prompt.ok() ? "" : std::string(prompt.status().message());
}

std::string check_policy(const std::string& spec) {
  const auto policy = make_policy(spec);
  return policy.ok() ? "" : policy.status().message();
}

void add_engine_flags(CLI::App& app, EngineFlags& flags) {
  const char* model = "Model";
  app.add_option("-m,--model", flags.model, "GGUF file; default: the small model that comes with ebb")
      ->type_name("FILE")
      ->group(model);
  app.add_option("-t,--threads", flags.n_threads, "Threads; 0: one per physical core")
      ->check(CLI::Range(0, kMostThreads))
      ->type_name("N")
      ->capture_default_str()
      ->group(model);
  app.add_option("--device", flags.device, "Where to compute: cpu, or a device as ggml names it (CUDA0)")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(model);
  app.add_flag("--no-repack", flags.no_repack, "Use the weights as they lie in the file: less memory, slower")
      ->group(model);

  const char* cache = "KV cache";
  app.add_option(
         "--kv-budget", flags.kv_budget,
         "Tokens that may be hot at once; 0: what the model was trained for, as far as memory allows. Beyond it, "
         "blocks are evicted to the cold store, and those that a message asks about come back")
      ->check(CLI::Range(0, kMost))
      ->type_name("TOKENS")
      ->capture_default_str()
      ->group(cache);
  app.add_option(
         "--kv-prompt-budget", flags.kv_prompt_budget,
         "As many may be hot while a prompt is computed, and before the first token of the reply is, what is beyond "
         "--kv-budget leaves; memory is reserved for them. 0: no more than between prompts")
      ->check(CLI::Range(0, kMost))
      ->type_name("TOKENS")
      ->capture_default_str()
      ->group(cache);
  CLI::Option* const file =
      app.add_option("--kv-budgets", flags.kv_budgets,
                     "How layers or heads share the budget: a budget file, which names the model that it is for. "
                     "Default: as the policy shares it")
          ->type_name("FILE")
          ->group(cache);
  app.add_option("--kv-layer-shares", flags.kv_layer_shares,
                 "The same by a number for each layer, the lowest first: 2,1,1,0.5; only proportions count")
      ->delimiter(',')
      ->excludes(file)
      ->type_name("LIST")
      ->group(cache);
  app.add_option(
         "--kv-type", flags.kv_type,
         "Type of K and V in frames: f16, bf16, f32, q8_0, or kivi4: 4 bits, keys by dimension over a block, values "
         "by token (KIVI), the block that is written to in f16; on the CPU. A block of q8_0 or kivi4 that is "
         "moved to other positions loses precision")
      ->check(CLI::IsMember({"f16", "bf16", "f32", "q8_0", "kivi4"}))
      ->type_name("TYPE")
      ->capture_default_str()
      ->group(cache);
  app.add_option("--block-size", flags.block_size,
                 "Tokens of a block, which is chosen, evicted and recalled as a whole. Below 16, keys take the room of "
                 "16. 0: 64, and of KV budgets below 2048 tokens 32, below 1024 16")
      ->check(CLI::Range(0, 128))
      ->type_name("TOKENS")
      ->capture_default_str()
      ->group(cache);
  app.add_option("--chunk", flags.chunk, "Prompt tokens computed in one step")
      ->check(CLI::Range(1, kMost))
      ->type_name("TOKENS")
      ->capture_default_str()
      ->group(cache);
  add_eviction_flags(app, flags);
  app.add_option(
         "--kv-store", flags.store,
         "Where evicted blocks go: ram=SIZE, disk=FOLDER, disk-max=SIZE, with commas. With a disk they outlive the "
         "process; one process per folder. Without RAM and disk they are computed again")
      ->type_name("SPEC")
      ->capture_default_str()
      ->group(cache);
  app.add_option("--kv-digests", flags.digests,
                 "Memory for what is kept of evicted blocks, by which recall finds what shares no word with a "
                 "question: of their keys some 5 % of K and V in f16, and with --embedding-model vectors of their "
                 "sentences. Blocks beyond it are found by words alone; 0: all are")
      ->check([](const std::string& text) {
        const Result<std::uint64_t> n_bytes = parse_size(text);
        return n_bytes.ok() ? std::string() : n_bytes.status().message();
      })
      ->type_name("SIZE")
      ->capture_default_str()
      ->group(cache);
  app.add_option(
         "--embedding-model", flags.embedding_model,
         "GGUF file of an embedding model (bge, MiniLM), by which the selector embedding finds evicted blocks "
         "that say what is asked for in other words; its vectors are computed on a thread of its own. ebb serve "
         "answers /v1/embeddings by it")
      ->type_name("FILE")
      ->group(cache);
}

Result<std::unique_ptr<Engine>> open_engine(const EngineFlags& given, InterruptListener& interrupt) {
  const EngineFlags flags = given.eviction == kContextShift ? with_context_shift(given) : given;
  EngineOptions options;
  EBB_ASSIGN_OR_RETURN(options.model, given_or_bundled_model(flags.model));
  options.device = flags.device;
  options.n_threads = flags.n_threads;
  options.kv_type = find_row_type(flags.kv_type).value_or(RowType::kF16);  // CLI11 let only known names through
  options.block_size = flags.block_size;
  options.kv_budget_tokens = flags.kv_budget;
  options.chunk = flags.chunk;
  options.most_pause_ms = flags.max_pause_ms;
  options.policy = flags.eviction;
  options.shares = {.file = flags.kv_budgets, .by_layer = flags.kv_layer_shares};
  options.session = {.prompt_budget_tokens = flags.kv_prompt_budget,
                     .watermarks = {.high = flags.high_watermark, .low = flags.low_watermark},
                     .sink_tokens = flags.sink_tokens,
                     .recent_tokens = flags.recent_tokens,
                     .pinned_tokens = flags.protected_tokens,
                     .remains = kRemains.at(flags.remains),
                     .recall_place = kRecallPlaces.at(flags.recall_place),
                     .renewed_tokens = flags.renewed_tokens,
                     .removal = kRemovals.at(flags.removal),
                     .rebases = !flags.no_rebase};
  EBB_ASSIGN_OR_RETURN(options.session.sparse_prompt, SparsePrompt::parse(flags.sparse_prompt));
  EBB_ASSIGN_OR_RETURN(options.store, parse_store_flag(flags.store));
  EBB_ASSIGN_OR_RETURN(options.digest_bytes, parse_size(flags.digests));
  options.embedding_model = flags.embedding_model;
  options.use_repacked = !flags.no_repack;
  ProgressBar bar;
  const std::string what = "loading " + options.model.filename().string();
  options.progress = [&](float share) {
    bar.update(what, share);
    return !interrupt.interrupted();
  };
  EBB_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::open(options));
  interrupt.stop_also(*engine);
  return engine;
}

}  // namespace ebb
