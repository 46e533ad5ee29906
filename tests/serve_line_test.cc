// Command lines and variables of `ebb serve`, those of llama.cpp's server among them, as the built program takes them.
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/files.h"
#include "tests/program.h"

namespace ebb {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(ServeLine, refuses_what_it_cannot_take_with_what_to_do) {
  const auto refused = [](const std::vector<std::string>& flags) {
    std::vector<std::string> all = {"serve", "-m", "/nowhere/model.gguf"};
    all.insert(all.end(), flags.begin(), flags.end());
    const ProgramResult result = run_ebb(all);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_THAT(refused({"-hf", "a/b"}), HasSubstr("ebb downloads nothing"));
  EXPECT_THAT(refused({"--ssl-key-file", "key"}), HasSubstr("proxy"));
  EXPECT_THAT(refused({"-hg"}), AllOf(HasSubstr("there is no flag -hg"), Not(HasSubstr("-hf"))));
  EXPECT_THAT(refused({"--parralel", "2"}), HasSubstr("there is no flag --parralel; did you mean --parallel?"));
  EXPECT_THAT(refused({"--cache-type", "f16"}), HasSubstr("did you mean --cache-type-k?"));
  EXPECT_THAT(refused({"--request-defaults", "[]"}), HasSubstr("--request-defaults"));
  EXPECT_THAT(refused({"--kv-reuse", "foo"}), HasSubstr("foo not in {approximate,exact,fresh}"));
  EXPECT_THAT(refused({"--allowed-policies", "tova,foo"}),
              HasSubstr("'foo' is no eviction policy; give open, all, own"));
  EXPECT_THAT(refused({"--reasoning-format", "foo"}), HasSubstr("foo not in {"));
  EXPECT_THAT(refused({"--chat-template-kwargs", "{"}), HasSubstr("--chat-template-kwargs"));
  EXPECT_THAT(refused({"--top-p", "7"}), HasSubstr("top_p is 7"));
}

TEST(ServeLine, a_grammar_for_all_requests_is_read_before_any_comes) {
  const ProgramResult result = run_ebb(
      {"serve", "-m", find_test_file("models/ebb-recall.gguf")->string(), "--port", "0", "--grammar", "root ::= ("});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("--grammar: "));
}

TEST(ServeLine, takes_flags_of_llama_server_and_says_which_have_no_effect) {
  const ProgramResult result = run_ebb({"serve",
                                        "-m",
                                        "/nowhere/model.gguf",
                                        "-c",
                                        "0",
                                        "--jinja",
                                        "--metrics",
                                        "--slots",
                                        "--props",
                                        "-fa",
                                        "-ngl",
                                        "99",
                                        "--n-predict",
                                        "64",
                                        "--temp",
                                        "0",
                                        "--top-k",
                                        "1",
                                        "--top-p",
                                        "0.9",
                                        "--min-p",
                                        "0.1",
                                        "--seed",
                                        "7",
                                        "--repeat-penalty",
                                        "1.1",
                                        "--reasoning-format",
                                        "none",
                                        "--reasoning-budget",
                                        "0",
                                        "--chat-template-kwargs",
                                        R"({"enable_thinking":false})",
                                        "--timeout",
                                        "600"});
  EXPECT_EQ(result.exit_code, 1) << "no such model";
  for (const char* flag : {"--jinja", "--metrics", "--slots", "--props", "-fa"}) {
    EXPECT_THAT(result.err, HasSubstr(std::string(flag) + " has no effect")) << flag;
  }
  EXPECT_THAT(run_ebb({"serve", "--help"}).out, AllOf(HasSubstr("--reasoning-budget"), Not(HasSubstr("--flash-attn"))));
}

TEST(ServeLine, names_the_flag_that_was_meant_by_its_own_or_by_llama_servers_names) {
  const std::vector<std::pair<std::string, std::string>> meant = {
      {"--n-gpu-layer", "--n-gpu-layers"},
      {"--ngl", "-ngl"},
      {"--no-mmapp", "--no-mmap"},
      {"--mlok", "--mlock"},
      {"--modle", "--model"},
      {"--hots", "--host"},
      {"--tepm", "--temp"},
      {"--flash-attention", "--flash-attn"},
      {"--flashattn", "--flash-attn"},
      {"-nglx", "-ngl"},
      {"-fla", "-fa"},
      {"-cx", "-c"},
      {"--hf", "-hf"},
      {"--ctx_size", "--ctx-size"},
  };
  for (const auto& [given, flag] : meant) {
    const ProgramResult result = run_ebb({"serve", "-m", "/nowhere/model.gguf", given, "1"});
    EXPECT_EQ(result.exit_code, 2) << given;
    EXPECT_THAT(result.err, HasSubstr("there is no flag " + given + "; did you mean " + flag + "?"));
  }
  EXPECT_THAT(run_ebb({"serve", "--quux", "1"}).err, Not(HasSubstr("did you mean")));
}

TEST(ServeLine, tells_of_variables_that_are_none_and_the_nearest) {
  const std::map<std::string, std::string> set = {{"LLAMA_ARG_CTXSIZE", "64"},
                                                  {"LLAMA_ARG_BOGUS", "1"},
                                                  {"LLAMA_ARG_NO_MMAP", "1"},
                                                  {"EBB_KV_BUDGETT", "64"},
                                                  {"EBB_KV_BUDGET", "1024"}};
  for (const auto& [name, value] : set) ::setenv(name.c_str(), value.c_str(), 1);
  const ProgramResult result = run_ebb({"serve", "-m", "/nowhere/model.gguf"});
  for (const auto& [name, value] : set) ::unsetenv(name.c_str());
  EXPECT_EQ(result.exit_code, 1) << "no such model";
  EXPECT_THAT(result.err, HasSubstr("LLAMA_ARG_CTXSIZE has no effect: no flag has this variable; did you mean "
                                    "LLAMA_ARG_CTX_SIZE?\n"));
  EXPECT_THAT(result.err, HasSubstr("LLAMA_ARG_BOGUS has no effect: no flag has this variable\n"));
  EXPECT_THAT(result.err, HasSubstr("EBB_KV_BUDGETT has no effect: no flag has this variable; did you mean "
                                    "EBB_KV_BUDGET?\n"));
  EXPECT_THAT(result.err, Not(HasSubstr("EBB_KV_BUDGET has")));
}

TEST(ServeLine, takes_the_last_of_a_flag_that_is_given_again) {
  const auto last_of = [](const std::vector<std::string>& flags) {
    std::vector<std::string> all = {"serve", "-m", "/somewhere/model.gguf", "-m", "/nowhere/model.gguf"};
    all.insert(all.end(), flags.begin(), flags.end());
    const ProgramResult result = run_ebb(all);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr("/nowhere/model.gguf"));
  };
  last_of({"--port", "1", "--port", "0"});
  last_of({"-c", "1024", "--ctx-size", "2048"});
  last_of({"--seed", "1", "-s", "2"});
  last_of(
      {"--no-slots", "--no-slots", "--kv-type", "f16", "--kv-type", "q8_0", "--kv-budget", "64", "--kv-budget=128"});
}

TEST(ServeLine, says_its_version_and_licence_as_llama_server_does) {
  EXPECT_THAT(run_ebb({"serve", "--version"}).out, StartsWith("ebb "));
  EXPECT_THAT(run_ebb({"serve", "--license"}).out, HasSubstr("Apache License 2.0"));
  EXPECT_EQ(run_ebb({"serve", "--license"}).exit_code, 0);
  EXPECT_THAT(run_ebb({"serve", "--usage"}).out, HasSubstr("--ctx-size"));
  EXPECT_THAT(run_ebb({"serve", "-m", "/nowhere/model.gguf", "--verbose-prompt"}).err,
              HasSubstr("--verbose-prompt has no effect"));
}

}  // namespace
}  // namespace ebb
