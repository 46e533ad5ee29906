#include "bench/peer_bench.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "bench/child_process.h"

namespace ebb {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The last one that says something.
std::string last_line(std::string_view text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return "it says nothing";
  text = text.substr(0, end + 1);
  const std::size_t begin = text.rfind('\n');
  return std::string(begin == std::string_view::npos ? text : text.substr(begin + 1));
}

// Whether a help has a line that begins with that flag.
bool tells_flag(std::string_view help, std::string_view flag) {
  for (std::size_t at = help.find(flag); at != std::string_view::npos; at = help.find(flag, at + 1)) {
    const std::size_t line = help.substr(0, at).rfind('\n') + 1;  // 0 where there is none
    const std::string_view before = help.substr(line, at - line);
    const std::string_view behind = help.substr(at + flag.size());
    const bool begins = before.find_first_not_of(' ') == std::string_view::npos;
    if (begins && (behind.empty() || behind.front() == ' ' || behind.front() == ',')) return true;
  }
  return false;
}

// A name before the program, where what stands before the first '=' is no path itself.
std::pair<std::string, std::filesystem::path> split_name(std::string_view given) {
  const std::size_t equals = given.find('=');
  if (equals != std::string_view::npos && equals > 0 && given.substr(0, equals).find('/') == std::string_view::npos) {
    return {std::string(given.substr(0, equals)), std::filesystem::path(given.substr(equals + 1))};
  }
  return {std::filesystem::path(given).filename().string(), std::filesystem::path(given)};
}

// A number or a text, whichever its version writes.
std::string text_of(const nlohmann::json& test, const char* key) {
  const auto found = test.find(key);
  if (found == test.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

}  // namespace

PeerBench::PeerBench(std::string name, std::filesystem::path program, const std::filesystem::path& folder,
                     double most_ms)
    : name_(std::move(name)),
      program_(std::move(program)),
      out_(folder / "peer-bench.out"),
      err_(folder / "peer-bench.err"),
      most_ms_(most_ms) {}

Result<PeerBench> PeerBench::open(std::string_view given, const std::filesystem::path& folder, double most_ms) {
  auto [name, program] = split_name(given);
  PeerBench peer(std::move(name), std::move(program), folder, most_ms);
  EBB_ASSIGN_OR_RETURN(const std::string help, peer.run({"--help"}));
  for (const std::string_view flag : {"-m", "-p", "-n", "-t", "-r", "-o"}) {
    if (tells_flag(help, flag)) continue;
    return error(Code::kUnsupported, "{}: its --help tells of no {}; a llama-bench is wanted", peer.program_.string(),
                 flag);
  }
  peer.has_depth_ = tells_flag(help, "-d");
  peer.has_generate_at_ = tells_flag(help, "-gp");
  return peer;
}

bool PeerBench::can(const PeerAsk& ask) const {
  return ask.depth == 0 || has_depth_ || (has_generate_at_ && !ask.is_prompt);
}

Result<double> PeerBench::measure(const PeerAsk& ask) {
  if (!can(ask)) return error(Code::kUnsupported, "{} has no flag for a depth of {}", program_.string(), ask.depth);
  const std::string n_tokens = std::to_string(ask.n_tokens);
  const bool generates_at = ask.depth > 0 && !has_depth_;
  std::vector<std::string> arguments = {
      "-m",  ask.model.string(),          "-t", std::to_string(ask.n_threads), "-r", "1", "-o", "json",
      "-ub", std::to_string(ask.n_ubatch)};
  const auto add = [&arguments](std::string flag, std::string value) {
    arguments.push_back(std::move(flag));
    arguments.push_back(std::move(value));
  };
  add("-p", ask.is_prompt ? n_tokens : "0");
  add("-n", ask.is_prompt || generates_at ? "0" : n_tokens);
  if (generates_at) add("-gp", fmt::format("{},{}", ask.depth, n_tokens));
  if (ask.depth > 0 && has_depth_) add("-d", std::to_string(ask.depth));
  // Its own default otherwise.
  if (ask.kv_type != "f16") {
    add("-ctk", ask.kv_type);
    add("-ctv", ask.kv_type);
  }
  EBB_ASSIGN_OR_RETURN(const std::string printed, run(std::move(arguments)));
  return read_speed(printed);
}

Result<std::string> PeerBench::run(std::vector<std::string> arguments) const {
  EBB_ASSIGN_OR_RETURN(
      ChildProcess child,
      ChildProcess::start({.path = program_, .arguments = std::move(arguments), .out = out_, .err = err_}));
  const Result<int> ended = child.wait(most_ms_);
  if (!ended.ok()) return error(Code::kIo, "{}: {}", program_.string(), ended.status().message());
  if (*ended == 0) return read_file(out_);
  const std::string how = *ended < 0 ? "a signal" : fmt::format("error {}", *ended);
  return error(Code::kIo, "{} ended with {}: {}", program_.string(), how, last_line(read_file(err_)));
}

Result<double> PeerBench::read_speed(std::string_view printed) {
  const nlohmann::json tests = nlohmann::json::parse(printed, nullptr, false);
  if (!tests.is_array() || tests.size() != 1 || !tests[0].is_object()) {
    return error(Code::kIo, "{}: one test as JSON was wanted (-o json); it printed: {}", program_.string(),
                 last_line(printed).substr(0, 200));
  }
  const nlohmann::json& test = tests[0];
  const auto speed = test.find("avg_ts");
  if (speed == test.end() || !speed->is_number() || !(speed->get<double>() > 0.0)) {
    return error(Code::kIo, "{}: its JSON tells of no speed (avg_ts)", program_.string());
  }
  build_ = fmt::format("{} (build {})", text_of(test, "build_commit"), text_of(test, "build_number"));
  return speed->get<double>();
}

void make_names_differ(std::vector<PeerBench>& peers) {
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const auto is_taken = [&](const std::string& name) {
      return name == "ebb" || name == "libllama" ||
             std::any_of(peers.begin(), peers.begin() + static_cast<std::ptrdiff_t>(i),
                         [&](const PeerBench& other) { return other.name() == name; });
    };
    const std::string name = peers[i].name();
    for (int n = 2; is_taken(peers[i].name()); ++n) peers[i].set_name(fmt::format("{} {}", name, n));
  }
}

}  // namespace ebb
