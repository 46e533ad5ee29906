// How a report of recorded sessions looks: the tables, the JSON and the page of bench/agent_sessions.h.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "bench/agent_sessions.h"
#include "bench/report.h"
#include "bench/svg_plot.h"

namespace ebb {
namespace {

using Align = TextTable::Align;

constexpr double kMiddle = 0.5;
constexpr double kTail = 0.95;

constexpr std::string_view kHowToReadSessions =
    "first token: from the request until all of an answer of one token was there, in milliseconds; beside it how many "
    "times llama-server's that is, of\nrequests that both answered, and where that lies 19 times of 20. computed: "
    "tokens "
    "that went through the model, of all tokens of the prompts that\nwere answered. A request that was refused ends an "
    "agent's session.\n";

constexpr std::string_view kHowToReadFacts =
    "right: of all facts asked for, and where that share lies 19 times of 20; refused: what was not answered. Each is "
    "asked for behind the "
    "whole\nsession, nothing cleared, so that with memory for all of it a server says what the model can. of cleared: "
    "right ones of those whose\nresults were cleared on the way, of all of those.\n";

std::string ms_text(double ms) { return fmt::format("{:.0f}", ms); }

std::string ratio_text(const std::optional<QuantileRatio>& ratio) {
  return ratio ? fmt::format("{:.2f} ({:.2f}-{:.2f})", ratio->ratio, ratio->low, ratio->high) : "";
}

struct Sums {
  std::size_t n_answered = 0;
  std::int64_t n_prompt = 0;
  std::int64_t n_computed = 0;
};

Sums sums_of(const AgentMemory& memory, std::size_t contender) {
  Sums sums;
  for (const AskedRequest& asked : memory.asked) {
    const AgentAnswer& answer = asked.answers[contender];
    if (!answer.refusal.empty()) continue;
    ++sums.n_answered;
    sums.n_prompt += answer.n_prompt;
    sums.n_computed += answer.n_computed;
  }
  return sums;
}

TextTable table_of(const AgentSessionsReport& report) {
  TextTable table({{"KV memory", Align::kLeft},
                   {"server", Align::kLeft},
                   {"answered"},
                   {"first token p50"},
                   {"p95"},
                   {"max"},
                   {"p50, times"},
                   {"p95, times"},
                   {"computed"},
                   {"of"},
                   {"RAM at most"}});
  for (const AgentMemory& memory : report.memories) {
    for (std::size_t c = 0; c < report.contenders.size(); ++c) {
      const std::vector<double> times = times_of(memory, c);
      const bool is_peer = report.has_peer && c + 1 == report.contenders.size();
      const auto ratio = [&](double share) {
        return is_peer ? std::string() : ratio_text(report.ratio(memory, c, share));
      };
      const Sums sums = sums_of(memory, c);
      table.add_row({c == 0 ? fmt::format("{} tokens ({:g} of the longest prompt)", memory.n_tokens, memory.share) : "",
                     report.contenders[c], fmt::format("{} of {}", sums.n_answered, memory.asked.size()),
                     times.empty() ? "-" : ms_text(quantile(times, kMiddle)),
                     times.empty() ? "-" : ms_text(quantile(times, kTail)),
                     times.empty() ? "-" : ms_text(std::ranges::max(times)), ratio(kMiddle), ratio(kTail),
                     std::to_string(sums.n_computed), std::to_string(sums.n_prompt),
                     bytes_text(static_cast<double>(memory.peak_resident_bytes[c]))});
    }
    table.add_gap();
  }
  return table;
}

// The middle time of each event.
TextTable events_of(const AgentSessionsReport& report, const AgentMemory& memory) {
  std::vector<TextTable::Column> columns = {{"the request", Align::kLeft}, {"requests"}};
  for (const std::string& name : report.contenders) columns.push_back({name});
  TextTable table(std::move(columns));
  for (std::size_t e = 0; e < kAgentEvents; ++e) {
    const auto event = static_cast<AgentEvent>(e);
    const auto n = std::ranges::count(memory.asked, event, &AskedRequest::event);
    if (n == 0) continue;
    std::vector<std::string> row = {std::string(name_of(event)), std::to_string(n)};
    for (std::size_t c = 0; c < report.contenders.size(); ++c) {
      const std::vector<double> times = times_of(memory, c, event);
      row.push_back(times.empty() ? "refused" : ms_text(quantile(times, kMiddle)));
    }
    table.add_row(std::move(row));
  }
  return table;
}

std::string facts_right_text(const FactCounts& counts) {
  if (counts.n_asked == 0) return "-";
  const ShareInterval interval = share_interval(counts.n_right, counts.n_asked);
  return fmt::format("{} of {}: {:.0f} % ({:.0f}-{:.0f})", counts.n_right, counts.n_asked,
                     100.0 * counts.n_right / counts.n_asked, 100.0 * interval.low, 100.0 * interval.high);
}

TextTable facts_of(const AgentSessionsReport& report) {
  TextTable table({{"KV memory", Align::kLeft},
                   {"server", Align::kLeft},
                   {"facts right", Align::kLeft},
                   {"wrong"},
                   {"refused"},
                   {"of cleared"}});
  for (const AgentMemory& memory : report.memories) {
    for (std::size_t c = 0; c < report.contenders.size(); ++c) {
      const FactCounts all = count_facts(memory, c, CountedFacts::kAll);
      const FactCounts cleared = count_facts(memory, c, CountedFacts::kCleared);
      table.add_row({c == 0 ? fmt::format("{} tokens", memory.n_tokens) : "", report.contenders[c],
                     facts_right_text(all), std::to_string(all.n_asked - all.n_right - all.n_refused),
                     std::to_string(all.n_refused),
                     cleared.n_asked == 0 ? "-" : fmt::format("{} of {}", cleared.n_right, cleared.n_asked)});
    }
    table.add_gap();
  }
  return table;
}

bool asks_facts(const AgentSessionsReport& report) {
  return std::ranges::any_of(report.memories, [](const AgentMemory& memory) { return !memory.facts.empty(); });
}

// The first refusal of each contender, which says why.
std::string refusals_of(const AgentSessionsReport& report, const AgentMemory& memory) {
  std::string text;
  for (std::size_t c = 0; c < report.contenders.size(); ++c) {
    const auto refused =
        std::ranges::find_if(memory.asked, [c](const AskedRequest& a) { return !a.answers[c].refusal.empty(); });
    if (refused == memory.asked.end()) continue;
    text += fmt::format("{} refused {}'s prompt of {} tokens: {}\n", report.contenders[c], refused->session,
                        refused->n_tokens, refused->answers[c].refusal);
  }
  return text;
}

// The same messages may be other prompts to the peer, and then its times are those of other work.
std::string prompts_differ_text(const AgentSessionsReport& report) {
  if (!report.has_peer) return {};
  for (const AgentMemory& memory : report.memories) {
    for (const AskedRequest& asked : memory.asked) {
      const AgentAnswer& ours = asked.answers.front();
      const AgentAnswer& theirs = asked.answers.back();
      if (!ours.refusal.empty() || !theirs.refusal.empty() || ours.n_prompt == theirs.n_prompt) continue;
      return fmt::format(
          "\nThe servers read the same messages as other prompts ({}: {} tokens, {}: {}): ebb says what a template "
          "leaves out\n(tools, calls, results). With --chat-template-file, and one that shows all of them, they are "
          "equal.\n",
          report.contenders.front(), ours.n_prompt, report.contenders.back(), theirs.n_prompt);
    }
  }
  return {};
}

nlohmann::json counts_json(const AgentMemory& memory, std::size_t contender) {
  const FactCounts all = count_facts(memory, contender, CountedFacts::kAll);
  const FactCounts cleared = count_facts(memory, contender, CountedFacts::kCleared);
  const ShareInterval interval = share_interval(all.n_right, all.n_asked);
  return {{"n_asked", all.n_asked},     {"n_right", all.n_right},
          {"n_refused", all.n_refused}, {"low", interval.low},
          {"high", interval.high},      {"of_cleared", {{"n_asked", cleared.n_asked}, {"n_right", cleared.n_right}}}};
}

nlohmann::json facts_json(const AgentMemory& memory) {
  nlohmann::json facts = nlohmann::json::array();
  for (const AskedFact& asked : memory.facts) {
    nlohmann::json replies = nlohmann::json::array();
    for (const FactReply& reply : asked.replies) {
      replies.push_back({{"verdict", name_of(reply.verdict)}, {"text", reply.text}});
    }
    facts.push_back({{"session", asked.session},
                     {"fact", asked.fact.text},
                     {"question", asked.fact.question},
                     {"answer", asked.fact.answer},
                     {"place", asked.fact.place},
                     {"is_cleared", asked.fact.is_cleared},
                     {"n_tokens", asked.n_tokens},
                     {"replies", std::move(replies)}});
  }
  return facts;
}

nlohmann::json memory_json(const AgentSessionsReport& report, const AgentMemory& memory) {
  nlohmann::json contenders = nlohmann::json::array();
  for (std::size_t c = 0; c < report.contenders.size(); ++c) {
    nlohmann::json one = {{"name", report.contenders[c]}, {"peak_resident_bytes", memory.peak_resident_bytes[c]}};
    for (const auto& [name, share] : {std::pair("p50_times_the_peer", kMiddle), {"p95_times_the_peer", kTail}}) {
      const std::optional<QuantileRatio> ratio = report.ratio(memory, c, share);
      if (ratio) one[name] = {{"ratio", ratio->ratio}, {"low", ratio->low}, {"high", ratio->high}};
    }
    if (!memory.facts.empty()) one["facts"] = counts_json(memory, c);
    contenders.push_back(std::move(one));
  }
  nlohmann::json requests = nlohmann::json::array();
  for (const AskedRequest& asked : memory.asked) {
    nlohmann::json answers = nlohmann::json::array();
    for (const AgentAnswer& answer : asked.answers) {
      if (answer.refusal.empty()) {
        answers.push_back({{"ms", answer.ms}, {"n_prompt", answer.n_prompt}, {"n_computed", answer.n_computed}});
      } else {
        answers.push_back({{"refusal", answer.refusal}});
      }
    }
    requests.push_back({{"event", name_of(asked.event)},
                        {"session", asked.session},
                        {"n_tokens", asked.n_tokens},
                        {"answers", std::move(answers)}});
  }
  return {{"share", memory.share},
          {"n_tokens", memory.n_tokens},
          {"contenders", std::move(contenders)},
          {"requests", std::move(requests)},
          {"facts", facts_json(memory)}};
}

LinePlot plot_of(const AgentSessionsReport& report, const AgentMemory& memory) {
  LinePlot plot{.title = fmt::format("Time to the first token, {} tokens of KV", memory.n_tokens),
                .x = {.label = "tokens of the prompt"},
                .y = {.label = "ms", .is_log = true}};
  for (std::size_t c = 0; c < report.contenders.size(); ++c) {
    LinePlot::Series series{.name = report.contenders[c]};
    for (const AskedRequest& asked : memory.asked) {
      const AgentAnswer& answer = asked.answers[c];
      if (!answer.refusal.empty()) continue;
      series.points.push_back(
          {.x = static_cast<double>(asked.n_tokens), .y = answer.ms, .low = answer.ms, .high = answer.ms});
    }
    std::ranges::stable_sort(series.points, {}, &PlotPoint::x);
    plot.series.push_back(std::move(series));
  }
  return plot;
}

LinePlot facts_plot(const AgentSessionsReport& report) {
  LinePlot plot{.title = "Facts asked for when the session is over",
                .x = {.label = "KV memory, share of the longest prompt"},
                .y = {.label = "right, %"}};
  for (std::size_t c = 0; c < report.contenders.size(); ++c) {
    LinePlot::Series series{.name = report.contenders[c]};
    for (const AgentMemory& memory : report.memories) {
      const FactCounts counts = count_facts(memory, c, CountedFacts::kAll);
      if (counts.n_asked == 0) continue;
      const ShareInterval interval = share_interval(counts.n_right, counts.n_asked);
      series.points.push_back({.x = memory.share,
                               .y = 100.0 * counts.n_right / counts.n_asked,
                               .low = 100.0 * interval.low,
                               .high = 100.0 * interval.high});
    }
    std::ranges::stable_sort(series.points, {}, &PlotPoint::x);
    plot.series.push_back(std::move(series));
  }
  return plot;
}

}  // namespace

std::string agent_sessions_text(const AgentSessionsReport& report) {
  std::string text = fmt::format("{}, recorded sessions: {}\n\n", report.model, report.n_sessions);
  text += table_of(report).render();
  for (const AgentMemory& memory : report.memories) {
    text += fmt::format("\nby what happened, {} tokens of KV, p50 in ms\n{}{}", memory.n_tokens,
                        events_of(report, memory).render(), refusals_of(report, memory));
  }
  if (asks_facts(report)) text += "\nfacts asked for when a session is over\n" + facts_of(report).render();
  text += prompts_differ_text(report);
  text += "\n" + std::string(kHowToReadSessions);
  return asks_facts(report) ? text + std::string(kHowToReadFacts) : text;
}

Status write_agent_sessions_json(const std::filesystem::path& path, const AgentSessionsReport& report) {
  nlohmann::json memories = nlohmann::json::array();
  for (const AgentMemory& memory : report.memories) memories.push_back(memory_json(report, memory));
  return write_json(path, {{"bench", "agent"},
                           {"machine", machine_json(read_machine())},
                           {"model", report.model},
                           {"n_threads", report.n_threads},
                           {"n_sessions", report.n_sessions},
                           {"contenders", report.contenders},
                           {"memories", std::move(memories)}});
}

Status write_agent_sessions_html(const std::filesystem::path& path, const AgentSessionsReport& report) {
  HtmlPage page("ebb bench agent: recorded sessions, ebb beside llama-server");
  for (const AgentMemory& memory : report.memories) page.add_plot(plot_of(report, memory));
  if (asks_facts(report)) page.add_plot(facts_plot(report));
  page.add_preformatted(agent_sessions_text(report));
  return page.write(path);
}

}  // namespace ebb
