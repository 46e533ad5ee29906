#include "bench/peer_bench.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "bench/toy_bench.h"

namespace ebb {
namespace {

using testing::HasSubstr;

class PeerBenchTest : public testing::Test {
 protected:
  PeerBenchTest() { std::filesystem::create_directories(folder_); }
  ~PeerBenchTest() override { std::filesystem::remove_all(folder_); }

  // The status of one measurement of a program that does that.
  Status status_of(std::string_view script, double most_ms = PeerBench::kMostMs) {
    const auto program = write_toy_bench(folder_ / "toy-bench", kToyBenchHelp, script);
    auto peer = PeerBench::open(program.string(), folder_, most_ms);
    if (!peer.ok()) return peer.status();
    return peer->measure({.model = "model.gguf"}).status();
  }

  // What the program was asked for so far.
  [[nodiscard]] std::vector<std::string> asked(const std::filesystem::path& program) const {
    std::vector<std::string> lines;
    std::ifstream file(program.string() + ".arguments");
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("ebb_peer_bench_test_{}", getpid());
};

TEST_F(PeerBenchTest, asks_for_one_test_and_takes_the_speed_that_is_said) {
  const auto program = write_toy_bench(folder_ / "toy-bench", kToyBenchHelp, toy_bench_json(42.5));
  auto peer = PeerBench::open(program.string(), folder_);
  ASSERT_TRUE(peer.ok()) << peer.status().message();
  EXPECT_EQ(peer->name(), "toy-bench");
  EXPECT_EQ(peer->build(), "");
  const auto prompt = peer->measure({.model = "m.gguf", .n_tokens = 64, .n_threads = 3, .n_ubatch = 64});
  ASSERT_TRUE(prompt.ok()) << prompt.status().message();
  EXPECT_EQ(*prompt, 42.5);
  EXPECT_EQ(peer->build(), "abc1234 (build 77)");
  ASSERT_TRUE(peer->measure({.model = "m.gguf", .is_prompt = false, .n_tokens = 8, .kv_type = "q8_0"}).ok());
  EXPECT_THAT(asked(program),
              testing::ElementsAre("-m m.gguf -t 3 -r 1 -o json -ub 64 -p 64 -n 0",
                                   "-m m.gguf -t 1 -r 1 -o json -ub 512 -p 0 -n 8 -ctk q8_0 -ctv q8_0"));
}

TEST_F(PeerBenchTest, goes_behind_other_tokens_where_its_help_tells_of_a_flag_for_it) {
  const PeerAsk prompt{.model = "m", .n_tokens = 4, .depth = 9};
  const PeerAsk decode{.model = "m", .is_prompt = false, .n_tokens = 4, .depth = 9};
  const auto without = write_toy_bench(folder_ / "without", kToyBenchHelp, toy_bench_json(1));
  auto peer = PeerBench::open(without.string(), folder_);
  ASSERT_TRUE(peer.ok());
  EXPECT_FALSE(peer->can(prompt) || peer->can(decode));
  EXPECT_EQ(peer->measure(decode).status().code(), Code::kUnsupported);

  const auto with =
      write_toy_bench(folder_ / "with", std::string(kToyBenchHelp) + std::string(kToyDepthHelp), toy_bench_json(1));
  peer = PeerBench::open(with.string(), folder_);
  ASSERT_TRUE(peer.ok());
  ASSERT_TRUE(peer->can(prompt) && peer->measure(decode).ok());
  EXPECT_THAT(asked(with).front(), HasSubstr("-p 0 -n 4 -d 9"));

  const auto at =
      write_toy_bench(folder_ / "at", std::string(kToyBenchHelp) + std::string(kToyGenerateAtHelp), toy_bench_json(1));
  peer = PeerBench::open(at.string(), folder_);
  ASSERT_TRUE(peer.ok());
  EXPECT_FALSE(peer->can(prompt));
  ASSERT_TRUE(peer->can(decode) && peer->measure(decode).ok());
  EXPECT_THAT(asked(at).front(), HasSubstr("-p 0 -n 0 -gp 9,4"));
}

TEST_F(PeerBenchTest, names_are_given_and_differ) {
  const auto program = write_toy_bench(folder_ / "toy-bench", kToyBenchHelp, "").string();
  std::vector<PeerBench> peers;
  for (const std::string& given : {"ik=" + program, program, program, "ebb=" + program}) {
    auto peer = PeerBench::open(given, folder_);
    ASSERT_TRUE(peer.ok()) << peer.status().message();
    peers.push_back(std::move(*peer));
  }
  make_names_differ(peers);
  std::vector<std::string> names;
  for (const PeerBench& peer : peers) names.push_back(peer.name());
  EXPECT_THAT(names, testing::ElementsAre("ik", "toy-bench", "toy-bench 2", "ebb 2"));
}

TEST_F(PeerBenchTest, a_program_that_is_not_there_is_named) {
  const auto peer = PeerBench::open((folder_ / "missing").string(), folder_);
  EXPECT_EQ(peer.status().code(), Code::kNotFound);
  EXPECT_THAT(peer.status().message(), HasSubstr("missing: no program"));
  EXPECT_EQ(PeerBench::open(folder_.string(), folder_).status().code(), Code::kNotFound) << "a folder";
}

TEST_F(PeerBenchTest, a_program_of_another_family_is_refused_by_its_help) {
  const auto other = write_toy_bench(folder_ / "other", "usage: other [-m FILE]\n  -m FILE\n", "");
  const auto peer = PeerBench::open(other.string(), folder_);
  EXPECT_EQ(peer.status().code(), Code::kUnsupported);
  EXPECT_THAT(peer.status().message(), HasSubstr("no -p"));
}

TEST_F(PeerBenchTest, an_error_is_told_with_the_last_line_that_was_said) {
  const Status status = status_of("echo loading >&2; echo 'no such model: m' >&2; exit 3");
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(status.message(), HasSubstr("ended with error 3: no such model: m"));
  EXPECT_THAT(status_of("exit 1").message(), HasSubstr("it says nothing"));
  EXPECT_THAT(status_of("kill -9 $$").message(), HasSubstr("ended with a signal"));
}

TEST_F(PeerBenchTest, what_is_no_speed_in_json_is_told) {
  EXPECT_THAT(status_of("echo '| model | t/s |'").message(), HasSubstr("it printed: | model | t/s |"));
  EXPECT_THAT(status_of("echo '[]'").message(), HasSubstr("one test as JSON"));
  EXPECT_THAT(status_of("echo '[{\"avg_ts\": \"fast\"}]'").message(), HasSubstr("no speed (avg_ts)"));
  EXPECT_THAT(status_of("echo '[{\"avg_ts\": 0}]'").message(), HasSubstr("no speed (avg_ts)"));
}

TEST_F(PeerBenchTest, a_program_that_does_not_end_is_ended) {
  const Status status = status_of("while true; do :; done", 1000.0);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(status.message(), HasSubstr("did not end within 1 s"));
}

}  // namespace
}  // namespace ebb
