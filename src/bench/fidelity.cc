#include "bench/fidelity.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "bench/fidelity_session.h"
#include "bench/session_steps.h"
#include "chat/turn_text.h"
#include "engine/engine.h"

namespace ebb {
namespace {

// Longer than any answer; it bounds a reply that does not end.
constexpr std::int32_t kReplyTokens = 32;

// Every session computes its history itself, whatever another has saved.
SessionOptions arm_options(FidelityArm arm) {
  switch (arm) {
    case FidelityArm::kReference:
    case FidelityArm::kSparse: return {.adopts = false};
    case FidelityArm::kCompact:
      return {.recall_place = RecallPlace::kCompacted, .removal = Removal::kCompact, .adopts = false};
    case FidelityArm::kCompactTail:
      return {.recall_place = RecallPlace::kTail, .removal = Removal::kCompact, .adopts = false};
    case FidelityArm::kTail: return {.recall_place = RecallPlace::kTail, .adopts = false};
    case FidelityArm::kRedecoded: return {.remains = Remains::kTokens, .adopts = false};
    case FidelityArm::kDiscarded: return {.remains = Remains::kNothing, .adopts = false};
  }
  EBB_CHECK(false, "no arm {}", static_cast<int>(arm));
}

Status check(const FidelityOptions& options) {
  if (options.spans.empty() || std::ranges::min(options.spans) < 1 || options.distances.empty() ||
      std::ranges::min(options.distances) < 1 || options.n_context < 1) {
    return error(Code::kInvalidArgument,
                 "spans and distances must be one or more numbers of tokens, and they and the context at least 1");
  }
  if (options.kv_types.empty() || options.absences.empty()) {
    return error(Code::kInvalidArgument, "{} types of K and V, {} absences: give one of each at least",
                 options.kv_types.size(), options.absences.size());
  }
  if (options.n_facts < 1 || options.n_scored < 1) {
    return error(Code::kInvalidArgument, "{} facts, {} tokens scored: each must be at least 1", options.n_facts,
                 options.n_scored);
  }
  return {};
}

// What the session that never evicted did, and what the others are held against.
struct Reference {
  FidelitySession session;
  // Decoded one by one behind the history: the question, the reply but for its last token or to its end, and more.
  std::vector<Token> scored;
  std::vector<std::vector<float>> logits;  // by scored
  // Logits [n_question - 1, n_question - 1 + reply.size()) chose the reply.
  std::vector<Token> reply;
  std::vector<std::vector<std::byte>> span_bytes;
};

class Fidelity {
 public:
  Fidelity(Engine& engine, const FidelityOptions& options) : engine_(engine), options_(options) {}

  std::function<void(std::string_view)> on_session = [](std::string_view) {};

  // Adds one fact to the cases of this shape, which differ in absence alone.
  Status play(const FidelityShape& shape, std::span<FidelityCase> cases) {
    EBB_ASSIGN_OR_RETURN(reference_.session, make_fidelity_session(engine_.vocabulary(), shape));
    on_session(fidelity_arm_text(FidelityArm::kReference));
    FidelityFigures reference;
    EBB_RETURN_IF_ERROR(play_reference(reference));
    for (FidelityCase& one : cases) {
      one.arms.front().add(reference);
      for (std::size_t i = 1; i < kFidelityArms; ++i) {
        const auto arm = static_cast<FidelityArm>(i);
        on_session(fidelity_arm_text(arm));
        EBB_RETURN_IF_ERROR(play_arm(arm, one.absence, one.arms[i]));
      }
    }
    return {};
  }

 private:
  [[nodiscard]] Position question_begin() const {
    return Position(static_cast<std::int32_t>(reference_.session.history.size()));
  }
  [[nodiscard]] std::span<const Token> question() const { return reference_.session.question; }

  Status play_reference(FidelityFigures& figures) {
    EBB_ASSIGN_OR_RETURN(const auto session, engine_.new_session(arm_options(FidelityArm::kReference)));
    EBB_RETURN_IF_ERROR(compute_tokens(engine_, *session, reference_.session.history));
    EBB_ASSIGN_OR_RETURN(const Acts came_back, recall_blocks(engine_, *session, {}));
    reference_.span_bytes = span_bytes(*session);
    EBB_RETURN_IF_ERROR(decide_what_is_scored(*session));
    reference_.logits.clear();
    cut_session(*session, question_begin());
    EBB_RETURN_IF_ERROR(decode_tokens(engine_, *session, reference_.scored, [&](std::size_t, auto logits) {
                          const auto known = logits.first(n_vocab());
                          reference_.logits.emplace_back(known.begin(), known.end());
                        }).status());
    for (std::size_t i = 0; i < reference_.scored.size(); ++i) {
      add_distance(i, compare_logits(reference_.logits[i], reference_.logits[i]), figures);
    }
    ++figures.n_bitwise;
    ++figures.n_same_bytes;
    EBB_RETURN_IF_ERROR(add_reply(reference_.reply, figures));
    add_counts(*session, came_back, figures);
    return {};
  }

  // The question, this session's greedy reply to it, and more reading.
  Status decide_what_is_scored(Session& session) {
    EBB_ASSIGN_OR_RETURN(reference_.reply, reply(session));
    const bool ended = engine_.vocabulary().is_end_of_generation(reference_.reply.back());
    EBB_ASSIGN_OR_RETURN(const std::vector<Token> more, turn_tokens(engine_.vocabulary(), reference_.session.more.text,
                                                                    ended ? Before::kEndedReply : Before::kCutReply));
    std::vector<Token>& scored = reference_.scored;
    scored.assign(question().begin(), question().end());
    scored.insert(scored.end(), reference_.reply.begin(), reference_.reply.end());
    scored.insert(scored.end(), more.begin(), more.end());
    // Never fewer than chose the reply.
    const std::size_t n_least = question().size() + reference_.reply.size() - 1;
    scored.resize(std::min(scored.size(), std::max(n_least, static_cast<std::size_t>(options_.n_scored))));
    return {};
  }

  Status play_arm(FidelityArm arm, Absence absence, FidelityFigures& figures) {
    EBB_ASSIGN_OR_RETURN(const auto session, engine_.new_session(arm_options(arm)));
    const FidelitySession& text = reference_.session;
    const std::span<const Token> history = text.history;
    const auto n_first =
        absence == Absence::kMoment ? history.size() : static_cast<std::size_t>(text.span_end(options_.block_size));
    EBB_RETURN_IF_ERROR(compute_tokens(engine_, *session, history.first(n_first)));
    evict_blocks(*session, text.span);
    if (n_first < history.size()) {
      EBB_RETURN_IF_ERROR(compute_tokens(engine_, *session, history.subspan(n_first)));
    }
    // A session that keeps nothing recalls nothing.
    EBB_ASSIGN_OR_RETURN(const Acts came_back, recall_blocks(engine_, *session, text.span));
    EBB_RETURN_IF_ERROR(check_return(arm, came_back));
    if (arm != FidelityArm::kDiscarded && span_bytes(*session) == reference_.span_bytes) ++figures.n_same_bytes;
    EBB_RETURN_IF_ERROR(score(*session, figures));
    add_counts(*session, came_back, figures);
    cut_session(*session, question_begin());
    EBB_ASSIGN_OR_RETURN(const std::vector<Token> said, reply(*session));
    return add_reply(said, figures);
  }

  Status score(Session& session, FidelityFigures& figures) {
    bool is_bitwise = true;
    EBB_RETURN_IF_ERROR(decode_tokens(engine_, session, reference_.scored, [&](std::size_t i, auto logits) {
                          const auto distance = compare_logits(reference_.logits[i], logits.first(n_vocab()));
                          is_bitwise = is_bitwise && distance.is_bitwise;
                          add_distance(i, distance, figures);
                        }).status());
    if (is_bitwise) ++figures.n_bitwise;
    return {};
  }

  // Greedy, behind the question; what ends it is its last token.
  Result<std::vector<Token>> reply(Session& session) {
    EBB_RETURN_IF_ERROR(compute_tokens(engine_, session, question().first(question().size() - 1)));
    EBB_ASSIGN_OR_RETURN(std::vector<Token> tokens, decode_greedily(engine_, session, question().back(), kReplyTokens));
    const auto end =
        std::ranges::find_if(tokens, [&](Token token) { return engine_.vocabulary().is_end_of_generation(token); });
    if (end != tokens.end()) tokens.erase(end + 1, tokens.end());
    return tokens;
  }

  Status check_return(FidelityArm arm, const Acts& came_back) const {
    const std::size_t n_wanted = arm == FidelityArm::kDiscarded ? 0 : reference_.session.span.size();
    const auto& back = arm == FidelityArm::kRedecoded ? came_back.recomputed : came_back.recalled;
    if (back.size() == n_wanted) return {};
    return error(Code::kNotFound, "{}: {} of {} blocks came back; is memory full?", fidelity_arm_text(arm), back.size(),
                 n_wanted);
  }

  [[nodiscard]] std::vector<std::vector<std::byte>> span_bytes(const Session& session) const {
    std::vector<std::vector<std::byte>> bytes;
    for (const BlockIndex block : reference_.session.span) bytes.push_back(engine_.read_block(session, block));
    return bytes;
  }

  void add_distance(std::size_t i, const LogitsDistance& distance, FidelityFigures& figures) const {
    ++figures.n_scored;
    figures.kl_sum += distance.kl;
    figures.kl_most = std::max(figures.kl_most, distance.kl);
    figures.gap_sum += distance.gap;
    figures.gap_most = std::max(figures.gap_most, distance.gap);
    if (distance.same_top) ++figures.n_same_top;
    const std::size_t begin = question().size() - 1;
    if (i < begin || i >= begin + reference_.reply.size()) return;
    ++figures.n_reply_scored;
    figures.kl_reply_sum += distance.kl;
  }

  Status add_reply(const std::vector<Token>& said, FidelityFigures& figures) const {
    const std::vector<Token>& wanted = reference_.reply;
    EBB_ASSIGN_OR_RETURN(const std::string text, engine_.vocabulary().detokenize(said, SpecialTokens::kHide));
    const auto n_same = std::ranges::mismatch(said, wanted).in1 - said.begin();
    figures.n_same_reply_tokens += n_same;
    figures.n_reply_tokens += std::ssize(wanted);
    if (said == wanted) ++figures.n_same_replies;
    if (text.find(reference_.session.answer) != std::string::npos) ++figures.n_right;
    return {};
  }

  static void add_counts(const Session& session, const Acts& came_back, FidelityFigures& figures) {
    const SessionStats& stats = session.stats();
    figures.n_sessions += 1;
    figures.n_evicted_blocks += stats.n_evicted_blocks;
    figures.n_recalled_blocks += stats.n_recalled_blocks;
    figures.n_recomputed_blocks += stats.n_recomputed_blocks;
    figures.n_moved_blocks += stats.n_moved_blocks;
    figures.from += session.origins(came_back);
  }

  [[nodiscard]] std::size_t n_vocab() const { return static_cast<std::size_t>(engine_.vocabulary().n_tokens()); }

  Engine& engine_;
  const FidelityOptions& options_;
  Reference reference_;
};

// The longest session, what is recalled to its tail included.
std::int32_t most_tokens(const FidelityOptions& options) {
  const FidelityShape largest{.n_context = options.n_context,
                              .n_span = std::ranges::max(options.spans),
                              .n_distance = std::ranges::max(options.distances),
                              .block_size = options.block_size};
  return largest.most_tokens() + largest.n_span + options.n_scored + 2 * kReplyTokens;
}

Result<std::unique_ptr<Engine>> open_engine(const FidelityOptions& options, RowType kv_type) {
  const std::int32_t n_tokens = most_tokens(options);
  // A turn recalls half of the budget at most.
  const std::int32_t budget = std::max(n_tokens, 2 * (std::ranges::max(options.spans) + 2 * options.block_size));
  EBB_ASSIGN_OR_RETURN(auto engine, Engine::open({.model = options.model,
                                                  .n_threads = options.n_threads,
                                                  .kv_type = kv_type,
                                                  .block_size = options.block_size,
                                                  .kv_budget_tokens = budget,
                                                  .store = {.ram_bytes = options.ram_bytes}}));
  if (const std::int32_t n_ctx = engine->model().hparams().n_ctx_train; n_tokens > n_ctx) {
    return error(Code::kOutOfBudget,
                 "sessions may have {} tokens, and the model was trained for {}; give smaller --spans, --distances or "
                 "--context",
                 n_tokens, n_ctx);
  }
  return engine;
}

// Cases that differ in absence alone lie beside each other.
std::vector<FidelityCase> cases_of(const FidelityOptions& options, RowType kv_type) {
  std::vector<FidelityCase> cases;
  for (const std::int32_t span : options.spans) {
    for (const std::int32_t distance : options.distances) {
      for (const Absence absence : options.absences) {
        cases.push_back({.kv_type = kv_type, .absence = absence, .n_span = span, .n_distance = distance, .arms = {}});
      }
    }
  }
  return cases;
}

template <class T>
void sort_unique(std::vector<T>& values) {
  std::ranges::sort(values);
  const auto repeated = std::ranges::unique(values);
  values.erase(repeated.begin(), repeated.end());
}

}  // namespace

void FidelityFigures::add(const FidelityFigures& other) {
  n_sessions += other.n_sessions;
  n_bitwise += other.n_bitwise;
  n_same_bytes += other.n_same_bytes;
  n_scored += other.n_scored;
  n_reply_scored += other.n_reply_scored;
  kl_sum += other.kl_sum;
  kl_most = std::max(kl_most, other.kl_most);
  kl_reply_sum += other.kl_reply_sum;
  gap_sum += other.gap_sum;
  gap_most = std::max(gap_most, other.gap_most);
  n_same_top += other.n_same_top;
  n_same_replies += other.n_same_replies;
  n_same_reply_tokens += other.n_same_reply_tokens;
  n_reply_tokens += other.n_reply_tokens;
  n_right += other.n_right;
  n_evicted_blocks += other.n_evicted_blocks;
  n_recalled_blocks += other.n_recalled_blocks;
  n_recomputed_blocks += other.n_recomputed_blocks;
  n_moved_blocks += other.n_moved_blocks;
  from += other.from;
}

FidelityArms fidelity_totals(const FidelityReport& report, RowType kv_type, Absence absence) {
  FidelityArms totals;
  for (const FidelityCase& one : report.cases) {
    if (one.kv_type != kv_type || one.absence != absence) continue;
    for (std::size_t i = 0; i < kFidelityArms; ++i) totals[i].add(one.arms[i]);
  }
  return totals;
}

LogitsDistance compare_logits(std::span<const float> reference, std::span<const float> other) {
  EBB_CHECK(!reference.empty() && reference.size() == other.size(), "{} logits against {}", other.size(),
            reference.size());
  const auto log_sum = [](std::span<const float> logits) {
    const double most = *std::ranges::max_element(logits);
    double sum = 0.0;
    for (const float logit : logits) sum += std::exp(double{logit} - most);
    return most + std::log(sum);
  };
  const double of_reference = log_sum(reference);
  const double of_other = log_sum(other);
  LogitsDistance distance{.is_bitwise = std::memcmp(reference.data(), other.data(), reference.size_bytes()) == 0};
  double most = 0.0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double p = double{reference[i]} - of_reference;
    distance.kl += std::exp(p) * (p - (double{other[i]} - of_other));
    most = std::max(most, std::abs(double{reference[i]} - double{other[i]}));
  }
  // Sums of rounded terms may fall below.
  distance.kl = std::max(0.0, distance.kl);
  const auto [low, high] = std::ranges::minmax(reference);
  distance.gap = most == 0.0 ? 0.0 : most / std::max(double{high} - double{low}, double{FLT_MIN});
  distance.same_top =
      std::ranges::max_element(reference) - reference.begin() == std::ranges::max_element(other) - other.begin();
  return distance;
}

Result<FidelityReport> run_fidelity(const FidelityOptions& given) {
  EBB_RETURN_IF_ERROR(check(given));
  FidelityReport report{.model = given.model.stem().string(), .options = given, .cases = {}};
  FidelityOptions& options = report.options;
  sort_unique(options.spans);
  sort_unique(options.distances);
  sort_unique(options.kv_types);
  sort_unique(options.absences);
  const auto n_shapes = options.kv_types.size() * options.spans.size() * options.distances.size();
  const auto n_sessions = static_cast<double>(n_shapes * static_cast<std::size_t>(options.n_facts) *
                                              (1 + (kFidelityArms - 1) * options.absences.size()));
  double n_done = 0.0;
  for (const RowType kv_type : options.kv_types) {
    options.progress(fmt::format("{}: loading", row_type_name(kv_type)), n_done / n_sessions);
    EBB_ASSIGN_OR_RETURN(const auto engine, open_engine(options, kv_type));
    Fidelity bench(*engine, options);
    std::vector<FidelityCase> cases = cases_of(options, kv_type);
    const std::span<FidelityCase> all(cases);
    // With one type of K and V no two sessions read the same, so that cases add up; all types read the same.
    std::uint64_t seed = options.seed;
    for (std::size_t i = 0; i < cases.size(); i += options.absences.size()) {
      bench.on_session = [&](std::string_view arm) {
        options.progress(
            fmt::format("{}: {}, {} of {} back", row_type_name(kv_type), arm, cases[i].n_span, cases[i].n_distance),
            n_done++ / n_sessions);
      };
      for (std::int32_t fact = 0; fact < options.n_facts; ++fact) {
        EBB_RETURN_IF_ERROR(bench.play({.n_context = options.n_context,
                                        .n_span = cases[i].n_span,
                                        .n_distance = cases[i].n_distance,
                                        .block_size = options.block_size,
                                        .seed = seed++},
                                       all.subspan(i, options.absences.size())));
      }
    }
    report.cases.insert(report.cases.end(), cases.begin(), cases.end());
  }
  options.progress("done", 1.0);
  return report;
}

}  // namespace ebb
