// How a report on ceilings looks, and recall tasks as JSON: bench/recall_ceiling.h.
#include <nlohmann/json.hpp>

#include "bench/recall_ceiling.h"
#include "bench/report.h"
#include "bench/statistics.h"

namespace ebb {
namespace {

using Align = TextTable::Align;

bool in_one_row(const CeilingCase& a, const CeilingCase& b) {
  return a.kind == b.kind && a.haystack == b.haystack && a.near_twins == b.near_twins &&
         a.sparse_prompt == b.sparse_prompt;
}

const CeilingCase* find_case(const CeilingReport& report, const CeilingCase& like) {
  for (const CeilingCase& c : report.cases) {
    if (in_one_row(c, like) && c.paraphrased == like.paraphrased) return &c;
  }
  return nullptr;
}

std::string cell_of(const CeilingReport& report, const CeilingCase& like, std::int32_t n_tokens, bool paraphrased) {
  for (const CeilingCase& c : report.cases) {
    if (in_one_row(c, like) && c.n_tokens == n_tokens && c.paraphrased == paraphrased) return percent_text(c.share());
  }
  return "";
}

std::string haystack_name(const CeilingCase& of) {
  return of.kind == RecallKind::kKeyValue ? "" : std::string(name_of(of.haystack));
}

nlohmann::json case_json(const CeilingCase& of) {
  nlohmann::json misses = nlohmann::json::array();
  for (const CeilingMiss& miss : of.misses) {
    misses.push_back({{"relation", miss.relation},
                      {"fact", miss.fact},
                      {"question", miss.question},
                      {"wanted", miss.wanted},
                      {"said", miss.said}});
  }
  return {{"kind", name_of(of.kind)},    {"haystack", haystack_name(of)}, {"n_tokens", of.n_tokens},
          {"near_twins", of.near_twins}, {"paraphrased", of.paraphrased}, {"n_right", of.n_right},
          {"n_asked", of.n_asked},       {"misses", std::move(misses)},   {"sparse_prompt", of.sparse_prompt}};
}

// Ratios are to the first way of reading a context of this length.
std::string readings_text(const CeilingReport& report) {
  TextTable table({{"prompt", Align::kLeft}, {"tokens"}, {"n"}, {"seconds a context"}, {"x the first"}});
  for (const CeilingReading& reading : report.readings) {
    const auto first = std::ranges::find(report.readings, reading.n_tokens, &CeilingReading::n_tokens);
    const MedianInterval ratio = median_interval(paired_ratios(reading.seconds, first->seconds));
    table.add_row({reading.sparse_prompt, std::to_string(reading.n_tokens), std::to_string(reading.seconds.size()),
                   fmt::format("{:.3f}", median(reading.seconds)),
                   fmt::format("{:.2f} ({:.2f}-{:.2f})", ratio.median, ratio.low, ratio.high)});
  }
  return table.render();
}

}  // namespace

std::string ceiling_text(const CeilingReport& report) {
  std::vector<TextTable::Column> columns = {
      {"kind", Align::kLeft}, {"haystack", Align::kLeft}, {"twins", Align::kLeft}, {"prompt", Align::kLeft}, {"asked"}};
  for (const std::int32_t n_tokens : report.options.lengths) {
    columns.push_back({fmt::format("{}", n_tokens)});
    columns.push_back({"paraphrased"});
  }
  TextTable table(std::move(columns));
  for (const CeilingCase& c : report.cases) {
    // Its first length has the row for all.
    if (c.paraphrased || &c != find_case(report, c)) continue;
    std::vector<std::string> cells = {std::string(name_of(c.kind)), haystack_name(c), c.near_twins ? "yes" : "no",
                                      c.sparse_prompt, std::to_string(c.n_asked)};
    for (const std::int32_t n_tokens : report.options.lengths) {
      for (const bool paraphrased : {false, true}) cells.push_back(cell_of(report, c, n_tokens, paraphrased));
    }
    table.add_row(std::move(cells));
  }
  TextTable relations({{"told of", Align::kLeft}, {"asked", Align::kLeft}, {"prompt", Align::kLeft}, {"n"}, {"right"}});
  for (const CeilingRelation& r : report.relations) {
    relations.add_row({r.name, r.paraphrased ? "paraphrased" : "as told", r.sparse_prompt, std::to_string(r.n_asked),
                       percent_text(static_cast<double>(r.n_right) / r.n_asked)});
  }
  return fmt::format(
             "{}, right answers with everything hot, by tokens of the context; seed {}, split {}, language {}\n\n",
             report.model, report.options.task.seed, name_of(report.options.task.split),
             name_of(report.options.task.language)) +
         table.render() + "\n" + relations.render() + "\n" + readings_text(report);
}

Status write_ceiling_json(const std::filesystem::path& path, const CeilingReport& report) {
  nlohmann::json cases = nlohmann::json::array();
  for (const CeilingCase& c : report.cases) cases.push_back(case_json(c));
  nlohmann::json relations = nlohmann::json::array();
  for (const CeilingRelation& r : report.relations) {
    relations.push_back({{"name", r.name},
                         {"paraphrased", r.paraphrased},
                         {"sparse_prompt", r.sparse_prompt},
                         {"n_right", r.n_right},
                         {"n_asked", r.n_asked}});
  }
  nlohmann::json readings = nlohmann::json::array();
  for (const CeilingReading& reading : report.readings) {
    readings.push_back(
        {{"sparse_prompt", reading.sparse_prompt}, {"n_tokens", reading.n_tokens}, {"seconds", reading.seconds}});
  }
  const RecallTaskOptions& task = report.options.task;
  return write_json(path, {{"bench", "recall-tasks"},
                           {"machine", machine_json(read_machine())},
                           {"model", report.model},
                           {"split", name_of(task.split)},
                           {"language", name_of(task.language)},
                           {"n_tasks", task.n_tasks},
                           {"n_mentions", task.n_mentions},
                           {"seed", task.seed},
                           {"cases", std::move(cases)},
                           {"readings", std::move(readings)},
                           {"relations", std::move(relations)}});
}

std::string recall_tasks_json(const std::vector<RecallTask>& tasks) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const RecallTask& task : tasks) {
    nlohmann::ordered_json messages = nlohmann::ordered_json::array();
    for (const RecallMessage& message : task.messages)
      messages.push_back({{"text", message.text}, {"reply", message.reply}});
    nlohmann::ordered_json questions = nlohmann::ordered_json::array();
    for (const RecallQuestion& question : task.questions) {
      questions.push_back({{"text", question.text},
                           {"answer", question.answer},
                           {"relation", question.relation},
                           {"fact", question.fact},
                           {"paraphrased", question.is_paraphrased},
                           {"has_twin", question.has_twin},
                           {"position", question.position}});
    }
    list.push_back({{"kind", name_of(task.kind)},
                    {"split", name_of(task.split)},
                    {"language", name_of(task.language)},
                    {"haystack", name_of(task.haystack)},
                    {"seed", task.seed},
                    {"n_tokens", task.n_tokens},
                    {"questions", std::move(questions)},
                    {"messages", std::move(messages)}});
  }
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace ebb
