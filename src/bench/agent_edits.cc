// What approximate reuse costs in answers: the second part of bench/agent.h.
//
//   before   system | file | answer | file                    | answer | file | answer | "Go on."
//   asked    system | file | answer | "cleared", or a new fact | answer | file | answer | question
//
// Each arm has the same histories and questions, in a session of its own that adopts nothing of the others.
#include <array>

#include "bench/agent.h"
#include "bench/api_client.h"
#include "bench/sections.h"

namespace ebb {
namespace {

constexpr std::uint64_t kEditSeed = 17;
constexpr std::int32_t kBudgetTokens = 4096;
constexpr std::int32_t kAnswerTokens = 32;
constexpr std::size_t kEdited = 3;  // the message
constexpr std::array<EditArm, 4> kEditArms = {
    EditArm{.name = "exact"},
    {.name = "approximate", .reuse = Reuse::kApproximate},
    {.name = "approximate, 4 recomputed", .reuse = Reuse::kApproximate, .n_recomputed = 4},
    {.name = "approximate, 16 recomputed", .reuse = Reuse::kApproximate, .n_recomputed = 16}};

struct EditCase {
  Json before;
  Json asked;
  std::string number;  // that is right to say, or wrong
  bool is_said = true;
};

Result<EditCase> make_case(SectionWriter& files, EditQuestion kind, std::int32_t n_section) {
  EBB_ASSIGN_OR_RETURN(const Section kept, files.write(n_section));
  EBB_ASSIGN_OR_RETURN(const Section edited, files.write(n_section));
  EBB_ASSIGN_OR_RETURN(const Section behind, files.write(n_section));
  Json history = Json::array({make_message("system", "You remember what you are told.")});
  for (const Section* const file : {&kept, &edited, &behind}) {
    history.push_back(make_message("user", file->text));
    history.push_back(make_message("assistant", "Noted."));
  }
  const Section& about = kind == EditQuestion::kBehind ? behind : edited;
  EditCase made = {.before = history, .asked = history, .number = about.answer};
  made.is_said = kind != EditQuestion::kCleared;
  std::string text = "[Old tool result content cleared]";
  if (kind == EditQuestion::kChanged) {
    EBB_ASSIGN_OR_RETURN(const Section other, files.write(1));
    text = edited.text;
    text.replace(text.find(edited.answer), edited.answer.size(), other.answer);
    made.number = other.answer;
  }
  made.asked[kEdited]["content"] = text;
  made.before.push_back(make_message("user", "Go on."));
  made.asked.push_back(make_message("user", about.question));
  return made;
}

// Whether the answer is right.
Result<bool> ask(ApiClient& client, const EditCase& one, std::string_view session, EditArm& arm) {
  const Json before = {{"messages", one.before}, {"max_tokens", 1}, {"temperature", 0}};
  EBB_RETURN_IF_ERROR(client.post("/v1/chat/completions", before, session).status());
  const Json asked = {{"messages", one.asked},
                      {"max_tokens", kAnswerTokens},
                      {"temperature", 0},
                      {"kv_reuse", arm.reuse == Reuse::kExact ? "exact" : "approximate"},
                      {"kv_reuse_recompute", arm.n_recomputed}};
  EBB_ASSIGN_OR_RETURN(const Json answer, client.post("/v1/chat/completions", asked, session));
  const Json& counts = answer["ebb"]["prompt"];
  arm.n_prompt += answer["usage"]["prompt_tokens"].get<std::int64_t>();
  arm.n_computed += answer["timings"]["prompt_n"].get<std::int64_t>();
  arm.n_approximate += counts["recalled_approximate"].get<std::int64_t>();
  const Json& content = answer["choices"][0]["message"]["content"];
  const bool is_said =
      content.is_string() && content.get_ref<const std::string&>().find(one.number) != std::string::npos;
  return is_said == one.is_said;
}

}  // namespace

Result<std::vector<EditArm>> ask_behind_edits(const AgentOptions& options) {
  EBB_ASSIGN_OR_RETURN(const auto client, ApiClient::open({.model = options.model,
                                                           .n_threads = options.n_threads,
                                                           .block_size = options.block_size,
                                                           .kv_budget_tokens = kBudgetTokens,
                                                           .policy = options.policy},
                                                          {.n_parallel = 1, .session = {.adopts = false}}, {}));
  SectionWriter files(client->vocabulary(), kEditSeed);
  std::vector<EditArm> arms(kEditArms.begin(), kEditArms.end());
  for (std::int32_t i = 0; i < options.n_questions; ++i) {
    for (std::size_t kind = 0; kind < kEditQuestions; ++kind) {
      EBB_ASSIGN_OR_RETURN(const EditCase one, make_case(files, static_cast<EditQuestion>(kind), options.n_section));
      for (std::size_t a = 0; a < arms.size(); ++a) {
        EBB_ASSIGN_OR_RETURN(const bool is_right, ask(*client, one, fmt::format("edit-{}-{}-{}", i, kind, a), arms[a]));
        arms[a].n_right[kind] += is_right ? 1 : 0;
      }
    }
    for (EditArm& arm : arms) ++arm.n_asked;
  }
  return arms;
}

}  // namespace ebb
