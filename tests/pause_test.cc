// While a reply is written, a prompt that is read beside it has few rows in a step (EngineOptions::most_pause_ms).
#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/sessions.h"

namespace ebb {
namespace {

class Pauses : public Sessions {
 protected:
  // Steps that a prompt of 186 tokens takes beside a reply whose own prompt was of four.
  int count_steps() {
    const auto session = new_session();
    const auto reply = start(*session, "once", {.max_tokens = 300});
    Generation* const writing = reply.get();
    while (reply->tokens().size() < 2) EXPECT_TRUE(engine_->step({&writing, 1}).ok());
    const auto other = new_session();
    std::vector<Token> tokens = tokenize(std::string(400, 'x'));
    tokens.resize(186);
    const auto prompt = Generation::start(*other, engine_->vocabulary(), Prompt(std::move(tokens)), {.max_tokens = 1});
    EXPECT_TRUE(prompt.ok());
    const std::array<Generation*, 2> running = {writing, prompt->get()};
    const std::size_t n_before = reply->tokens().size();
    int n_steps = 0;
    for (; !(*prompt)->finished() && n_steps < 1000; ++n_steps) EXPECT_TRUE(engine_->step(running).ok());
    EXPECT_EQ(reply->tokens().size(), n_before + static_cast<std::size_t>(n_steps)) << "each step wrote a token, too";
    return n_steps;
  }
};

// 16 rows, then as many as the engine has for a step.
TEST_F(Pauses, a_prompt_beside_a_reply_begins_with_a_few_rows_where_a_pause_is_bounded) {
  const int n_unbounded = count_steps();
  open({.most_pause_ms = 1e9});
  EXPECT_EQ(count_steps(), n_unbounded + 1);
}

}  // namespace
}  // namespace ebb
