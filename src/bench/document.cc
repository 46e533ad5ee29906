#include "bench/document.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "bench/document_engines.h"
#include "bench/document_request.h"
#include "bench/recall_prompts.h"
#include "bench/session_steps.h"
#include "bench/statistics.h"
#include "engine/engine.h"
#include "engine/generation.h"
#include "policy/all.h"

namespace ebb {
namespace {

// Of a budget: what is written to, what was just written, and what comes back.
constexpr std::int32_t kLeastBlocks = 4;
// Wrong answers that a cell tells in full.
constexpr std::size_t kMostMisses = 5;

constexpr std::pair<QuestionPlace, std::string_view> kPlaces[] = {
    {QuestionPlace::kLast, "last"},     {QuestionPlace::kFirst, "first"},
    {QuestionPlace::kMiddle, "middle"}, {QuestionPlace::kInstructed, "instructed"},
    {QuestionPlace::kNext, "next"},     {QuestionPlace::kTool, "tool"}};

// What an arm is asked: probes of one case that follow each other in one session.
struct Asked {
  const DocumentCase& document;
  std::span<const DocumentProbe> probes;
  QuestionPlace place = QuestionPlace::kLast;
};

class Document {
 public:
  Document(DocumentEngines& engines, Engine& engine, const DocumentOptions& options, DocumentReport& report)
      : engines_(engines), engine_(engine), options_(options), report_(report) {}

  Status measure() {
    report_.arms = options_.list.arms;
    report_.against = options_.list.against;
    if (report_.arms.empty()) {
      EBB_ASSIGN_OR_RETURN(report_.arms, make_document_arms(options_.arms));
    }
    for (const DocumentArm& arm : report_.arms) {
      EBB_RETURN_IF_ERROR(engine_.check_selectors(arm.selectors));
      EBB_ASSIGN_OR_RETURN(policies_[arm.policy], make_policy(arm.policy));
    }
    for (const std::int32_t part : options_.budgets.empty() ? options_.parts : std::vector<std::int32_t>()) {
      hot_.push_back({.part = part});
    }
    for (const std::int32_t n_tokens : options_.budgets) hot_.push_back({.part = 0, .n_tokens = n_tokens});
    EBB_ASSIGN_OR_RETURN(const std::vector<const DocumentKind*> kinds, find_document_kinds(options_.kinds));
    n_rounds_ = static_cast<double>(kinds.size() * options_.lengths.size() * options_.places.size());
    for (const DocumentKind* kind : kinds) {
      for (const std::int32_t n_tokens : options_.lengths) {
        EBB_RETURN_IF_ERROR(measure_kind(*kind, n_tokens));
        if (!kind->takes_length) break;
      }
    }
    report_.n_request_tokens = static_cast<std::int32_t>(median(n_request_tokens_));
    return {};
  }

 private:
  Status measure_kind(const DocumentKind& kind, std::int32_t n_tokens) {
    DocumentCaseOptions options = options_.cases;
    options.task.n_tokens = n_tokens;
    EBB_ASSIGN_OR_RETURN(const std::vector<DocumentCase> cases, kind.make(engine_.vocabulary(), options));
    for (const QuestionPlace place : options_.places) {
      like_ = {.kind = std::string(kind.name),
               .n_tokens = kind.takes_length ? n_tokens : 0,
               .place = place,
               .paraphrased = kind.paraphrases && options.task.paraphrased};
      n_nominal_ = like_.n_tokens;
      for (const DocumentCase& one : cases) {
        options_.progress(fmt::format("{}, question {}", kind.name, name_of(place)), n_done_ / n_rounds_);
        n_done_ += 1.0 / static_cast<double>(cases.size());
        EBB_RETURN_IF_ERROR(ask_case(one, place));
      }
    }
    return {};
  }

  Status ask_case(const DocumentCase& one, QuestionPlace place) {
    // A tool loop is told anew for each question.
    const std::size_t n_together = one.in_a_row && place != QuestionPlace::kTool ? one.probes.size() : 1;
    for (std::size_t i = 0; i < one.probes.size(); i += n_together) {
      const std::span<const DocumentProbe> probes = std::span(one.probes).subspan(i, n_together);
      EBB_RETURN_IF_ERROR(ask_in_every_arm({.document = one, .probes = probes, .place = place}));
    }
    return {};
  }

  Status ask_in_every_arm(const Asked& asked) {
    EBB_ASSIGN_OR_RETURN(const DocumentRequest request, request_of(asked, engines_.block_size(0)));
    n_request_tokens_.push_back(request.n_tokens());
    // All cases of a kind have blocks of one size, whatever their length.
    if (n_nominal_ == 0) n_nominal_ = request.n_tokens();
    // Past what the model was trained for nothing can be hot all at once.
    const auto n_probes = static_cast<std::int32_t>(asked.probes.size());
    if (request.n_tokens() + n_probes * request.most_reply_tokens <= report_.n_ctx_train) {
      EBB_RETURN_IF_ERROR(ask(asked, request, {}, {}, engine_));
    }
    for (const HotPart& hot : hot_) {
      for (const DocumentArm& arm : report_.arms) {
        const std::int32_t of_budget = engines_.block_size(tokens_of(hot, n_nominal_));
        const std::int32_t block_size = arm.block_size > 0 ? arm.block_size : of_budget;
        EBB_ASSIGN_OR_RETURN(Engine* const engine, engines_.get(block_size, arm.n_ram_blocks));
        EBB_ASSIGN_OR_RETURN(const DocumentRequest of_size, request_of(asked, block_size));
        if (arm.recall == ArmRecall::kOracle && of_size.needed.empty()) continue;
        EBB_RETURN_IF_ERROR(ask(asked, of_size, arm, hot, *engine));
      }
    }
    return {};
  }

  [[nodiscard]] Result<DocumentRequest> request_of(const Asked& asked, std::int32_t block_size) const {
    return make_document_request(engine_.vocabulary(), asked.document, asked.probes.front(), asked.place, block_size);
  }

  [[nodiscard]] static std::int32_t tokens_of(const HotPart& hot, std::int32_t n_tokens) {
    return hot.n_tokens > 0 ? hot.n_tokens : n_tokens / hot.part;
  }

  // No less than a turn needs, and no more than there is.
  [[nodiscard]] static std::int32_t budget_of(const HotPart& hot, std::int32_t n_tokens, const Engine& engine) {
    if (hot.is_all()) return engine.budget_tokens();
    const std::int32_t block_size = engine.layout().block_size;
    const std::int32_t n_blocks = std::max(kLeastBlocks, tokens_of(hot, n_tokens) / block_size);
    return std::min(n_blocks * block_size, engine.budget_tokens());
  }

  Status ask(const Asked& asked, const DocumentRequest& first, const DocumentArm& arm, const HotPart& hot,
             Engine& engine) {
    SessionOptions session_options = engine.session_options();
    session_options.budget_tokens = budget_of(hot, first.n_tokens(), engine);
    session_options.policy = arm.policy.empty() ? nullptr : policies_.at(arm.policy);
    session_options.remains = arm.remains;
    session_options.recall_place = arm.place;
    session_options.renewed_tokens = arm.n_renewed;
    session_options.watermarks = arm.watermarks;
    const auto recent = static_cast<std::int32_t>(arm.recent_share * session_options.budget_tokens);
    session_options.recent_tokens = std::max(session_options.recent_tokens, recent);
    session_options.adopts = false;
    EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, engine.new_session(session_options));
    for (const std::vector<Token>& turn : first.before) EBB_RETURN_IF_ERROR(compute_tokens(engine, *session, turn));
    DocumentCell& cell = cell_of(arm, hot);
    cell.block_size = engine.layout().block_size;
    DocumentRequest request = first;
    for (std::size_t i = 0; i < asked.probes.size(); ++i) {
      const DocumentProbe& probe = asked.probes[i];
      if (i > 0) {
        EBB_ASSIGN_OR_RETURN(request, next_document_request(engine.vocabulary(), first, probe, ends_, cell.block_size));
      }
      EBB_RETURN_IF_ERROR(answer({engine, *session}, request, probe, arm, cell));
    }
    return {};
  }

  // All that engines know of arms.
  void ask_for(const DocumentRequest& request, const DocumentArm& arm, GenerationOptions& options) const {
    options.recall.max_blocks = options_.n_recalled_blocks;
    if (arm.n_recalled > 0) options.recall.max_blocks = arm.n_recalled;
    options.recall.selectors = arm.selectors;
    if (arm.recall == ArmRecall::kSelected) options.recall.cues = request.cues;
    if (arm.recall == ArmRecall::kOracle) {
      options.recall.names = request.needed;
      // Elsewhere the question is what was read last.
      options.recall.names.insert(options.recall.names.begin(), request.asked.begin(), request.asked.end());
    }
  }

  struct Asker {
    Engine& engine;
    Session& session;
  };

  // What of the request is left to be computed once something came back: its last token where that is to be late.
  static Result<std::vector<Token>> compute_before_recall(const Asker& asker, const DocumentRequest& request,
                                                          const DocumentArm& arm) {
    if (!arm.is_late || request.tokens.size() < 2) return request.tokens;
    EBB_RETURN_IF_ERROR(
        compute_tokens(asker.engine, asker.session, std::span(request.tokens).first(request.tokens.size() - 1)));
    return std::vector{request.tokens.back()};
  }

  Status answer(const Asker& asker, const DocumentRequest& request, const DocumentProbe& probe, const DocumentArm& arm,
                DocumentCell& cell) {
    auto& [engine, session] = asker;
    GenerationOptions options{.sampling = {.temperature = 0.0F},
                              .max_tokens = request.most_reply_tokens,
                              .stop_strings = recall_stops(engine.vocabulary())};
    ask_for(request, arm, options);
    EBB_ASSIGN_OR_RETURN(std::vector<Token> prompt, compute_before_recall(asker, request, arm));
    EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Generation> generation,
                         Generation::start(session, engine.vocabulary(), Prompt(std::move(prompt)), options));
    Generation* const running = generation.get();
    std::optional<double> found;
    while (!running->finished()) {
      EBB_RETURN_IF_ERROR(engine.step({&running, 1}));
      if (!found && !running->is_prefilling()) found = share_hot(session, request.needed);
    }
    EBB_RETURN_IF_ERROR(running->status());
    ends_ = running->reason() == FinishReason::kEndOfGeneration ? Before::kEndedReply : Before::kCutReply;
    cell.right.push_back(score_of(running->text(), probe));
    cell.said.push_back(running->text());
    cell.groups.push_back(probe.group);
    if (!request.needed.empty()) cell.found.push_back(found.value_or(0.0));
    const Acts& acts = running->turn_stats().acts;
    cell.n_recalled += static_cast<std::int64_t>(acts.n_back());
    cell.ms.push_back(running->stats().prefill_ms);
    if (cell.right.back() < 1.0 && cell.misses.size() < kMostMisses) {
      cell.misses.push_back({.question = probe.text,
                             .wanted = fmt::format("{}", fmt::join(probe.answers, ", ")),
                             .said = running->text(),
                             .needed = request.needed,
                             .looks = running->turn_stats().looks});
    }
    return {};
  }

  // Of these blocks' frames.
  static double share_hot(const Session& session, const std::vector<std::string>& names) {
    double n_hot = 0.0;
    double n = 0.0;
    for (const std::string& name : names) {
      for (const BlockIndex block : session.find_blocks(name)) {
        n_hot += session.hot().n_hot_frames(block);
        n += session.shape().frames_per_block();
      }
    }
    return n > 0.0 ? n_hot / n : 0.0;
  }

  DocumentCell& cell_of(const DocumentArm& arm, const HotPart& hot) {
    DocumentCell like = like_;
    like.arm = arm.name();
    like.hot = hot;
    for (DocumentCell& cell : report_.cells) {
      if (cell.kind == like.kind && cell.n_tokens == like.n_tokens && cell.place == like.place &&
          cell.arm == like.arm && cell.hot == like.hot) {
        return cell;
      }
    }
    return report_.cells.emplace_back(std::move(like));
  }

  DocumentEngines& engines_;
  // That with everything hot.
  Engine& engine_;
  const DocumentOptions& options_;
  DocumentReport& report_;
  std::map<std::string, std::shared_ptr<const Policy>> policies_;
  std::vector<HotPart> hot_;
  // Of the case that is asked.
  DocumentCell like_;
  // Tokens of its kind's requests, about.
  std::int32_t n_nominal_ = 0;
  // How the last reply of its session ended.
  Before ends_ = Before::kNothing;
  std::vector<double> n_request_tokens_;
  double n_rounds_ = 1.0;
  double n_done_ = 0.0;
};

}  // namespace

std::string_view name_of(QuestionPlace place) {
  for (const auto& [of, name] : kPlaces) {
    if (of == place) return name;
  }
  return "";
}

std::optional<QuestionPlace> find_question_place(std::string_view name) {
  for (const auto& [place, of] : kPlaces) {
    if (of == name) return place;
  }
  return std::nullopt;
}

Result<DocumentReport> run_document(const DocumentOptions& options) {
  if (options.kinds.empty() || options.places.empty() || options.lengths.empty() ||
      (options.list.arms.empty() && (options.arms.policies.empty() || options.arms.arms.empty())) ||
      (options.parts.empty() && options.budgets.empty())) {
    return error(Code::kInvalidArgument, "give one kind, length, place, budget, policy and arm at least");
  }
  options.progress("loading", 0.0);
  DocumentEngines engines(options);
  EBB_ASSIGN_OR_RETURN(Engine* const engine, engines.get(engines.block_size(0)));
  DocumentReport report{.model = options.model.filename().string(),
                        .n_ctx_train = engine->model().hparams().n_ctx_train,
                        .options = options};
  EBB_RETURN_IF_ERROR(Document(engines, *engine, options, report).measure());
  return report;
}

}  // namespace ebb
