// PeerBench: a program of the family of llama.cpp's llama-bench (its own, ik_llama.cpp's, ...) as one more side of the speed bench.
//
// Each measurement is a process of its own, which loads the model again: only the speed that it reports itself counts. What it can do is
// read from its --help: decoding behind other tokens needs -d or -gp, prompts behind others -d. It knows no bench of ours.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ebb {

// One test, as ours are.
struct PeerAsk {
  std::filesystem::path model;
  bool is_prompt = true;      // else decoding
  std::int32_t n_tokens = 1;  // of the prompt, or decoded
  std::int32_t depth = 0;     // tokens before them
  std::int32_t n_threads = 1;
  std::int32_t n_ubatch = 512;
  std::string kv_type = "f16";
};

class PeerBench {
 public:
  // Of any of its processes; loading a large model takes a while.
  static constexpr double kMostMs = 1'800'000.0;

  // `given` is PROGRAM or NAME=PROGRAM. Reads its --help. What it prints goes to files in `folder`, which exists. kNotFound where there is no
  // such program; kUnsupported where its help does not speak of what is needed; kIo where it fails.
  static Result<PeerBench> open(std::string_view given, const std::filesystem::path& folder, double most_ms = kMostMs);

  [[nodiscard]] const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  [[nodiscard]] const std::filesystem::path& program() const { return program_; }
  // What it was built of: "3fb1a5c (build 4201)"; empty before the first measurement.
  [[nodiscard]] const std::string& build() const { return build_; }
  [[nodiscard]] bool can(const PeerAsk& ask) const;
  // Tokens per second, as it says. kIo where it ends with an error (its last line is told), takes too long or prints something else.
  Result<double> measure(const PeerAsk& ask);

 private:
  PeerBench(std::string name, std::filesystem::path program, const std::filesystem::path& folder, double most_ms);
  // What it prints to its standard output.
  Result<std::string> run(std::vector<std::string> arguments) const;
  Result<double> read_speed(std::string_view printed);

  std::string name_;
  std::filesystem::path program_;
  std::filesystem::path out_;
  std::filesystem::path err_;
  double most_ms_;
  bool has_depth_ = false;        // -d
  bool has_generate_at_ = false;  // -gp
  std::string build_;
};

// Names that differ: those that are there already get a number.
void make_names_differ(std::vector<PeerBench>& peers);

}  // namespace ebb
