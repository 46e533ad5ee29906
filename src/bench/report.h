// Results on paper: text for people (tables: base/text_table.h), JSON files for programs.
//
// It knows no benchmark and measures nothing. Thread rule: one thread at a time.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/status.h"
#include "base/text_table.h"
#include "bench/machine.h"
#include "bench/peak.h"
#include "bench/statistics.h"

namespace ebb {

// "64.3 (61.0-65.2)"
[[nodiscard]] std::string spread_text(const Spread& spread, int n_decimals = 1);
// {"median": ..., "min": ..., "max": ..., "n": ...}
[[nodiscard]] nlohmann::json spread_json(const Spread& spread);
// "92 (88-95) %"
[[nodiscard]] std::string share_text(const Spread& share);
// "-" where there is no limit to hold anything against.
[[nodiscard]] std::string share_text(const std::optional<PeakShare>& share);
// What all figures of a run are held against, and how far it drifted meanwhile, in lines for people; says so when other programs were
// busy, and when passes did more than the probe beside them.
[[nodiscard]] std::string machine_text(const Machine& machine, const Peak& peak, const PeakBeaten& beaten = {});
[[nodiscard]] nlohmann::json machine_json(const Machine& machine, const Peak& peak, const PeakBeaten& beaten = {});
// For a bench that measures no peak.
[[nodiscard]] nlohmann::json machine_json(const Machine& machine);

// The file appears whole or not at all.
Status write_text(const std::filesystem::path& path, std::string_view text);
// Indented, with a newline at its end; whole or not at all.
Status write_json(const std::filesystem::path& path, const nlohmann::json& value);

}  // namespace ebb
