// For tests of what runs a llama-bench: a script that says what one would, or whatever else it is to say.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace ebb {

// What --help of llama.cpp's says, as far as it is looked at; and of ik_llama.cpp's, which has other flags for depths.
inline constexpr std::string_view kToyBenchHelp =
    "usage: llama-bench [options]\n  -m, --model <f>\n  -p, --n-prompt <n>\n  -n, --n-gen <n>\n  -t, --threads <n>\n"
    "  -r, --repetitions <n>\n  -o, --output <f>\n";
inline constexpr std::string_view kToyDepthHelp = "  -d, --n-depth <n>\n";
inline constexpr std::string_view kToyGenerateAtHelp = "  -gp <pp,tg>  (default: 0)\n";

// A program that prints `help` where it is asked for it, else does `script` (of sh). It writes its arguments down in PATH.arguments, a line
// for each time that it runs.
inline std::filesystem::path write_toy_bench(const std::filesystem::path& path, std::string_view help,
                                             std::string_view script) {
  std::ofstream file(path);
  file << "#!/bin/sh\nif [ \"$1\" = --help ]; then cat << 'END'\n"
       << help << "END\nexit 0; fi\necho \"$@\" >> \"$0.arguments\"\n"
       << script << "\n";
  file.close();
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

// What it prints of one test.
inline std::string toy_bench_json(double tokens_per_s) {
  return "cat << 'END'\n[\n  {\"build_commit\": \"abc1234\", \"build_number\": 77, \"avg_ts\": " +
         std::to_string(tokens_per_s) + "}\n]\nEND\n";
}

}  // namespace ebb
