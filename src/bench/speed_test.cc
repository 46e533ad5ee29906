#include "bench/speed.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "bench/speed_model.h"
#include "bench/toy_bench.h"
#include "bench/toy_peak.h"
#include "model/random_model.h"

namespace ebb {
namespace {

class SpeedTest : public testing::Test {
 protected:
  SpeedTest() { std::filesystem::create_directories(folder_); }
  ~SpeedTest() override { std::filesystem::remove_all(folder_); }

  // A toy that takes milliseconds.
  SpeedOptions toy_options() {
    const std::filesystem::path path = folder_ / "toy.gguf";
    const Status status = write_random_model({}, path);
    EXPECT_TRUE(status.ok()) << status.message();
    SpeedOptions options;
    options.model = path;
    options.n_threads = 1;
    options.depths = {96, 0, 96};
    options.n_rounds = 2;
    options.peak_sizes = kToyPeak;
    options.n_prompt = 32;
    options.n_decode = 3;
    options.kv_type = RowType::kF32;
    return options;
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("ebb_speed_test_{}", getpid());
};

TEST_F(SpeedTest, measures_prompt_and_decode_once_at_each_depth) {
  const auto report = run_speed(toy_options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->models.size(), 1U);
  EXPECT_EQ(report->peak.read_gb_s.n, 8) << "two rounds of four lines";
  EXPECT_EQ(report->beaten.n_rounds % 2, 0);
  EXPECT_EQ(report->models[0].multiply_type, MultiplyType::kF32);
  const auto& lines = report->models[0].lines;
  ASSERT_EQ(lines.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(lines[i].test, i % 2 == 0 ? "prompt" : "decode");
    EXPECT_EQ(lines[i].depth, i < 2 ? 0 : 96);
    EXPECT_EQ(lines[i].ratio.n, 2);
    EXPECT_GT(lines[i].ebb.tokens_per_s.min, 0.0);
    EXPECT_GT(lines[i].llama.gb_per_s, 0.0);
    ASSERT_TRUE(lines[i].ebb.read_share);
    EXPECT_EQ(lines[i].ebb.read_share->share.n, 2) << "each round has a probe of its own";
    EXPECT_GT(lines[i].ebb.read_share->share.min, 0.0);
  }
}

TEST_F(SpeedTest, both_sides_compute_the_same_logits) {
  const auto report = run_speed(toy_options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  for (const SpeedLine& line : report->models[0].lines) {
    EXPECT_LT(line.logits_difference, 1e-2) << line.test << " at " << line.depth;
  }
}

TEST_F(SpeedTest, counts_the_bytes_that_a_token_reads) {
  const auto report = run_speed(toy_options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  const ModelSpeed& speed = report->models[0];
  // 2 layers, 2 KV heads of 16, K and V of 4 bytes.
  EXPECT_EQ(speed.kv_bytes_per_token, 2.0 * 2 * 16 * 2 * 4);
  // q, o, k, v, the feed-forward and its norms; the last norm and the output matrix.
  const std::int64_t per_layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64;
  EXPECT_EQ(speed.n_parameters, 2 * per_layer + 64 + 64 * 320);
  EXPECT_EQ(speed.weight_bytes, static_cast<std::size_t>(speed.n_parameters) * 4);
}

TEST_F(SpeedTest, progress_runs_from_nothing_to_all) {
  SpeedOptions options = toy_options();
  std::vector<double> shares;
  options.progress = [&shares](std::string_view, double share) { shares.push_back(share); };
  ASSERT_TRUE(run_speed(options).ok());
  ASSERT_FALSE(shares.empty());
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.front(), 0.0);
  EXPECT_DOUBLE_EQ(shares.back(), 1.0);
}

TEST_F(SpeedTest, writes_a_table_json_and_a_page) {
  const auto report = run_speed(toy_options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  const std::string text = speed_text(*report);
  for (const char* part : {"toy", "prompt 32", "decode 3", "ebb / libllama", "GB/s", "libllama 0."}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  ASSERT_TRUE(write_speed_json(folder_ / "speed.json", *report).ok());
  std::ifstream file(folder_ / "speed.json");
  const auto json = nlohmann::json::parse(file);
  EXPECT_EQ(json["models"][0]["lines"].size(), 4U);
  EXPECT_GT(json["models"][0]["lines"][3]["ratio"]["median"], 0.0);
  EXPECT_GT(json["machine"]["read_gb_per_s"]["median"], 0.0);
  EXPECT_GE(json["machine"]["drift"]["read"], 1.0);
  EXPECT_EQ(json["models"][0]["lines"][1]["ebb"]["share_of_read_bandwidth"]["n"], 2);
  ASSERT_TRUE(write_speed_html(folder_ / "speed.html", *report).ok());
  std::ostringstream page;
  page << std::ifstream(folder_ / "speed.html").rdbuf();
  for (const char* part : {"<svg", "tokens per second", "32 tokens behind 96", "libllama 0."}) {
    EXPECT_NE(page.str().find(part), std::string::npos) << part;
  }
}

TEST_F(SpeedTest, peers_join_each_round_that_counts_where_they_can_and_the_quickest_is_told) {
  SpeedOptions options = toy_options();
  const auto quick = write_toy_bench(folder_ / "quick", kToyBenchHelp, toy_bench_json(1e9));
  const auto slow =
      write_toy_bench(folder_ / "slow", std::string(kToyBenchHelp) + std::string(kToyDepthHelp), toy_bench_json(1e-3));
  options.peer_benches = {"quick one=" + quick.string(), slow.string()};
  const auto report = run_speed(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const ModelSpeed& speed = report->models[0];
  ASSERT_EQ(speed.peers.size(), 2U);
  EXPECT_EQ(speed.peers[0].build, "abc1234 (build 77)");
  for (const SpeedLine& line : speed.lines) {
    ASSERT_EQ(line.peers.size(), 2U);
    EXPECT_EQ(line.peers[0].has_value(), line.depth == 0) << "its help tells of no depth";
    ASSERT_TRUE(line.peers[1]);
    EXPECT_EQ(line.peers[1]->tokens_per_s.n, 2);
    EXPECT_NEAR(line.peers[1]->tokens_per_s.median, 1e-3, 1e-9);
    EXPECT_EQ(line.best_peer, line.depth == 0 ? "quick one" : "libllama");
    EXPECT_EQ(line.best_ratio.median < 1e-2, line.depth == 0);
  }
  EXPECT_GT(report->beaten.n_beaten, 0) << "nobody makes a billion tokens a second";
  const std::string text = speed_text(*report);
  for (const char* part : {"quick one tok/s", "ebb / best", "(quick one)", "commit abc1234 (build 77)",
                           "it has no flag for: prompt behind 96, decode behind 96", "did more than the probe"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
  ASSERT_TRUE(write_speed_json(folder_ / "speed.json", *report).ok());
  std::ifstream file(folder_ / "speed.json");
  const auto json = nlohmann::json::parse(file)["models"][0];
  EXPECT_EQ(json["peers"][1]["name"], "slow");
  EXPECT_EQ(json["lines"][0]["peers"].size(), 2U);
  EXPECT_EQ(json["lines"][3]["peers"].size(), 1U);
  ASSERT_TRUE(write_speed_html(folder_ / "speed.html", *report).ok());
}

TEST_F(SpeedTest, a_peer_that_fails_ends_the_run_in_its_own_words) {
  SpeedOptions options = toy_options();
  options.peer_benches = {write_toy_bench(folder_ / "bad", kToyBenchHelp, "echo 'out of luck' >&2; exit 2").string()};
  EXPECT_NE(run_speed(options).status().message().find("out of luck"), std::string::npos);
  options.peer_benches = {(folder_ / "nobody").string()};
  EXPECT_EQ(run_speed(options).status().code(), Code::kNotFound);
}

TEST_F(SpeedTest, refuses_what_cannot_be_measured) {
  SpeedOptions options = toy_options();
  options.depths = {-1};
  EXPECT_EQ(run_speed(options).status().code(), Code::kInvalidArgument);
  options = toy_options();
  options.n_rounds = 0;
  EXPECT_EQ(run_speed(options).status().code(), Code::kInvalidArgument);
  options = toy_options();
  options.model = folder_ / "missing.gguf";
  EXPECT_EQ(run_speed(options).status().code(), Code::kNotFound);
}

TEST_F(SpeedTest, the_model_of_the_bench_has_about_a_billion_parameters) {
  const auto spec = speed_model_spec({.quant = "q4_k"});
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  const double layer = 2.0 * spec->n_embd * spec->n_heads * spec->head_dim +
                       2.0 * spec->n_embd * spec->n_kv_heads * spec->head_dim + 3.0 * spec->n_embd * spec->n_ff;
  EXPECT_NEAR(layer * spec->n_layers + double{1} * spec->n_embd * spec->n_vocab, 1.04e9, 0.01e9);
  EXPECT_LT(spec->n_kv_heads, spec->n_heads);
}

TEST_F(SpeedTest, an_unknown_quantisation_is_refused_with_the_list_of_known_ones) {
  const auto spec = speed_model_spec({.quant = "q7_z"});
  EXPECT_EQ(spec.status().code(), Code::kInvalidArgument);
  EXPECT_NE(spec.status().message().find("q4_k"), std::string::npos);
}

TEST_F(SpeedTest, cores_that_others_keep_busy_are_told) {
  SpeedOptions options = toy_options();
  options.depths = {0};
  options.n_busy = 1;
  const auto report = run_speed(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_NE(speed_text(*report).find("Cores taken: 1 other program wanted a core"), std::string::npos);
  ASSERT_TRUE(write_speed_json(folder_ / "busy.json", *report).ok());
  std::ifstream file(folder_ / "busy.json");
  EXPECT_EQ(nlohmann::json::parse(file)["n_busy"], 1);
  options.n_busy = -1;
  EXPECT_EQ(run_speed(options).status().code(), Code::kInvalidArgument);
}

TEST_F(SpeedTest, shapes_have_the_parameters_of_their_names) {
  for (const auto& [shape, n_parameters] : {std::pair{"0.3b", 0.29e9}, {"1b", 1.04e9}, {"3b", 2.92e9}}) {
    const auto spec = speed_model_spec({.quant = "f16", .shape = shape});
    ASSERT_TRUE(spec.ok()) << spec.status().message();
    const double layer = 2.0 * spec->n_embd * spec->n_heads * spec->head_dim +
                         2.0 * spec->n_embd * spec->n_kv_heads * spec->head_dim + 3.0 * spec->n_embd * spec->n_ff;
    EXPECT_NEAR(layer * spec->n_layers + double{1} * spec->n_embd * spec->n_vocab, n_parameters, 0.01e9) << shape;
  }
  const auto unknown = speed_model_spec({.quant = "f16", .shape = "7b"});
  EXPECT_EQ(unknown.status().code(), Code::kInvalidArgument);
  EXPECT_NE(unknown.status().message().find("0.3b, 1b, 3b"), std::string::npos);
}

// As many layers as llama.cpp gives more bits, by its own rule: 2 and 2 of 16 at the ends, and 4 of the 12 between.
TEST_F(SpeedTest, mixes_have_the_types_that_are_published) {
  const auto n_of = [](const RandomModelSpec& spec, std::string_view part, ggml_type type) {
    return std::ranges::count_if(spec.tensor_types, [&](const auto& named) {
      return named.tensor.find(part) != std::string::npos && named.type == type;
    });
  };
  for (const char* quant : {"q4_k_m", "q5_k_m"}) {
    const auto spec = speed_model_spec({.quant = quant});
    ASSERT_TRUE(spec.ok()) << spec.status().message();
    EXPECT_EQ(n_of(*spec, "attn_v", GGML_TYPE_Q6_K), 8) << quant;
    EXPECT_EQ(n_of(*spec, "ffn_down", GGML_TYPE_Q6_K), 8) << quant;
    EXPECT_EQ(n_of(*spec, "token_embd", GGML_TYPE_Q6_K), 1) << quant;
    EXPECT_EQ(spec->tensor_types.size(), 17U) << quant;
  }
  const auto small = speed_model_spec({.quant = "q4_k_s"});
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(n_of(*small, "attn_v", GGML_TYPE_Q5_K), 4);
  EXPECT_EQ(n_of(*small, "ffn_down", GGML_TYPE_Q5_K), 2);
  EXPECT_TRUE(speed_model_spec({.quant = "q4_k"})->tensor_types.empty());
}

TEST_F(SpeedTest, each_quantisation_is_refused_before_any_model_is_written) {
  SpeedOptions options = toy_options();
  options.model.clear();
  options.cache_folder = folder_ / "cache";
  options.quants = {"q4_k", "q7_z"};
  EXPECT_EQ(run_speed(options).status().code(), Code::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(options.cache_folder));
}

TEST_F(SpeedTest, a_model_that_is_there_is_not_written_again) {
  const std::filesystem::path path = folder_ / "cache" / "model.gguf";
  ASSERT_TRUE(ensure_speed_model(path, {}).ok());
  const auto written = std::filesystem::last_write_time(path);
  ASSERT_TRUE(ensure_speed_model(path, {}).ok());
  EXPECT_EQ(std::filesystem::last_write_time(path), written);
  const std::filesystem::directory_iterator files(path.parent_path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

}  // namespace
}  // namespace ebb
