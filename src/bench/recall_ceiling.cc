#include "bench/recall_ceiling.h"

#include <algorithm>
#include <tuple>

#include "base/clock.h"
#include "bench/recall_prompts.h"
#include "bench/session_steps.h"
#include "engine/engine.h"
#include "engine/generation.h"

namespace ebb {
namespace {

// Longer than any answer; it bounds a reply that does not end.
constexpr std::int32_t kMostCeilingTokens = 48;

class Ceiling {
 public:
  Ceiling(Engine& engine, const CeilingOptions& options, CeilingReport& report)
      : engine_(engine), options_(options), report_(report) {}

  Status measure() {
    for (const RecallKind kind : options_.kinds) {
      for (const Haystack haystack : options_.haystacks) {
        // Pairs lie in no haystack.
        if (kind == RecallKind::kKeyValue && haystack != options_.haystacks.front()) continue;
        for (const bool near_twins : {false, true}) {
          for (const std::int32_t n_tokens : options_.lengths) {
            RecallTaskOptions task = options_.task;
            task.kind = kind;
            task.haystack = haystack;
            task.n_tokens = n_tokens;
            task.near_twins = near_twins;
            EBB_RETURN_IF_ERROR(measure_case(task));
          }
        }
      }
    }
    std::ranges::sort(report_.relations, {},
                      [](const CeilingRelation& r) { return std::tuple(r.name, r.paraphrased, r.sparse_prompt); });
    return {};
  }

 private:
  Status measure_case(RecallTaskOptions task) {
    std::vector<CeilingCase> cases;
    std::vector<std::vector<RecallTask>> tasks;  // as told, paraphrased
    for (const bool paraphrased : {false, true}) {
      task.paraphrased = paraphrased;
      Result<std::vector<RecallTask>> made = make_recall_tasks(engine_.vocabulary(), task);
      // Ten facts and their twins are too many for a short context: a case that is not there.
      if (made.status().code() == Code::kOutOfBudget) return {};
      EBB_RETURN_IF_ERROR(made.status());
      tasks.push_back(*std::move(made));
    }
    for (const std::string& sparse_prompt : options_.sparse_prompts) {
      for (const bool paraphrased : {false, true}) {
        cases.push_back({.kind = task.kind,
                         .haystack = task.haystack,
                         .n_tokens = task.n_tokens,
                         .near_twins = task.near_twins,
                         .sparse_prompt = sparse_prompt,
                         .paraphrased = paraphrased});
      }
    }
    for (std::size_t t = 0; t < tasks[0].size(); ++t) {
      options_.progress(fmt::format("{} of {} tokens, {}", name_of(task.kind), task.n_tokens, name_of(task.haystack)),
                        n_done_ += 1.0 / static_cast<double>(n_cases() * tasks[0].size()));
      EBB_ASSIGN_OR_RETURN(const RecallContext context, recall_context(engine_.vocabulary(), tasks[0][t]));
      for (std::size_t c = 0; c < cases.size(); c += tasks.size()) {
        EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, read(context, cases[c]));
        const Position end = session->end();
        for (std::size_t way = 0; way < tasks.size(); ++way) {
          cut_session(*session, end);
          EBB_RETURN_IF_ERROR(ask_all(*session, tasks[way][t], context.ends, cases[c + way]));
        }
      }
    }
    std::ranges::move(cases, std::back_inserter(report_.cases));
    return {};
  }

  Result<std::unique_ptr<Session>> read(const RecallContext& context, const CeilingCase& of) {
    EBB_ASSIGN_OR_RETURN(const SparsePrompt sparse_prompt, SparsePrompt::parse(of.sparse_prompt));
    EBB_ASSIGN_OR_RETURN(
        std::unique_ptr<Session> session,
        engine_.new_session(
            {.budget_tokens = engine_.budget_tokens(), .sparse_prompt = sparse_prompt, .adopts = false}));
    const Stopwatch watch;
    EBB_RETURN_IF_ERROR(compute_tokens(engine_, *session, context.tokens));
    reading_of(of).seconds.push_back(watch.elapsed_ms() / 1e3);
    return session;
  }

  CeilingReading& reading_of(const CeilingCase& of) {
    for (CeilingReading& reading : report_.readings) {
      if (reading.sparse_prompt == of.sparse_prompt && reading.n_tokens == of.n_tokens) return reading;
    }
    report_.readings.push_back({.sparse_prompt = of.sparse_prompt, .n_tokens = of.n_tokens});
    return report_.readings.back();
  }

  Status ask_all(Session& session, const RecallTask& task, Before before, CeilingCase& of) {
    for (const RecallQuestion& question : task.questions) {
      EBB_ASSIGN_OR_RETURN(const std::string said, reply(session, question.text, before));
      const bool right = is_right(said, task, question);
      CeilingRelation& relation = relation_of(question, of);
      ++of.n_asked;
      ++relation.n_asked;
      if (right) {
        ++of.n_right;
        ++relation.n_right;
        continue;
      }
      of.misses.push_back({.relation = question.relation,
                           .fact = question.fact,
                           .question = question.text,
                           .wanted = question.answer,
                           .said = said});
    }
    return {};
  }

  Result<std::string> reply(Session& session, std::string_view question, Before& before) {
    EBB_ASSIGN_OR_RETURN(std::vector<Token> tokens, recall_question(engine_.vocabulary(), question, before));
    const GenerationOptions options = {.sampling = {.temperature = 0.0F},
                                       .max_tokens = kMostCeilingTokens,
                                       .stop_strings = recall_stops(engine_.vocabulary())};
    EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Generation> generation,
                         Generation::start(session, engine_.vocabulary(), Prompt(std::move(tokens)), options));
    Generation* const running = generation.get();
    while (!running->finished()) EBB_RETURN_IF_ERROR(engine_.step({&running, 1}));
    EBB_RETURN_IF_ERROR(running->status());
    before = running->reason() == FinishReason::kEndOfGeneration ? Before::kEndedReply : Before::kCutReply;
    return running->text();
  }

  CeilingRelation& relation_of(const RecallQuestion& question, const CeilingCase& of) {
    const CeilingRelation wanted = {
        .name = question.relation, .sparse_prompt = of.sparse_prompt, .paraphrased = question.is_paraphrased};
    for (CeilingRelation& relation : report_.relations) {
      if (relation.name == wanted.name && relation.paraphrased == wanted.paraphrased &&
          relation.sparse_prompt == wanted.sparse_prompt) {
        return relation;
      }
    }
    report_.relations.push_back(wanted);
    return report_.relations.back();
  }

  [[nodiscard]] std::size_t n_cases() const {
    std::size_t n = 0;
    for (const RecallKind kind : options_.kinds) n += kind == RecallKind::kKeyValue ? 1 : options_.haystacks.size();
    return 2 * n * options_.lengths.size();
  }

  Engine& engine_;
  const CeilingOptions& options_;
  CeilingReport& report_;
  double n_done_ = 0.0;
};

}  // namespace

Result<CeilingReport> run_ceiling(const CeilingOptions& options) {
  if (options.kinds.empty() || options.haystacks.empty() || options.lengths.empty() || options.sparse_prompts.empty()) {
    return error(Code::kInvalidArgument, "give one kind, one haystack, one length and one way to read at least");
  }
  for (const std::string& sparse_prompt : options.sparse_prompts) {
    EBB_RETURN_IF_ERROR(SparsePrompt::parse(sparse_prompt).status());
    if (std::ranges::count(options.sparse_prompts, sparse_prompt) > 1) {
      return error(Code::kInvalidArgument, "'{}' is given twice; each way of reading once", sparse_prompt);
    }
  }
  options.progress("loading", 0.0);
  EBB_ASSIGN_OR_RETURN(
      const std::unique_ptr<Engine> engine,
      Engine::open({.model = options.model, .n_threads = options.n_threads, .kv_type = options.kv_type}));
  CeilingReport report{.model = options.model.filename().string(), .options = options};
  EBB_RETURN_IF_ERROR(Ceiling(*engine, options, report).measure());
  return report;
}

}  // namespace ebb
