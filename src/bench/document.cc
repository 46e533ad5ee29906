#include "bench/document.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/text_table.h"
#include "bench/recall_prompts.h"
#include "bench/session_steps.h"
#include "bench/statistics.h"
#include "engine/engine.h"
#include "engine/generation.h"
#include "policy/all.h"

namespace ebb {
namespace {

// Longer than any answer; it bounds a reply that does not end.
constexpr std::int32_t kMostAnswerTokens = 48;
// Of a budget: what is written to, what was just written, and what comes back.
constexpr std::int32_t kLeastBlocks = 4;

constexpr std::pair<QuestionPlace, std::string_view> kPlaces[] = {
    {QuestionPlace::kLast, "last"}, {QuestionPlace::kFirst, "first"}, {QuestionPlace::kNext, "next"}};

// A request as its arms compute it.
struct Request {
  // A message of before; empty where there is none.
  std::vector<Token> before;
  std::vector<Token> tokens;
  // What the question is looked for by: the text of the message that holds it.
  std::string text;
  // Names of the blocks that tell the fact.
  std::vector<std::string> needed;
};

class Document {
 public:
  Document(Engine& engine, const DocumentOptions& options, DocumentReport& report)
      : engine_(engine), options_(options), report_(report) {}

  Status measure() {
    for (const std::string& name : options_.policies) {
      EBB_ASSIGN_OR_RETURN(std::unique_ptr<Policy> policy, make_policy(name));
      policies_.emplace_back(name, std::move(policy));
    }
    std::vector<double> n_tokens;
    for (const RecallKind kind : options_.kinds) {
      RecallTaskOptions task = options_.task;
      task.kind = kind;
      EBB_ASSIGN_OR_RETURN(const std::vector<RecallTask> tasks, make_recall_tasks(engine_.vocabulary(), task));
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        for (const QuestionPlace place : options_.places) {
          options_.progress(fmt::format("{}, question {}", name_of(kind), name_of(place)),
                            n_done_ / static_cast<double>(options_.kinds.size() * options_.places.size()));
          n_done_ += 1.0 / static_cast<double>(tasks.size());
          for (const RecallQuestion& question : tasks[t].questions) {
            EBB_ASSIGN_OR_RETURN(const Request request, make_request(tasks[t], question, place));
            n_tokens.push_back(static_cast<double>(request.before.size() + request.tokens.size()));
            EBB_RETURN_IF_ERROR(ask_in_every_arm(tasks[t], question, place, request));
          }
        }
      }
    }
    report_.n_request_tokens = static_cast<std::int32_t>(median(n_tokens));
    return {};
  }

 private:
  Result<Request> make_request(const RecallTask& task, const RecallQuestion& question, QuestionPlace place) {
    const Vocabulary& vocabulary = engine_.vocabulary();
    const std::string document = document_of(task);
    Request request;
    Before before = Before::kNothing;
    request.text = place == QuestionPlace::kFirst  ? question.text + "\n" + document
                   : place == QuestionPlace::kLast ? document + question.text
                                                   : question.text;
    if (place == QuestionPlace::kNext) {
      EBB_ASSIGN_OR_RETURN(
          const RecallContext context,
          recall_message(vocabulary, {.text = "Read this: " + document, .reply = task.messages.front().reply}, before));
      request.before = context.tokens;
      before = context.ends;
    }
    EBB_ASSIGN_OR_RETURN(request.tokens, recall_question(vocabulary, request.text, before));
    EBB_ASSIGN_OR_RETURN(request.needed,
                         find_needed(request.before.empty() ? request.tokens : request.before, question.fact));
    return request;
  }

  // The first message of a session is "turn1".
  Result<std::vector<std::string>> find_needed(const std::vector<Token>& tokens, std::string_view fact) {
    std::string text;
    std::vector<std::size_t> ends;
    for (const Token& token : tokens) {
      EBB_ASSIGN_OR_RETURN(const std::string piece, engine_.vocabulary().detokenize({&token, 1}, SpecialTokens::kShow));
      text += piece;
      ends.push_back(text.size());
    }
    const std::size_t at = text.find(fact);
    if (at == std::string::npos) return error(Code::kInvalidArgument, "a request without its fact: {}", fact);
    const auto token_at = [&](std::size_t byte) {
      return static_cast<std::int32_t>(std::ranges::upper_bound(ends, byte) - ends.begin());
    };
    std::vector<std::string> names;
    const std::int32_t last = token_at(at + fact.size() - 1) / options_.block_size;
    for (std::int32_t b = token_at(at) / options_.block_size; b <= last; ++b)
      names.push_back(fmt::format("turn1#{}", b));
    return names;
  }

  Status ask_in_every_arm(const RecallTask& task, const RecallQuestion& question, QuestionPlace place,
                          const Request& request) {
    const auto n_tokens = static_cast<std::int32_t>(request.before.size() + request.tokens.size());
    DocumentCell& most = cell_of({.kind = task.kind, .place = place, .arm = "never evicting"});
    EBB_RETURN_IF_ERROR(ask(task, question, request, nullptr, 0, ArmRecall::kNothing, most));
    for (const auto& [name, policy] : policies_) {
      for (const std::int32_t part : options_.parts) {
        const std::int32_t n_blocks = std::max(kLeastBlocks, n_tokens / part / options_.block_size);
        for (const ArmRecall recall : {ArmRecall::kNothing, ArmRecall::kWords, ArmRecall::kOracle}) {
          const DocumentArm arm{.policy = name, .recall = recall};
          DocumentCell& cell = cell_of({.kind = task.kind, .place = place, .arm = arm.name(), .part = part});
          EBB_RETURN_IF_ERROR(ask(task, question, request, policy, n_blocks * options_.block_size, recall, cell));
        }
      }
    }
    return {};
  }

  Status ask(const RecallTask& task, const RecallQuestion& question, const Request& request,
             const std::shared_ptr<const Policy>& policy, std::int32_t budget_tokens, ArmRecall recall,
             DocumentCell& cell) {
    SessionOptions session_options = engine_.session_options();
    session_options.budget_tokens = budget_tokens > 0 ? budget_tokens : engine_.budget_tokens();
    session_options.policy = policy;
    session_options.adopts = false;
    EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, engine_.new_session(session_options));
    if (!request.before.empty()) EBB_RETURN_IF_ERROR(compute_tokens(engine_, *session, request.before));
    GenerationOptions options{.sampling = {.temperature = 0.0F},
                              .max_tokens = kMostAnswerTokens,
                              .stop_strings = recall_stops(engine_.vocabulary())};
    options.recall.max_blocks = options_.n_recalled_blocks;
    if (recall == ArmRecall::kWords) options.recall.cues = find_cues(request.text);
    if (recall == ArmRecall::kOracle) options.recall.names = request.needed;
    EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Generation> generation,
                         Generation::start(*session, engine_.vocabulary(), Prompt(request.tokens), options));
    Generation* const running = generation.get();
    while (!running->finished()) EBB_RETURN_IF_ERROR(engine_.step({&running, 1}));
    EBB_RETURN_IF_ERROR(running->status());
    cell.right.push_back(is_right(running->text(), task, question) ? 1.0 : 0.0);
    cell.n_recalled += std::ssize(running->turn_stats().acts.recalled);
    cell.ms.push_back(running->stats().prefill_ms);
    return {};
  }

  DocumentCell& cell_of(const DocumentCell& like) {
    for (DocumentCell& cell : report_.cells) {
      if (cell.kind == like.kind && cell.place == like.place && cell.arm == like.arm && cell.part == like.part) {
        return cell;
      }
    }
    report_.cells.push_back(like);
    return report_.cells.back();
  }

  Engine& engine_;
  const DocumentOptions& options_;
  DocumentReport& report_;
  std::vector<std::pair<std::string, std::shared_ptr<const Policy>>> policies_;
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

std::string DocumentArm::name() const {
  switch (recall) {
    case ArmRecall::kNothing: return policy;
    case ArmRecall::kWords: return policy + ", recall";
    case ArmRecall::kOracle: return policy + ", oracle";
  }
  return policy;
}

Result<DocumentReport> run_document(const DocumentOptions& options) {
  if (options.kinds.empty() || options.places.empty() || options.parts.empty() || options.policies.empty()) {
    return error(Code::kInvalidArgument, "give one kind, one place, one part and one policy at least");
  }
  options.progress("loading", 0.0);
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, Engine::open({.model = options.model,
                                                                           .n_threads = options.n_threads,
                                                                           .kv_type = options.kv_type,
                                                                           .block_size = options.block_size}));
  DocumentReport report{.model = options.model.filename().string(), .options = options};
  EBB_RETURN_IF_ERROR(Document(*engine, options, report).measure());
  return report;
}

}  // namespace ebb
