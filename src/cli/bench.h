// The benchmarks of `ebb bench`: each has a file that adds its subcommand, and is named in add_bench.
//
// Thread rule: the main thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/speed_model.h"
#include "cli/command.h"
#include "cli/terminal.h"

namespace ebb {

void add_bench_speed(CLI::App& bench, Action& action);
void add_bench_splice(CLI::App& bench, Action& action);
void add_bench_sparse(CLI::App& bench, Action& action);
void add_bench_fidelity(CLI::App& bench, Action& action);
void add_bench_wall(CLI::App& bench, Action& action);
void add_bench_concurrency(CLI::App& bench, Action& action);
void add_bench_gapfill(CLI::App& bench, Action& action);
void add_bench_baseline(CLI::App& bench, Action& action);
void add_bench_agent(CLI::App& bench, Action& action);
void add_bench_edits(CLI::App& bench, Action& action);
void add_bench_policies(CLI::App& bench, Action& action);
void add_bench_document(CLI::App& bench, Action& action);
void add_bench_recall_tasks(CLI::App& bench, Action& action);
void add_bench_evidence(CLI::App& bench, Action& action);
void add_bench_limit(CLI::App& bench, Action& action);
void add_bench_longbench(CLI::App& bench, Action& action);

// Flags that benches share the shape of; help shows the default, which is what `value` holds now.
struct CountRange {
  std::int32_t least = 0;
  std::int32_t most = 0;
};
void add_count_flag(CLI::App& command, const char* name, std::int32_t& value, CountRange range, const char* help);
void add_counts_flag(CLI::App& command, const char* name, std::vector<std::int32_t>& values, const char* help);
void add_kv_type_flag(CLI::App& command, std::string& value, const char* help);
void add_policy_flag(CLI::App& command, std::string& value);
// Of benches that measure the bundled model where no file is named.
void add_bundled_model_flag(CLI::App& command, std::string& model);

// Of benches that measure a random model of 1B parameters where no file is named; CLI11 keeps texts, not paths.
struct MeasuredModelFlags {
  std::string model;
  std::string cache_folder = default_cache_folder().string();

  template <class Options>
  void set(Options& options) const {
    options.model = model;
    options.cache_folder = cache_folder;
  }
};
void add_measured_model_flags(CLI::App& command, MeasuredModelFlags& flags, std::int32_t& n_threads);
// Where one random model is measured and not several.
void add_quant_flag(CLI::App& command, std::string& quant);
// A line for each of --quant and --shape that is given beside --model.
void note_unused_quant(const CLI::App& command);

// run(options), its progress shown meanwhile.
template <class Run, class Options>
auto run_shown(const Run& run, Options options) {
  ProgressBar bar(0.0);
  options.progress = [&bar](std::string_view what, double share) { bar.update(what, share); };
  auto report = run(options);
  bar.clear();
  return report;
}

// The most that is read of a data set; the largest of LongBench's has some 30 MB.
inline constexpr std::size_t kMostDataBytes = std::size_t{256} << 20;

// Where a bench writes its report beside the table.
struct ReportFlags {
  std::string json;
  std::string html;
};
void add_report_flags(CLI::App& command, ReportFlags& flags);

// Writes what was asked for: `json` and `html` take a path and write a report there.
template <class WriteJson, class WriteHtml>
ExitCode write_reports(const ReportFlags& flags, const WriteJson& json, const WriteHtml& html) {
  for (const Status& status :
       {flags.json.empty() ? Status() : json(flags.json), flags.html.empty() ? Status() : html(flags.html)}) {
    if (!status.ok()) return fail(status);
  }
  return ExitCode::kOk;
}

}  // namespace ebb
