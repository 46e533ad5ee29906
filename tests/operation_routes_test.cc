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
      std::string name = line.substr(0, line.find_first_of("{ "));
      // A histogram's samples have a word behind its name.
      if (type_line.ends_with(" histogram")) name.resize(name.rfind('_'));
      EXPECT_TRUE(type_line.starts_with("# TYPE " + name + " ")) << line;
      EXPECT_TRUE(samples.emplace(line.substr(0, end), std::stod(line.substr(end))).second) << line << ": twice";
    }
    return samples;
  }

  // A fact and what is said after it, so far beyond the budget that of some blocks nothing is hot; then the fact is asked for.
  void talk_beyond_the_budget(const std::string& id) {
    Json messages = Json::array({user("The code of the north gate is 4711.")});
    std::string filler = "Read this:";
    for (int i = 0; i < 32; ++i) filler += " The shepherd crossed the quiet harbour before the rain began.";
    for (int turn = 0; turn < 10; ++turn) {
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

TEST_F(OperationRoutes, idle_slots_show_how_the_server_samples) {
  ApiOptions options;
  options.defaults.sampling.temperature = 0.25F;
  open(std::move(options));
  EXPECT_FLOAT_EQ(ask("GET", "/slots")->json()[1]["params"]["temperature"].get<float>(), 0.25F);
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

TEST_F(OperationRoutes, a_server_tells_which_budget_is_in_force_and_how_it_is_shared) {
  const Json plain = ask("GET", "/v1/budget")->json();
  EXPECT_EQ(plain["prompt_tokens"], 1024);
  EXPECT_EQ(plain["in_force_tokens"], 1024);
  EXPECT_EQ(plain["shares"], Json({{"by", "policy"}}));
  const auto list = std::make_shared<BudgetList>(BudgetList{.weights = {2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5}});
  open({}, {.prompt_budget_tokens = 2048, .budget_list = list});
  talk_beyond_the_budget("one");
  const Json props = ask("GET", "/props")->json();
  EXPECT_EQ(props["kv_prompt_budget_tokens"], 2048);
  EXPECT_EQ(props["model_fingerprint"], engine_->model().fingerprint().hex());
  const Json budget = ask("GET", "/v1/budget")->json();
  EXPECT_EQ(budget["tokens"], 1024);
  EXPECT_EQ(budget["prompt_tokens"], 2048);
  EXPECT_EQ(budget["in_force_tokens"], 1024) << "no prompt is under way";
  EXPECT_LE(budget["hot_tokens"], 1024);
  EXPECT_EQ(budget["shares"], Json({{"by", "layer"}, {"weights", {2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5}}}));
  const Json told = chat(Json::array({user(std::string(6000, 'x'))}))->json()["ebb"];
  EXPECT_EQ(told["prompt_budget_tokens"], 2048);
  EXPECT_GT(told["prompt_peak_tokens"], 1024);
  EXPECT_LE(told["prompt_peak_tokens"], 2048);
  EXPECT_EQ(told["reply_budget_tokens"], 1024);
  EXPECT_LE(told["reply_peak_tokens"], 1024);
  EXPECT_EQ(metrics().at("ebb:kv_in_force_tokens"), 1024);
  const Json asking = Json::array({user(std::string(6000, 'y'))});
  const Json less = chat(asking, {{"kv_prompt_budget", 1536}})->json()["ebb"];
  EXPECT_EQ(less["prompt_budget_tokens"], 1536);
  EXPECT_LE(less["prompt_peak_tokens"], 1536);
  const auto more = chat(asking, {{"kv_prompt_budget", 4096}});
  EXPECT_EQ(more->status(), 400);
  EXPECT_THAT(more->json()["error"]["message"].get<std::string>(), ::testing::HasSubstr("2048 tokens at most"));
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

TEST_F(OperationRoutes, defaults_of_the_server_hold_where_requests_do_not_say) {
  open({.defaults = {.sampling = {.temperature = 0.0F, .seed = 7}, .max_tokens = 3}});
  const Json params = ask("GET", "/props")->json()["default_generation_settings"]["params"];
  EXPECT_EQ(params["temperature"], 0);
  EXPECT_EQ(params["seed"], 7);
  EXPECT_EQ(params["n_predict"], 3);
  const Json text = ask("POST", "/completion", R"({"prompt":"The code of"})")->json();
  EXPECT_EQ(text["tokens_predicted"], 3);
  EXPECT_EQ(ask("POST", "/completion", R"({"prompt":"The code of","n_predict":2})")->json()["tokens_predicted"], 2);
  const Json messages = Json::array({user("The code of the north gate is 4711.")});
  const Json chat = ask("POST", "/v1/chat/completions", Json({{"messages", messages}}).dump())->json();
  EXPECT_LE(chat["usage"]["completion_tokens"], 3);
  const Json response = ask("POST", "/v1/responses", R"({"input":"The code of the north gate is 4711."})")->json();
  EXPECT_LE(response["usage"]["output_tokens"], 3);
  ApiOptions sick{.defaults = {.chat_template_kwargs = "{"}};
  EXPECT_EQ(Api::create(*engine_, *scheduler_, sick).status().code(), Code::kInvalidArgument);
}

TEST_F(OperationRoutes, saving_a_slot_says_which_routes_save_a_session) {
  const auto saved = ask("POST", "/slots/0?action=save", R"({"filename":"a.bin"})");
  EXPECT_EQ(saved->status(), 501);
  EXPECT_EQ(saved->json()["error"]["type"], "not_supported_error");
  EXPECT_THAT(saved->json()["error"]["message"].get<std::string>(), ::testing::HasSubstr("/v1/sessions/{id}/export"));
}

TEST_F(OperationRoutes, a_prefix_alone_leads_to_the_page) {
  open({.prefix = "/llm"});
  const auto moved = ask("GET", "/llm");
  EXPECT_EQ(moved->status(), 308);
  EXPECT_EQ(moved->header("Location"), "/llm/");
  EXPECT_EQ(ask("GET", "/llm/")->status(), 200);
  EXPECT_EQ(ask("GET", "/llmx")->status(), 404);
}

TEST_F(OperationRoutes, the_scheme_of_a_key_is_written_as_one_likes) {
  open({.keys = ApiKeys({"alpha"})});
  for (const char* given : {"Bearer alpha", "bearer alpha", "BEARER alpha"}) {
    EXPECT_EQ(ask("GET", "/v1/sessions", "", {{"Authorization", given}})->status(), 200) << given;
  }
  for (const char* given : {"Bearer Alpha", "Basic alpha", "bearer", "beareralpha"}) {
    EXPECT_EQ(ask("GET", "/v1/sessions", "", {{"Authorization", given}})->status(), 401) << given;
  }
}

}  // namespace
}  // namespace ebb
