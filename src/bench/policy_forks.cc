#include "bench/policy_forks.h"

#include <algorithm>
#include <utility>

#include "bench/session_steps.h"
#include "engine/generation.h"

namespace ebb {
namespace {

// Queries that windows of all arms look back: those of the longest question, and what SnapKV takes.
constexpr std::int32_t kWindow = 32;
// By tokens too.
constexpr std::int32_t kSlice = 1;
// What is noted of queries is the same for every horizon.
constexpr std::int32_t kForecast = 512;

class Watch final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "watch"; }
  [[nodiscard]] Ask asks() const override {
    return {.scope = Scope::kHead,
            .shares = true,
            .totals = true,
            .window = kWindow,
            .reread = true,
            .slice = kSlice,
            .expected = kForecast,
            .expected_spread = true};
  }
  [[nodiscard]] std::vector<double> score(const Evidence&, const ScopeEvidence& scope) const override {
    return std::vector<double>(scope.rows.size(), kNeverLeaves);
  }
};

// What is gone when as much has been read in blocks: each time the budget is full, half of what is behind the first block.
void evict_shifted(Session& session, std::int32_t budget_tokens) {
  const std::int32_t n_most = std::max(2, budget_tokens / session.block_size());
  std::int32_t n_hot = 0;
  for (std::int32_t b = 0; b < session.n_blocks(); ++b) {
    if (n_hot == n_most) n_hot -= (n_hot - 1) / 2 + (n_hot - 1) % 2;
    ++n_hot;
  }
  std::vector<BlockIndex> gone;
  for (std::int32_t b = 1; b <= session.n_blocks() - n_hot; ++b) gone.emplace_back(b);
  evict_blocks(session, gone);
}

}  // namespace

Result<std::vector<NamedPolicy>> policies_of_forks(std::vector<std::string> names) {
  if (names.empty()) {
    for (const PolicyEntry& entry : policies()) {
      const std::unique_ptr<Policy> policy = entry.make(ParameterValues(entry.parameters));
      if (!policy->lets_go()) continue;
      // Every query of a context is noted.
      const bool looks_back = policy->asks().prompt_window > 0;
      names.push_back(std::string(entry.name) + (looks_back ? ":window=0" : ""));
    }
  }
  std::vector<NamedPolicy> all;
  for (const std::string& name : names) {
    if (std::ranges::find(all, name, &NamedPolicy::name) != all.end()) {
      return error(Code::kInvalidArgument, "{} is given twice; name each policy once", name);
    }
    EBB_ASSIGN_OR_RETURN(std::shared_ptr<const Policy> policy, make_policy(name));
    if (const std::int32_t window = policy->asks().window; window != 0 && window != kWindow) {
      return error(Code::kInvalidArgument, "{}: contexts are noted once for all arms, with a window of {}", name,
                   kWindow);
    }
    if (const std::int32_t window = policy->asks().prompt_window; window != 0) {
      return error(Code::kInvalidArgument,
                   "{}: contexts are noted once for all arms, and every query of theirs counts: window=0", name);
    }
    if (const std::int32_t slice = policy->asks().slice; slice > kSlice) {
      return error(Code::kInvalidArgument,
                   "{}: contexts are noted once for all arms, by blocks and by tokens: slice=0 or slice=1", name);
    }
    if (policy->name() == "none") {
      return error(
          Code::kInvalidArgument,
          "none lets nothing leave, and a part of each context must; what nothing leaves from is measured anyway");
    }
    all.push_back({.name = name, .policy = std::move(policy)});
  }
  return all;
}

std::shared_ptr<const Policy> watching_policy() { return std::make_shared<Watch>(); }

Result<SessionImage> compute_image(Engine& engine, const SessionImage* image, std::span<const Token> tokens) {
  const SessionOptions options = {
      .budget_tokens = engine.budget_tokens(), .policy = watching_policy(), .adopts = false};
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                       image == nullptr ? engine.new_session(options) : engine.restore_session(options, *image));
  if (image != nullptr) session->refill(0, {}, Holes::kAll);
  EBB_RETURN_IF_ERROR(compute_tokens(engine, *session, tokens));
  EBB_RETURN_IF_ERROR(session->save());
  return session->image();
}

NamedPolicy context_shift() {
  return {.name = "context shift", .policy = make_policy("streaming").value(), .shifts = true};
}

Result<std::unique_ptr<Session>> fork_session(Engine& engine, const SessionImage& image, const NamedPolicy& policy,
                                              std::int32_t budget_tokens, const ForkFloors& floors) {
  const std::int32_t n_recent =
      budget_tokens > 0 ? std::min(floors.recent_tokens, budget_tokens / 4) : floors.recent_tokens;
  SessionOptions options = {.budget_tokens = engine.budget_tokens(),
                            .policy = policy.policy,
                            .sink_tokens = floors.sink_tokens,
                            .recent_tokens = n_recent,
                            .adopts = false};
  if (policy.shifts) {
    options.watermarks.low = 0.5;
    options.removal = Removal::kCompact;
  }
  EBB_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, engine.restore_session(options, image));
  session->refill(0, {}, Holes::kAll);
  if (session->n_hot_tokens() < session->end().value()) {
    return error(
        Code::kOutOfBudget,
        "the store holds {} of a context's {} tokens, so that arms would not begin alike; give it more RAM, or "
        "take shorter contexts",
        session->n_hot_tokens(), session->end().value());
  }
  if (budget_tokens > 0 && policy.shifts) evict_shifted(*session, budget_tokens);
  if (budget_tokens > 0) (void)session->set_budget(FrameBudget::of_tokens(budget_tokens, engine.shape()));
  return session;
}

Result<std::string> reply_greedily(Engine& engine, Session& session, std::vector<Token> tokens, GreedyReply reply) {
  const GenerationOptions options = {
      .sampling = {.temperature = 0.0F}, .max_tokens = reply.max_tokens, .stop_strings = std::move(reply.stop_strings)};
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Generation> generation,
                       Generation::start(session, engine.vocabulary(), Prompt(std::move(tokens)), options));
  Generation* const running = generation.get();
  while (!running->finished()) EBB_RETURN_IF_ERROR(engine.step({&running, 1}));
  EBB_RETURN_IF_ERROR(running->status());
  return running->text();
}

}  // namespace ebb
