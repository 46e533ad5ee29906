// A report on documents for programs: bench/document.h.
#include <array>

#include <nlohmann/json.hpp>

#include "bench/document_beside.h"
#include "bench/report.h"
#include "bench/statistics.h"
#include "server/recall_json.h"

namespace ebb {
namespace {

nlohmann::json arm_json(const DocumentArm& arm) {
  nlohmann::json factors = nlohmann::json::object();
  for (const auto& [factor, level] : arm.factors) factors[factor] = level;
  constexpr std::array kRemains = {"nothing", "tokens", "bytes"};
  const bool selects = arm.recall == ArmRecall::kSelected;
  return {{"name", arm.name()},
          {"policy", arm.policy},
          {"recalls", arm.recall != ArmRecall::kNothing},
          {"selectors", selects                            ? arm.selectors.text()
                        : arm.recall == ArmRecall::kOracle ? "what is needed"
                                                           : "none"},
          {"remains", kRemains[static_cast<std::size_t>(arm.remains)]},
          {"place", name_of(arm.place)},
          {"ram_blocks", arm.n_ram_blocks},
          {"most_recalled_blocks", arm.n_recalled},
          {"block_size", arm.block_size},
          {"watermarks", {arm.watermarks.low, arm.watermarks.high}},
          {"recent_share", arm.recent_share},
          {"behind_the_question", arm.is_late},
          {"factors", std::move(factors)}};
}

nlohmann::json factors_json(const DocumentReport& report) {
  nlohmann::json all = nlohmann::json::array();
  for (const FactorRow& row : factor_rows(report)) {
    const FactorLevel& level = row.level;
    all.push_back({{"kind", row.like->kind},
                   {"tokens", row.like->n_tokens},
                   {"question", name_of(row.like->place)},
                   {"part", row.hot.part},
                   {"budget_tokens", row.hot.n_tokens},
                   {"factor", level.level.first},
                   {"level", level.level.second},
                   {"right", level.right}});
    if (const auto& off = level.beside_first) {
      all.back()["beside_first"] = {{"mean", off->mean}, {"low", off->low}, {"high", off->high}};
    }
  }
  return all;
}

nlohmann::json cell_json(const DocumentReport& report, const DocumentCell& cell) {
  const ShareInterval interval = score_interval(cell.right);
  nlohmann::json json = {{"kind", cell.kind},
                         {"tokens", cell.n_tokens},
                         {"question", name_of(cell.place)},
                         {"arm", cell.arm},
                         {"part", cell.hot.part},
                         {"budget_tokens", cell.hot.n_tokens},
                         {"block_size", cell.block_size},
                         {"paraphrased", cell.paraphrased},
                         {"n", cell.right.size()},
                         {"right", mean_of(cell.right)},
                         {"low", interval.low},
                         {"high", interval.high},
                         {"by_question", cell.right},
                         {"recalled_blocks", cell.n_recalled},
                         {"ms", median(cell.ms)}};
  if (!cell.found.empty()) json["found"] = mean_of(cell.found);
  for (const auto& [group, right] : by_group(cell)) {
    const ShareInterval of_group = score_interval(right);
    json["groups"].push_back({{"name", group},
                              {"n", right.size()},
                              {"right", mean_of(right)},
                              {"low", of_group.low},
                              {"high", of_group.high}});
  }
  const auto put = [&](const char* name, const char* of, double value, double low, double high) {
    json[name] = {{of, value}, {"low", low}, {"high", high}};
  };
  if (const DocumentCell* const most = find_ceiling(report, cell); most != nullptr && most != &cell) {
    const PairedDifference off = paired_difference(cell.right, most->right);
    put("beside_never_evicting", "mean", off.mean, off.low, off.high);
    if (const std::optional<PairedShare> share = paired_share(cell.right, most->right)) {
      put("of_never_evicting", "share", share->share, share->low, share->high);
    }
  }
  if (const DocumentCell* const oracle = find_oracle(report, cell); oracle != nullptr && !cell.hot.is_all()) {
    const PairedDifference off = paired_difference(cell.right, oracle->right);
    put("beside_oracle", "mean", off.mean, off.low, off.high);
  }
  const auto put_difference = [&](const char* name, const DocumentCell* other) {
    if (other == nullptr) return;
    const PairedDifference off = paired_difference(cell.right, other->right);
    put(name, "mean", off.mean, off.low, off.high);
    json[name]["same_answers"] = n_same_answers(cell, *other);
  };
  put_difference("beside_ours", find_against(report, cell));
  put_difference("beside_recomputed", find_recomputed(report, cell));
  put_difference("beside_ram", find_in_ram(report, cell));
  json["misses"] = nlohmann::json::array();
  for (const DocumentMiss& miss : cell.misses) {
    json["misses"].push_back({{"question", miss.question},
                              {"wanted", miss.wanted},
                              {"said", miss.said},
                              {"needed", miss.needed},
                              {"looks", recall_json(miss.looks, true)}});
  }
  return json;
}

}  // namespace

Status write_document_json(const std::filesystem::path& path, const DocumentReport& report) {
  nlohmann::json cells = nlohmann::json::array();
  for (const DocumentCell& cell : report.cells) cells.push_back(cell_json(report, cell));
  nlohmann::json arms = nlohmann::json::array();
  for (const DocumentArm& arm : report.arms) arms.push_back(arm_json(arm));
  const DocumentOptions& options = report.options;
  const RecallTaskOptions& task = options.cases.task;
  return write_json(path, {{"bench", "document"},
                           {"machine", machine_json(read_machine())},
                           {"model", report.model},
                           {"n_ctx_train", report.n_ctx_train},
                           {"request_tokens", report.n_request_tokens},
                           {"most_recalled_blocks", options.n_recalled_blocks.value_or(0)},
                           {"split", name_of(task.split)},
                           {"haystack", options.cases.haystack ? name_of(*options.cases.haystack) : "each kind's own"},
                           {"paraphrased", task.paraphrased},
                           {"near_twins", task.near_twins},
                           {"n_mentions", task.n_mentions},
                           {"seed", task.seed},
                           {"arms", std::move(arms)},
                           {"against", report.against},
                           {"factors", factors_json(report)},
                           {"cells", std::move(cells)}});
}

}  // namespace ebb
