// What operators and clients ask of a server as it is: models, properties, metrics.
#include <map>
#include <sstream>

#include <gmock/gmock.h>

#include "model/model.h"
#include "tests/api_fixture.h"

namespace ebb {
namespace {

class OperationRoutes : public Server {
 protected:
  // Samples by name and labels; each has HELP and TYPE before it.
  std::map<std::string, double> metrics() {
    std::map<std::string, double> samples;
    std::istringstream text(ask("GET", "/metrics")->body());
    std::string type_line;
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("# TYPE ")) type_line = line;
      if (line.starts_with('#')) continue;
      const std::size_t end = line.rfind(' ');
      EXPECT_TRUE(type_line.starts_with("# TYPE " + line.substr(0, line.find_first_of("{ ")) + " ")) << line;
      EXPECT_TRUE(samples.emplace(line.substr(0, end), std::stod(line.substr(end))).second) << line << ": twice";
    }
    return samples;
  }

  // A fact and what is said after it, far beyond the budget; then the fact is asked for.
  void talk_beyond_the_budget(const std::string& id) {
    Json messages = Json::array({user("The code of the north gate is 4711.")});
    std::string filler = "Read this:";
    for (int i = 0; i < 32; ++i) filler += " The shepherd crossed the quiet harbour before the rain began.";
    for (int turn = 0; turn < 5; ++turn) {
      messages.push_back({{"role", "assistant"}, {"content", "Noted."}});
      messages.push_back(user(filler));
      ASSERT_EQ(chat(messages, {}, {{"x-session-id", id}})->status(), 200);
    }
    messages.push_back({{"role", "assistant"}, {"content", "Noted."}});
    messages.push_back(user("What is the code of the north gate?"));
    ASSERT_EQ(chat(messages, {}, {{"x-session-id", id}})->status(), 200);
  }
};

TEST_F(OperationRoutes, a_client_that_compacts_at_the_models_context_reads_the_window_and_not_the_budget) {
  const std::int32_t n_ctx = engine_->model().hparams().n_ctx_train;
  ASSERT_GT(n_ctx, engine_->budget_tokens());
  const Json meta = ask("GET", "/v1/models")->json()["data"][0]["meta"];
  EXPECT_EQ(meta["n_ctx"], n_ctx);
  EXPECT_EQ(ask("GET", "/props")->json()["default_generation_settings"]["n_ctx"], n_ctx);
  EXPECT_EQ(ask("GET", "/slots")->json()[0]["n_ctx"], n_ctx);
  EXPECT_EQ(meta["n_params"], engine_->model().file().n_parameters());
  EXPECT_EQ(meta["size"], engine_->model().file().n_tensor_bytes());
  EXPECT_FALSE(meta["ftype"].get<std::string>().empty());
}

TEST_F(OperationRoutes, props_tell_what_a_request_gets_that_says_nothing) {
  const Json props = ask("GET", "/props")->json();
  EXPECT_EQ(props["total_slots"], 2);
  EXPECT_EQ(props["total_slots"], ask("GET", "/slots")->json().size());
  Json told = ask("POST", "/completion", R"({"prompt":"The code of","n_predict":1})")->json()["generation_settings"];
  Json params = props["default_generation_settings"]["params"];
  EXPECT_EQ(params["n_predict"], -1);
  for (Json* settings : {&told, &params}) {
    for (const char* of_one_request : {"seed", "n_predict", "max_tokens"}) settings->erase(of_one_request);
  }
  EXPECT_EQ(params, told);
  const Json caps = props["chat_template_caps"];
  for (const char* cap : {"supports_system_role", "supports_tools", "supports_tool_calls"}) {
    EXPECT_TRUE(caps[cap].is_boolean()) << cap;
  }
}

TEST_F(OperationRoutes, metrics_count_what_left_came_back_and_was_missed_and_never_fall) {
  talk_beyond_the_budget("one");
  const auto before = metrics();
  const Json session = ask("GET", "/v1/sessions")->json()["data"][0];
  EXPECT_GT(session["evicted_blocks"], 0);
  EXPECT_EQ(before.at("ebb:evicted_blocks_total"), session["evicted_blocks"]);
  EXPECT_GT(session["recalled_blocks"], 0);
  EXPECT_EQ(before.at("ebb:recalled_blocks_total"), session["recalled_blocks"]);
  EXPECT_GT(before.at("ebb:hole_tokens_total"), 0);
  EXPECT_EQ(before.at("ebb:prompt_tokens_by_place_total{place=\"holes\"}"), before.at("ebb:hole_tokens_total"));
  EXPECT_GT(before.at("ebb:prompt_tokens_by_place_total{place=\"hot\"}"), 0);
  EXPECT_EQ(before.at("ebb:recomputed_tokens_total"), 0);
  EXPECT_EQ(before.at("ebb:missed_recalls_total"), 0);
  EXPECT_GE(before.at("llamacpp:n_tokens_max"), session["tokens"].get<double>());
  EXPECT_GT(before.at("llamacpp:prompt_tokens_seconds"), 0);
  EXPECT_GT(before.at("llamacpp:predicted_tokens_seconds"), 0);
  EXPECT_EQ(before.at("llamacpp:n_busy_slots_per_decode"), 1);

  scheduler_->act([](Lanes& lanes) { EXPECT_TRUE(lanes.park_one()); });
  ASSERT_EQ(ask("DELETE", "/v1/sessions/" + session["id"].get<std::string>())->status(), 200);
  const auto after = metrics();
  for (const auto& [name, value] : before) {
    if (!name.ends_with("_total") && !name.ends_with("n_tokens_max")) continue;
    EXPECT_GE(after.at(name), value) << name;
  }
}

}  // namespace
}  // namespace ebb
