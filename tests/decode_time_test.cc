// The times that a generation tells are those that its client waited.
#include <gmock/gmock.h>

#include "base/clock.h"
#include "tests/sessions.h"

namespace ebb {
namespace {

// A choice of many words, which a sampler has to try each token against at each step.
std::string grammar_of_many_words() {
  std::string words;
  for (int i = 0; i < 4000; ++i) words += fmt::format("{}\"{:04}\"", i == 0 ? "" : " | ", i);
  return fmt::format("root ::= word+\nword ::= {}\n", words);
}

TEST_F(Sessions, the_time_of_decoding_has_that_of_sampling_in_it) {
  const auto session = new_session();
  GenerationOptions options{.max_tokens = 24};
  options.sampling.grammar = grammar_of_many_words();
  const auto generation = start(*session, "count: ", options);
  Generation* const running = generation.get();
  while (generation->tokens().empty()) ASSERT_TRUE(engine_->step({&running, 1}).ok());
  EXPECT_EQ(generation->stats().decode_ms, 0.0) << "the first token is the prompt's";
  const double prefill_ms = generation->stats().prefill_ms;
  double waited_ms = 0.0;
  while (!generation->finished()) {
    const Stopwatch watch;
    ASSERT_TRUE(engine_->step({&running, 1}).ok());
    waited_ms += watch.elapsed_ms();
  }
  EXPECT_EQ(generation->stats().prefill_ms, prefill_ms);
  EXPECT_LE(generation->stats().decode_ms, waited_ms);
  EXPECT_GE(generation->stats().decode_ms, 0.9 * waited_ms);
}

}  // namespace
}  // namespace ebb
