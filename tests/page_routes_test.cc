// The dashboard's files and what it shows of the cold store, as a browser gets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/page_files.h"
#include "tests/api_fixture.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

TEST_F(Server, the_page_needs_no_key_and_may_load_nothing_from_elsewhere) {
  open({.keys = ApiKeys({"alpha"})});
  const auto page = ask("GET", "/");
  EXPECT_EQ(page->status(), 200);
  EXPECT_THAT(page->header("Content-Type"), HasSubstr("text/html"));
  EXPECT_THAT(page->header("Content-Security-Policy"), HasSubstr("default-src 'none'"));
  EXPECT_EQ(ask("GET", "/", "", {{"If-None-Match", page->header("ETag")}})->status(), 304);
  for (const PageFile& file : page_files()) {
    const auto kept = ask("GET", "/page/" + std::string(file.name));
    EXPECT_EQ(file.name == "index.html" ? page->body() : kept->body(), file.content) << file.name;
    EXPECT_NE((file.name == "index.html" ? page : kept)->header("Content-Type"), "application/octet-stream");
  }
  EXPECT_EQ(ask("GET", "/v1/store")->status(), 401);
}

TEST_F(Server, what_the_tiers_hold_is_told_of_how_much) {
  chat(Json::array({user(std::string(2000, 'x'))}));
  ASSERT_TRUE(engine_->store()->flush().ok());
  const Json store = ask("GET", "/v1/store")->json();
  ASSERT_EQ(store["tiers"].size(), 1U);
  const Json& ram = store["tiers"][0];
  EXPECT_EQ(ram["name"], "ram");
  EXPECT_GT(ram["records"], 0);
  EXPECT_LE(ram["bytes"], ram["max_bytes"]);
  const std::string metrics = ask("GET", "/metrics")->body();
  EXPECT_THAT(metrics, HasSubstr(fmt::format("ebb:store_bytes{{tier=\"ram\"}} {}", ram["bytes"].get<int>())));
  EXPECT_THAT(metrics, ::testing::Not(HasSubstr("tier=\"disk\"")));
}

}  // namespace
}  // namespace ebb
