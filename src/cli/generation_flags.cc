#include "cli/generation_flags.h"

#include <charconv>
#include <limits>

#include <CLI/CLI.hpp>

#include "cli/text_file.h"

namespace ebb {
namespace {

void add_penalty_flags(CLI::App& app, SamplingOptions& sampling) {
  const char* group = "Sampling";
  app.add_option("--repeat-penalty", sampling.penalty_repeat, "Divide the logits of tokens already said; 1: off")
      ->type_name("X")
      ->capture_default_str()
      ->group(group);
  app.add_option("--repeat-last-n", sampling.penalty_last_n, "How many of the last tokens penalties look at; 0: off")
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  app.add_option("--presence-penalty", sampling.penalty_presence, "Lower tokens that were said at all; 0: off")
      ->type_name("X")
      ->capture_default_str()
      ->group(group);
  app.add_option("--frequency-penalty", sampling.penalty_frequency, "Lower tokens by how often they were said; 0: off")
      ->type_name("X")
      ->capture_default_str()
      ->group(group);
}

}  // namespace

void add_sampling_flags(CLI::App& app, GenerationFlags& flags) {
  const char* group = "Sampling";
  SamplingOptions& sampling = flags.sampling;
  app.add_option("--temp", sampling.temperature, "Temperature; 0: always the most likely token")
      ->type_name("X")
      ->capture_default_str()
      ->group(group);
  app.add_option("--top-k", sampling.top_k, "Only the K most likely tokens; 0: all")
      ->type_name("K")
      ->capture_default_str()
      ->group(group);
  app.add_option("--top-p", sampling.top_p, "Only the most likely tokens that make up P; 1: all")
      ->type_name("P")
      ->capture_default_str()
      ->group(group);
  app.add_option("--min-p", sampling.min_p, "Only tokens at least P times as likely as the most likely one; 0: all")
      ->type_name("P")
      ->capture_default_str()
      ->group(group);
  app.add_option("--typical", sampling.typical_p, "Locally typical sampling; 1: off")
      ->type_name("P")
      ->capture_default_str()
      ->group(group);
  add_penalty_flags(app, sampling);
  app.add_option("-s,--seed", flags.seed, "Seed of the random draw; -1: another one each time")
      ->check(CLI::Range(std::int64_t{-1}, std::int64_t{std::numeric_limits<std::uint32_t>::max()}))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
}

void add_recall_flags(CLI::App& app, GenerationFlags& flags) {
  std::string known;
  for (const SelectorKind& kind : selector_kinds()) known += fmt::format("{}{}", known.empty() ? "" : ", ", kind.name);
  app.add_option(
         "--selectors", flags.selectors,
         fmt::format("Which evicted blocks come back is chosen by these, joined by '+': {}; or fused (identity, "
                     "lexical, digest, and embedding where there is a model for it), or none (ebb explain shows "
                     "what they choose)",
                     known))
      ->type_name("NAME+NAME")
      ->capture_default_str()
      ->group("KV cache");
  app.add_option(
         "--recall", flags.recall_blocks,
         "Evicted blocks that one selector chooses at most in one look for what a message asks, by their room: one "
         "that "
         "lacks half of the heads is half a block. There are several looks: before the message, of one longer than the "
         "KV budget again before its last words and by their queries, and while the reply is written; half of the "
         "budget bounds them all; 0: none (default: as many as hold 512 tokens, 8 of 64)")
      ->check(CLI::Range(0, 1 << 20))
      ->type_name("BLOCKS")
      ->group("KV cache");
  app.add_option(
         "--recall-ms", flags.recall_ms,
         "Milliseconds that a turn waits for blocks that come back, the most wanted first: of those that would take "
         "longer, as fast as the first eight came, no read is begun, and they are counted; 0: as long as it takes")
      ->check(CLI::Range(0.0, kMostRecallWait))
      ->type_name("MS")
      ->capture_default_str()
      ->group("KV cache");
}

void add_generation_flags(CLI::App& app, GenerationFlags& flags) {
  const char* group = "Reply";
  app.add_option(
         "-n,--predict", flags.max_tokens,
         "Tokens to generate at most; 0: only the prompt is computed; -1: until the model ends, or its trained context")
      ->check(CLI::Range(-1, std::numeric_limits<std::int32_t>::max()))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  app.add_option("--stop", flags.stop, "End the reply before this text; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--grammar", flags.grammar, "Only replies of this grammar (GBNF)")->type_name("GBNF")->group(group);
  app.add_option("--grammar-file", flags.grammar_file, "The same, from a file")
      ->type_name("FILE")
      ->excludes("--grammar")
      ->group(group);
  add_sampling_flags(app, flags);
  add_recall_flags(app, flags);
  app.add_option("-l,--logit-bias", flags.logit_bias,
                 "Add to a token's logit: 15043+1.5 prefers token 15043, 15043-inf forbids it; may be repeated")
      ->type_name("ID+X|ID-X")
      ->allow_extra_args(false)
      ->group("Sampling");
}

Result<LogitBias> parse_logit_bias(std::string_view text) {
  const auto refuse = [&] {
    return error(Code::kInvalidArgument,
                 "--logit-bias {}: expected a token's id, a sign and a number, as in 15043+1.5 or 15043-inf", text);
  };
  std::int32_t id = 0;
  const auto [id_end, id_error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (id_error != std::errc() || id < 0) return refuse();
  std::string_view rest = text.substr(static_cast<std::size_t>(id_end - text.data()));
  if (rest.size() < 2 || (rest[0] != '+' && rest[0] != '-')) return refuse();
  const float sign = rest[0] == '-' ? -1.0F : 1.0F;
  rest.remove_prefix(1);
  float bias = 0.0F;
  const auto [bias_end, bias_error] = std::from_chars(rest.data(), rest.data() + rest.size(), bias);
  if (bias_error != std::errc() || bias_end != rest.data() + rest.size() || !(bias >= 0.0F)) return refuse();
  return LogitBias{.token = Token(id), .bias = sign * bias};
}

Result<GenerationOptions> generation_options(const GenerationFlags& flags) {
  GenerationOptions options{.sampling = flags.sampling,
                            .max_tokens = flags.max_tokens,
                            .stop_strings = flags.stop,
                            .recall = {.max_blocks = flags.recall_blocks, .most_ms = flags.recall_ms}};
  Result<SelectorList> selectors = SelectorList::parse(flags.selectors);
  if (!selectors.ok()) return error(Code::kInvalidArgument, "--selectors: {}", selectors.status().message());
  options.recall.selectors = *std::move(selectors);
  if (flags.seed >= 0) options.sampling.seed = static_cast<std::uint32_t>(flags.seed);
  for (const std::string& text : flags.logit_bias) {
    EBB_ASSIGN_OR_RETURN(const LogitBias bias, parse_logit_bias(text));
    options.sampling.logit_bias.push_back(bias);
  }
  options.sampling.grammar = flags.grammar;
  if (!flags.grammar_file.empty()) {
    EBB_ASSIGN_OR_RETURN(options.sampling.grammar, read_text(flags.grammar_file));
  }
  EBB_RETURN_IF_ERROR(options.sampling.validate());
  return options;
}

}  // namespace ebb
