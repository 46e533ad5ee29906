#include "server/request_log.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

class Silent final : public Responder {
 public:
  void send(HttpAnswer) override {}
  void begin_stream(HttpStreamHead) override {}
  std::size_t write(std::string_view) override { return 0; }
  void finish() override {}
  void abort() override {}
  [[nodiscard]] bool is_closed() const override { return has_left; }
  [[nodiscard]] bool on_close(std::function<void()>) override { return true; }

  bool has_left = false;
};

class RequestLogs : public ::testing::Test {
 protected:
  std::shared_ptr<Responder> logged() {
    return log_answer(inner_, "req_1", {.method = "POST", .path = "/v1/x", .query = "key=secret", .body = "secret"},
                      [this](std::string_view line) { lines_.emplace_back(line); });
  }

  std::shared_ptr<Silent> inner_ = std::make_shared<Silent>();
  std::vector<std::string> lines_;
};

TEST_F(RequestLogs, an_answer_and_a_stream_are_one_line_each_with_the_id_that_the_client_has) {
  logged()->send({.status = 404});
  const auto stream = logged();
  stream->begin_stream({});
  (void)stream->write("secret");
  EXPECT_EQ(lines_.size(), 1U);
  stream->finish();
  EXPECT_THAT(lines_, ElementsAre(MatchesRegex("req_1 POST /v1/x 404 [0-9.]+ ms"),
                                  MatchesRegex("req_1 POST /v1/x 200 [0-9.]+ ms")));
}

TEST_F(RequestLogs, a_client_that_left_and_an_answer_that_was_given_up_are_told_as_what_they_are) {
  logged()->abort();
  (void)logged();
  inner_->has_left = true;
  const auto stream = logged();
  stream->begin_stream({});
  stream->finish();
  (void)logged();
  logged()->send({.status = 200});
  EXPECT_THAT(lines_, ElementsAre(MatchesRegex(".* 0 [0-9.]+ ms .broken off."), MatchesRegex(".* .given up."),
                                  MatchesRegex(".* 200 .* .client left."), MatchesRegex(".* 0 .* .client left."),
                                  MatchesRegex(".* 200 .* .client left.")));
}

TEST_F(RequestLogs, a_path_cannot_begin_a_line_of_its_own) {
  EXPECT_EQ(request_line("a", {.method = "G\tT", .path = "/x\nebb: all is well\x1b[2J"}, {.status = 200, .ms = 1.0}),
            "a G?T /x?ebb:?all?is?well?[2J 200 1.0 ms");
  const std::string line = request_line("a", {.method = "GET", .path = std::string(5000, 'x')}, {});
  EXPECT_LT(line.size(), 300U);
}

}  // namespace
}  // namespace ebb
