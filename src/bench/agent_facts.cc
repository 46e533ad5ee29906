#include "bench/agent_facts.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "base/hash.h"
#include "bench/api_client.h"
#include "bench/recall_names.h"
#include "bench/recall_relations.h"

namespace ebb {
namespace {

// Subjects tried until one has a twin.
constexpr int kSubjectTries = 64;

void collect_text(const Json& json, std::string& text) {
  if (json.is_string()) text += json.get_ref<const std::string&>() + "\n";
  if (!json.is_structured()) return;
  for (const Json& one : json) collect_text(one, text);
}

// A line, and the letter of the session's text behind which it is told.
struct PlacedLine {
  std::string text;
  std::size_t at = 0;
  std::int32_t fact = -1;  // a twin's: none
};

struct DrawnFact {
  AgentFact fact;
  std::string twin;
};

class FactTeller {
 public:
  FactTeller(const RecordedSession& session, std::int32_t index, const AgentFactOptions& options)
      : FactTeller(session, options,
                   hash_words({options.seed, static_cast<std::uint64_t>(options.split),
                               static_cast<std::uint64_t>(index), 0x6661637473})
                       .low) {}

  Result<ToldSession> tell() {
    if (options_.n_facts == 0 || n_requests(told_.session) == 0) return std::move(told_);
    const std::size_t n_letters = count_letters();
    if (n_letters == 0) {
      return error(Code::kInvalidArgument, "{}: no user message and no tool's result to tell facts in",
                   told_.session.id);
    }
    const auto at_share = [&](double share) {
      return static_cast<std::size_t>(share * static_cast<double>(n_letters));
    };
    for (std::int32_t i = 0; i < options_.n_facts; ++i) {
      EBB_ASSIGN_OR_RETURN(DrawnFact drawn, draw_fact());
      drawn.fact.place = (i + 0.5) / options_.n_facts;
      lines_.push_back({.text = drawn.fact.text, .at = at_share(drawn.fact.place), .fact = i});
      lines_.push_back({.text = std::move(drawn.twin), .at = at_share(share())});
      told_.facts.push_back(std::move(drawn.fact));
    }
    write_lines();
    return std::move(told_);
  }

 private:
  FactTeller(const RecordedSession& session, const AgentFactOptions& options, std::uint64_t seed)
      : options_(options), names_(options.split, seed), random_(seed ^ 0x74656C6CU), told_{.session = session} {
    collect_text(session.messages, said_);
    for (const Relation& relation : relations(options.language)) {
      if (!relation.is_hard) relations_.push_back(&relation);
    }
  }

  double share() { return static_cast<double>(random_() >> 11U) * 0x1p-53; }

  // Nothing that the session says anyway.
  std::optional<std::string> draw_name(NameKind kind) {
    while (true) {
      std::optional<std::string> name = names_.draw(kind);
      if (!name || find_word(said_, *name) == std::string::npos) return name;
    }
  }

  // Of a relation that has names left: some kinds have few.
  Result<DrawnFact> draw_fact() {
    while (!relations_.empty()) {
      const auto at = relations_.begin() + static_cast<std::ptrdiff_t>(random_() % relations_.size());
      std::optional<DrawnFact> fact = draw_fact_of(**at);
      if (fact) return *std::move(fact);
      relations_.erase(at);
    }
    return error(Code::kInvalidArgument, "there are no names left for {} facts of a session; ask for fewer",
                 options_.n_facts);
  }

  std::optional<DrawnFact> draw_fact_of(const Relation& relation) {
    const Wording& wording = relation.wordings[0];
    const char* const statement = wording.statements[random_() % wording.statements.size()];
    const char* const question = wording.questions[random_() % wording.questions.size()];
    for (int i = 0; i < kSubjectTries; ++i) {
      const std::optional<std::string> subject = draw_name(relation.subject);
      if (!subject) return std::nullopt;
      const std::optional<std::string> twin = names_.draw_twin(relation.subject, *subject);
      if (!twin || find_word(said_, *twin) != std::string::npos) continue;
      const std::optional<std::string> value = draw_name(relation.value);
      const std::optional<std::string> other = draw_name(relation.value);
      if (!value || !other) return std::nullopt;
      told_.values.insert(told_.values.end(), {*value, *other});
      return DrawnFact{.fact = {.text = fill_sentence(statement, relation, *subject, *value),
                                .question = fill_sentence(question, relation, *subject),
                                .answer = *value},
                       .twin = fill_sentence(statement, relation, *twin, *other)};
    }
    return std::nullopt;
  }

  // Of the messages that facts may be told in; replies are the model's own, and thinking is dropped by some templates.
  template <class Visit>
  void visit_texts(const Visit& visit) {
    Json& messages = told_.session.messages;
    const std::size_t n = messages_of_request(told_.session, n_requests(told_.session) - 1).size();
    for (std::size_t i = 0; i < n; ++i) {
      const Json& role = messages[i]["role"];
      if ((role == "user" || role == "tool") && messages[i]["content"].is_string()) {
        visit(i, messages[i]["content"].get_ref<std::string&>());
      }
    }
  }

  std::size_t count_letters() {
    std::size_t n = 0;
    visit_texts([&](std::size_t, const std::string& text) { n += text.size(); });
    return n;
  }

  // Each where the next line begins.
  void write_lines() {
    std::ranges::stable_sort(lines_, {}, &PlacedLine::at);
    auto next = lines_.begin();
    std::size_t begin = 0;
    visit_texts([&](std::size_t message, std::string& text) {
      const std::size_t end = begin + text.size();
      const std::string before = std::exchange(text, "");
      std::size_t from = 0;
      for (; next != lines_.end() && next->at < end; ++next) {
        const std::size_t line_end = before.find('\n', std::max(from, next->at - begin));
        const std::size_t to = line_end == std::string::npos ? before.size() : line_end + 1;
        text += before.substr(from, to - from);
        if (!text.empty() && text.back() != '\n') text += '\n';
        text += next->text + "\n";
        from = to;
        if (next->fact < 0) continue;
        told_.facts[static_cast<std::size_t>(next->fact)].is_cleared = is_cleared_on_the_way(told_.session, message);
      }
      text += before.substr(from);
      begin = end;
    });
  }

  AgentFactOptions options_;
  NameSource names_;
  std::mt19937_64 random_;
  ToldSession told_;
  std::string said_;  // all texts of the session
  std::vector<const Relation*> relations_;
  std::vector<PlacedLine> lines_;
};

}  // namespace

Result<ToldSession> tell_facts(const RecordedSession& session, std::int32_t index, const AgentFactOptions& options) {
  return FactTeller(session, index, options).tell();
}

Json messages_of_question(const ToldSession& told, const AgentFact& fact) {
  Json messages = messages_of_request(told.session, n_requests(told.session) - 1);
  messages.push_back(make_message("user", fact.question));
  return messages;
}

bool is_right(std::string_view reply, const ToldSession& told, const AgentFact& fact) {
  return says_first(reply, fact.answer, told.values);
}

}  // namespace ebb
