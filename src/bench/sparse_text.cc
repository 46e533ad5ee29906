// What eviction does to text: perplexity, and how much of the generated text is the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "bench/session_steps.h"
#include "bench/sparse.h"
#include "engine/engine.h"

namespace ebb {
namespace {

// The part of a text file that is enough for any budget that is worth a bench.
constexpr std::size_t kMostTextBytes = std::size_t{4} << 20;

// Simple sentences, so that a reader of English has something to expect.
std::string make_text(std::size_t n_bytes) {
  constexpr std::array kWho = {"The captain", "An old servant", "Her sister",
                               "The general", "A stranger",     "The prince"};
  constexpr std::array kDid = {"opened", "remembered", "praised", "carried", "forgot", "described"};
  constexpr std::array kWhat = {"the letter", "a long road", "the winter", "his horse", "the garden", "a quiet room"};
  constexpr std::array kWhen = {"before dinner", "in the morning", "without a word", "that evening", "once more"};
  std::mt19937 random(1);
  const auto pick = [&](const auto& words) { return words[random() % words.size()]; };
  std::string text;
  while (text.size() < n_bytes) {
    text += fmt::format("{} {} {} {}. ", pick(kWho), pick(kDid), pick(kWhat), pick(kWhen));
  }
  return text;
}

Result<std::string> read_text_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return error(Code::kNotFound, "{}: the text cannot be read; give another file", path.string());
  std::string text(kMostTextBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

// -log of the probability of `token`.
double surprise(std::span<const float> logits, Token token) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(double{logit} - most);
  return most + std::log(sum) - double{logits[token.index()]};
}

struct Reading {
  double perplexity = 0.0;
  std::string generated;
  std::int32_t peak_hot_tokens = 0;
  std::int64_t n_evicted_blocks = 0;
};

class TextReader {
 public:
  TextReader(const SparseOptions& options, Engine& engine, std::span<const Token> tokens)
      : options_(options), engine_(engine), tokens_(tokens) {}

  Result<Reading> read(const SparseArm& arm) {
    EBB_ASSIGN_OR_RETURN(
        const auto session,
        engine_.new_session({.budget_tokens = arm.budget_tokens,
                             .removal = arm.way == SparseWay::kCompact ? Removal::kCompact : Removal::kSparse,
                             .adopts = false}));
    const auto n_context = static_cast<std::size_t>(options_.n_text_context);
    const auto scored = tokens_.subspan(n_context, static_cast<std::size_t>(options_.n_text_scored));
    EBB_RETURN_IF_ERROR(compute_tokens(engine_, *session, tokens_.first(n_context)));
    double total = 0.0;
    EBB_RETURN_IF_ERROR(decode_tokens(engine_, *session, scored, [&](std::size_t i, std::span<const float> logits) {
                          total += surprise(logits, tokens_[n_context + i + 1]);
                        }).status());
    Reading reading{.perplexity = std::exp(total / static_cast<double>(scored.size()))};
    EBB_ASSIGN_OR_RETURN(const auto generated, decode_greedily(engine_, *session, tokens_[n_context + scored.size()],
                                                               options_.n_text_generated));
    EBB_ASSIGN_OR_RETURN(reading.generated, engine_.vocabulary().detokenize(generated, SpecialTokens::kHide));
    reading.peak_hot_tokens = session->peak_hot_tokens();
    reading.n_evicted_blocks = session->stats().n_evicted_blocks;
    return reading;
  }

 private:
  const SparseOptions& options_;
  Engine& engine_;
  std::span<const Token> tokens_;
};

std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> words;
  std::istringstream in{std::string(text)};
  for (std::string word; in >> word;) words.insert(word);
  return words;
}

}  // namespace

double word_overlap(std::string_view a, std::string_view b) {
  const std::set<std::string> of_a = words_of(a);
  const std::set<std::string> of_b = words_of(b);
  const auto n_both = std::ranges::count_if(of_a, [&](const std::string& word) { return of_b.contains(word); });
  const auto n_either = std::ssize(of_a) + std::ssize(of_b) - n_both;
  return n_either == 0 ? 1.0 : static_cast<double>(n_both) / static_cast<double>(n_either);
}

Result<SparseText> read_sparse_text(const SparseOptions& options) {
  // A letter makes at most one token with any vocabulary that knows English; most make far fewer.
  const std::int32_t n_needed = options.n_text_context + options.n_text_scored + 1;
  constexpr std::size_t kBytesPerToken = 8;
  std::string text = make_text(kBytesPerToken * static_cast<std::size_t>(n_needed));
  if (!options.text_file.empty()) {
    EBB_ASSIGN_OR_RETURN(text, read_text_file(options.text_file));
    text.resize(std::min(text.size(), kBytesPerToken * static_cast<std::size_t>(n_needed)));
  }
  const std::int32_t n_all = n_needed + options.n_text_generated;
  const std::int32_t n_blocks = n_all / options.block_size + 1;
  EBB_ASSIGN_OR_RETURN(const auto engine, Engine::open({.model = options.text_model,
                                                        .n_threads = options.n_threads,
                                                        .kv_type = options.kv_type,
                                                        .block_size = options.block_size,
                                                        .kv_budget_tokens = n_blocks * options.block_size,
                                                        .policy = "streaming"}));
  if (const std::int32_t n_ctx = engine->model().hparams().n_ctx_train; n_all > n_ctx) {
    return error(Code::kOutOfBudget, "{} tokens of text, and {} was trained for {}; give a smaller --text-context",
                 n_all, options.text_model.filename().string(), n_ctx);
  }
  EBB_ASSIGN_OR_RETURN(const std::vector<Token> tokens, engine->vocabulary().tokenize(text));
  if (std::ssize(tokens) < n_needed) {
    return error(Code::kInvalidArgument, "the text has {} tokens, and {} are read and scored; give a longer one",
                 tokens.size(), n_needed);
  }
  TextReader reader(options, *engine, tokens);
  SparseText result{.model = options.text_model.stem().string(),
                    .text = options.text_file.empty() ? "simple sentences" : options.text_file.filename().string(),
                    .n_context = options.n_text_context,
                    .n_scored = options.n_text_scored,
                    .n_generated = options.n_text_generated,
                    .arms = {}};
  std::string reference;
  for (const SparseArm& arm : sparse_arms(options, options.n_text_context)) {
    options.progress(fmt::format("reading text: {}", arm.name()), 0.0);
    EBB_ASSIGN_OR_RETURN(const Reading reading, reader.read(arm));
    if (arm.way == SparseWay::kNothing) reference = reading.generated;
    result.arms.push_back({.arm = arm,
                           .perplexity = reading.perplexity,
                           .overlap = word_overlap(reading.generated, reference),
                           .peak_hot_tokens = reading.peak_hot_tokens,
                           .n_evicted_blocks = reading.n_evicted_blocks});
  }
  return result;
}

}  // namespace ebb
