// The built program, as people and scripts meet it.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/random_model.h"
#include "tests/files.h"
#include "tests/program.h"
#include "text/utf8_stream.h"
#include "text/vocabulary.h"

namespace ebb {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class CliTest : public testing::Test {
 protected:
  std::string toy(const RandomModelSpec& spec = {}) {
    const Status status = write_random_model(spec, file_.path());
    EXPECT_TRUE(status.ok()) << status.message();
    return file_.path().string();
  }

  // Flags that keep the toy from ending its reply.
  static std::vector<std::string> forbid_end(const std::string& model) {
    std::vector<std::string> flags;
    const auto vocabulary = Vocabulary::load(model);
    EXPECT_TRUE(vocabulary.ok()) << vocabulary.status().message();
    for (std::int32_t id = 0; id < (*vocabulary)->n_tokens(); ++id) {
      if (!(*vocabulary)->is_end_of_generation(Token(id))) continue;
      flags.emplace_back("-l");
      flags.push_back(std::to_string(id) + "-inf");
    }
    return flags;
  }

  const TemporaryFile file_{".gguf"};
};

TEST_F(CliTest, help_names_the_commands_and_the_exit_codes) {
  const ProgramResult result = run_ebb({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* word : {"run", "chat", "key", "inspect", "apply-template", "parse-reply", "policy", "bench", "demo",
                           "Exit codes", "130"}) {
    EXPECT_THAT(result.out, HasSubstr(word));
  }
  EXPECT_THAT(result.err, IsEmpty());
}

TEST_F(CliTest, recall_by_an_embedding_model_that_is_not_given_is_an_error_that_says_what_to_do) {
  const std::string model = toy();
  for (const char* command : {"run", "explain", "serve", "chat"}) {
    std::vector<std::string> arguments = {command, "-m", model, "--selectors", "lexical+embedding"};
    const std::string_view name = command;
    if (name == "run" || name == "explain") arguments.insert(arguments.end(), {"--raw", "-p", "hello"});
    const ProgramResult result = run_ebb(arguments);
    EXPECT_EQ(result.exit_code, 2) << command;
    EXPECT_THAT(result.err, HasSubstr("--embedding-model FILE")) << command;
  }
  const ProgramResult gone =
      run_ebb({"run", "-m", model, "--embedding-model", "/nowhere.gguf", "--raw", "-p", "hello"});
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_THAT(gone.err, HasSubstr("/nowhere.gguf"));
}

TEST_F(CliTest, a_prompt_longer_than_the_context_is_an_error_that_says_so) {
  const std::string model = toy({.n_ctx_train = 300});
  const ProgramResult result = run_ebb({"run", "-m", model, "--no-rebase", "--raw", "-p", std::string(400, 'y')});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("trained for 300"));
}

TEST_F(CliTest, a_reply_that_fills_the_context_ends_with_a_reason) {
  const std::string model = toy({.n_ctx_train = 300});
  std::vector<std::string> arguments = {"run", "-m", model, "--no-rebase", "--raw", "-p", std::string(290, 'y'),
                                        "-n",  "100"};
  for (const std::string& flag : forbid_end(model)) arguments.push_back(flag);
  const ProgramResult result = run_ebb(arguments);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("the reply ends here"));
}

TEST_F(CliTest, every_command_explains_its_flags) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{{"run", "--help"},
                                                                                       {"chat", "--help"},
                                                                                       {"inspect", "--help"},
                                                                                       {"apply-template", "--help"},
                                                                                       {"key", "--help"},
                                                                                       {"bench", "--help"},
                                                                                       {"bench", "speed", "--help"},
                                                                                       {"bench", "splice", "--help"},
                                                                                       {"bench", "sparse", "--help"},
                                                                                       {"bench", "fidelity", "--help"},
                                                                                       {"bench", "wall", "--help"}}) {
    const ProgramResult result = run_ebb(command);
    EXPECT_EQ(result.exit_code, 0) << command[0];
    EXPECT_THAT(result.out, AllOf(HasSubstr("Usage: ebb " + command[0]), HasSubstr("Examples:"))) << command[0];
  }
  EXPECT_THAT(run_ebb({"run", "--help"}).out,
              AllOf(HasSubstr("--temp"), HasSubstr("default 0.8"), HasSubstr("--kv-budget")));
}

TEST_F(CliTest, the_version_is_the_projects_and_names_llama_and_ggml) {
  const ProgramResult result = run_ebb({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("libllama 0."), HasSubstr("ggml 0.")));
  const auto project = find_test_file("CMakeLists.txt");
  ASSERT_TRUE(project);
  std::ifstream lines(*project);
  std::string version;
  for (std::string line; version.empty() && std::getline(lines, line);) {
    if (const std::size_t at = line.find("VERSION "); at != std::string::npos && line.find("cmake_") != 0) {
      version = line.substr(at + 8);
    }
  }
  ASSERT_FALSE(version.empty());
  EXPECT_THAT(result.out, StartsWith("ebb " + version + " "));
}

TEST_F(CliTest, apply_template_renders_a_chat_request_from_standard_input) {
  const TemporaryFile chat_template(".jinja");
  std::ofstream(chat_template.path()) << "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}";
  const std::string request =
      R"({"messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Hi"}]}]})";
  const ProgramResult result =
      run_ebb({"apply-template", "--chat-template-file", chat_template.path().string()}, request);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "[system] Be brief.\n[user] Hi\n");
}

TEST_F(CliTest, apply_template_shows_that_people_write_no_control_tokens) {
  const ProgramResult result = run_ebb({"apply-template", "-m", toy(), "--tokens"},
                                       R"({"messages": [{"role": "user", "content": "<|im_end|>"}]})");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::istringstream lines(result.out);
  std::size_t n_ends = 0;
  for (std::string line; std::getline(lines, line);) n_ends += line.ends_with("\t\"<|im_end|>\"") ? 1 : 0;
  EXPECT_EQ(n_ends, 1U) << result.out;
}

TEST_F(CliTest, apply_template_says_what_is_wrong_with_a_request) {
  const std::string model = toy();
  EXPECT_THAT(run_ebb({"apply-template", "-m", model}, "{").err, HasSubstr("not JSON"));
  const ProgramResult result = run_ebb({"apply-template", "-m", model}, R"({"messages": [{"role": "king"}]})");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("messages[0].role"));
}

TEST_F(CliTest, an_unknown_flag_is_bad_usage_and_names_the_help) {
  const ProgramResult result = run_ebb({"run", "--frobnicate"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("--frobnicate"), HasSubstr("ebb run --help")));
  EXPECT_THAT(result.out, IsEmpty());
}

TEST_F(CliTest, values_out_of_range_are_bad_usage) {
  EXPECT_EQ(run_ebb({"run", "-p", "x", "--kv-type", "f17"}).exit_code, 2);
  EXPECT_EQ(run_ebb({"run", "-p", "x", "--top-p", "7"}).exit_code, 2);
  EXPECT_EQ(run_ebb({"run", "-p", "x", "-l", "15"}).exit_code, 2);
  EXPECT_EQ(run_ebb({"run", "-p", "x", "-n", "many"}).exit_code, 2);
  EXPECT_EQ(run_ebb({"run"}).exit_code, 2);
  EXPECT_EQ(run_ebb({"bench"}).exit_code, 2);
  EXPECT_EQ(run_ebb({}).exit_code, 2);
}

TEST_F(CliTest, an_unknown_flag_of_any_command_is_named_with_the_nearest) {
  const ProgramResult run = run_ebb({"run", "--kv-bugdet", "64", "-p", "x"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("there is no flag --kv-bugdet; did you mean --kv-budget?"));
  // Neither the help of -h nor a model called f.
  const ProgramResult bundled = run_ebb({"run", "-hf", "a/b"});
  EXPECT_EQ(bundled.exit_code, 2);
  EXPECT_THAT(bundled.err, HasSubstr("there is no flag -hf: ebb downloads nothing"));
}

TEST_F(CliTest, an_empty_key_is_no_key_to_serve_with) {
  const ProgramResult result = run_ebb({"serve", "-m", "/nowhere/model.gguf", "--api-key", ""});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--api-key is empty"));
}

TEST_F(CliTest, a_key_is_made_with_the_line_that_stands_for_it) {
  const ProgramResult made = run_ebb({"key"});
  EXPECT_EQ(made.exit_code, 0);
  EXPECT_THAT(made.out, ContainsRegex("^ebb-[0-9a-f]{64}\nsha256:[0-9a-f]{64}\n$"));
  const std::size_t key_end = made.out.find('\n') + 1;
  const ProgramResult hashed = run_ebb({"key", "--hash"}, made.out.substr(0, key_end));
  EXPECT_EQ(hashed.exit_code, 0);
  EXPECT_EQ(hashed.out, made.out.substr(key_end));
  EXPECT_THAT(run_ebb({"key", "--hash"}, "# none\n").err, HasSubstr("no key on standard input"));
}

TEST_F(CliTest, a_malformed_hash_in_a_key_file_is_named_by_its_line_and_not_by_its_text) {
  const TemporaryFile keys(".txt");
  std::ofstream(keys.path()) << "# keys\nsha256:0123456789abcdef\n";
  const ProgramResult result = run_ebb({"serve", "-m", "/nowhere/model.gguf", "--api-key-file", keys.path().string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr(keys.path().string() + ": line 2"), Not(HasSubstr("0123456789abcdef"))));
}

TEST_F(CliTest, a_model_that_is_not_there_fails_with_a_line_that_names_it) {
  const ProgramResult result = run_ebb({"run", "-m", "/nowhere/model.gguf", "-p", "x"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(StartsWith("ebb: "), HasSubstr("/nowhere/model.gguf")));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
}

TEST_F(CliTest, inspect_shows_what_the_file_holds) {
  RandomModelSpec spec;
  spec.architecture = "gemma3";
  spec.sliding_window = 32;
  const ProgramResult result = run_ebb({"inspect", toy(spec)});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("gemma3"), HasSubstr("32 positions in"), HasSubstr("f32 100.0%"),
                                HasSubstr("2 layers"), HasSubstr("q8_0"), HasSubstr("kivi4")));
}

TEST_F(CliTest, inspect_of_a_file_that_is_no_model_fails) {
  std::ofstream(file_.path()) << "this is no GGUF file";
  const ProgramResult result = run_ebb({"inspect", file_.path().string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr(file_.path().string()));
}

TEST_F(CliTest, run_answers_the_same_greedily_each_time_in_valid_utf8) {
  const std::vector<std::string> arguments = {"run", "-m", toy(), "-p", "Hello", "--temp", "0", "-n", "24", "-t", "1"};
  const ProgramResult first = run_ebb(arguments);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_FALSE(first.out.empty());
  EXPECT_TRUE(is_valid_utf8(first.out));
  EXPECT_EQ(run_ebb(arguments).out, first.out);
}

TEST_F(CliTest, run_reads_its_prompt_from_files_and_standard_input) {
  const TemporaryFile prompt(".txt");
  std::ofstream(prompt.path()) << "Hello there";
  const std::vector<std::string> arguments = {"run", "-m", toy(), "--raw", "--temp", "0", "-n", "8", "-t", "1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), arguments.begin(), arguments.end());
    return more;
  };
  const ProgramResult given = run_ebb(with({"-p", "Hello there"}));
  EXPECT_EQ(given.exit_code, 0) << given.err;
  EXPECT_EQ(run_ebb(with({"-f", prompt.path().string()})).out, given.out);
  EXPECT_EQ(run_ebb(with({"-f", "-"}), "Hello there").out, given.out);
  EXPECT_NE(run_ebb(with({"-p", "Goodbye"})).out, given.out);
  EXPECT_EQ(run_ebb(with({"-f", "/nowhere/prompt.txt"})).exit_code, 1);
}

TEST_F(CliTest, statistics_go_to_stderr_and_only_when_asked_for) {
  const std::vector<std::string> arguments = {"run", "-m", toy(), "-p", "Hello", "-n", "4", "-t", "1", "--temp", "0"};
  EXPECT_THAT(run_ebb(arguments).err, IsEmpty());
  std::vector<std::string> verbose = arguments;
  verbose.emplace_back("-v");
  const ProgramResult result = run_ebb(verbose);
  EXPECT_THAT(result.err, AllOf(HasSubstr("tok/s"), HasSubstr("tokens hot"), HasSubstr("weights")));
  EXPECT_THAT(result.out, Not(HasSubstr("tok/s")));
}

TEST_F(CliTest, a_prompt_larger_than_the_budget_is_answered_inside_it) {
  const std::string model = toy();
  std::vector<std::string> arguments = {"run", "-m", model, "--raw", "-f",          "-",  "-n",
                                        "4",   "-t", "1",   "-v",    "--kv-budget", "256"};
  const auto forbidden = forbid_end(model);
  arguments.insert(arguments.end(), forbidden.begin(), forbidden.end());
  const ProgramResult result = run_ebb(arguments, std::string(1000, 'x'));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("of 256 tokens hot"), HasSubstr("evicted"), Not(HasSubstr(" 0 evicted"))));
}

TEST_F(CliTest, ctrl_c_stops_the_reply_with_its_own_exit_code) {
  RandomModelSpec spec;
  spec.n_ctx_train = 1 << 20;  // far more than is generated before the signal comes
  const std::string model = toy(spec);
  std::vector<std::string> arguments = {"run", "-m",     model, "--raw", "-p",          "Hello", "-t",
                                        "1",   "--temp", "0",   "-v",    "--kv-budget", "1024"};
  const auto forbidden = forbid_end(model);
  arguments.insert(arguments.end(), forbidden.begin(), forbidden.end());
  const ProgramResult result = interrupt_ebb(arguments);
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_FALSE(result.out.empty());
  EXPECT_THAT(result.err, HasSubstr("cancelled"));  // it ended in order, with its statistics
}

TEST_F(CliTest, chat_takes_commands_and_ends_with_its_input) {
  const std::vector<std::string> arguments = {"chat", "-m", toy(), "-t", "1", "-n", "4", "--temp", "0"};
  const ProgramResult result = run_ebb(arguments, "Hello\n/stats\n/nonsense\n/reset\nHello\n/help\n");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("tok/s"), HasSubstr("no command /nonsense"), HasSubstr("/quit leaves")));
  // After /reset the same question has the same answer.
  EXPECT_EQ(result.out.size() % 2, 0U);
  EXPECT_EQ(result.out.substr(0, result.out.size() / 2), result.out.substr(result.out.size() / 2));
}

TEST_F(CliTest, bench_speed_writes_the_same_figures_as_table_and_json) {
  const TemporaryFile json(".json");
  const ProgramResult result = run_ebb({"bench", "speed", "-m", toy(), "-t", "1", "--depths", "0,64", "--repeat", "1",
                                        "--n-prompt", "16", "--n-gen", "2", "--json", json.path().string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("prompt 16"), HasSubstr("decode 2"), HasSubstr("ebb / libllama")));
  std::ifstream file(json.path());
  const auto figures = nlohmann::json::parse(file);
  EXPECT_EQ(figures["models"][0]["lines"].size(), 4U);
}

TEST_F(CliTest, bench_splice_writes_the_same_figures_as_table_json_and_page) {
  const TemporaryFile json(".json");
  const TemporaryFile html(".html");
  const ProgramResult result = run_ebb({"bench",      "splice",
                                        "-m",         toy(),
                                        "-t",         "1",
                                        "--spans",    "20,64",
                                        "--context",  "64",
                                        "--kv-types", "f16",
                                        "--repeat",   "1",
                                        "--prefills", "1",
                                        "-n",         "0",
                                        "--json",     json.path().string(),
                                        "--html",     html.path().string(),
                                        "--disk-dir", json.path().parent_path().string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("recall from RAM"), HasSubstr("re-prefill / it")));
  std::ifstream file(json.path());
  EXPECT_EQ(nlohmann::json::parse(file)["kv_types"][0]["spans"].size(), 2U);
  std::ostringstream page;
  page << std::ifstream(html.path()).rdbuf();
  EXPECT_THAT(page.str(), AllOf(HasSubstr("<svg"), HasSubstr("time, ms (log)"), HasSubstr("</html>")));
}

TEST_F(CliTest, bench_sparse_says_what_a_budget_must_hold) {
  const ProgramResult result = run_ebb({"bench", "sparse", "-m", toy(), "--budgets", "32"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("at least 64 (4 blocks of 16)"));
}

TEST_F(CliTest, bench_fidelity_says_that_recall_at_the_original_place_is_bitwise_equal) {
  const TemporaryFile json(".json");
  const TemporaryFile html(".html");
  const ProgramResult result = run_ebb({"bench",       "fidelity",
                                        "-m",          toy({.n_ctx_train = 4096}),
                                        "-t",          "1",
                                        "--spans",     "64",
                                        "--distances", "32",
                                        "--context",   "32",
                                        "--facts",     "1",
                                        "--scored",    "80",
                                        "--absences",  "moment",
                                        "--kv-types",  "f16",
                                        "--json",      json.path().string(),
                                        "--html",      html.path().string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, ContainsRegex("recalled, sparse +yes "));
  EXPECT_THAT(result.out, ContainsRegex("sparse, at the tail +no "));
  std::ifstream file(json.path());
  const auto arms = nlohmann::json::parse(file)["cases"][0]["arms"];
  EXPECT_EQ(arms["recalled_sparse"]["bitwise_equal_sessions"], 1);
  EXPECT_GT(arms["recalled_tail"]["blocks"]["moved"], 0);
  std::ostringstream page;
  page << std::ifstream(html.path()).rdbuf();
  EXPECT_THAT(page.str(), AllOf(HasSubstr("<svg"), HasSubstr("share of facts"), HasSubstr("</html>")));
}

TEST_F(CliTest, bench_fidelity_of_a_small_context_says_what_to_give) {
  const ProgramResult result = run_ebb({"bench", "fidelity", "-m", toy({.n_ctx_train = 512})});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("trained for 512"), HasSubstr("--distances")));
}

}  // namespace
}  // namespace ebb
