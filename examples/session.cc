// A session four times as long as its KV budget: a fact is told, much is said, and the fact comes back.
//
//   example_session models/ebb-recall.gguf
#include <cstdio>
#include <string>

#include "ebb/engine.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s MODEL.gguf\n", argv[0]);
    return 2;
  }
  auto engine = ebb::api::Engine::open({.model = argv[1], .block_size = 32, .kv_budget_tokens = 512});
  if (!engine.ok()) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return 1;
  }
  // By the default policy, which chooses by layer, some of the note would stay.
  auto opened = engine.value().new_session({.kv_budget_tokens = 192, .eviction = "streaming", .sink_tokens = 0});
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    return 1;
  }
  ebb::api::Session& session = opened.value();

  const ebb::api::ReplyOptions options = {.max_tokens = 32, .temperature = 0.0F};
  // What is merely read brings nothing back.
  const ebb::api::ReplyOptions no_recall = {.max_tokens = 32, .temperature = 0.0F, .selectors = "none"};
  const std::string reading =
      "Read this: The harbour lay still under the morning fog, and only the bell on the outer buoy told the fishermen "
      "where the channel began. They rowed out one after another, without lanterns, for they knew each rock.";
  auto reply = session.say("Please remember that the code of the north gate is 4711.", options, {}, "note:gate");
  for (int i = 0; i < 10 && reply.ok(); ++i) reply = session.say(reading, no_recall);
  if (!session.find("note:gate").empty() && session.find("note:gate").front().state == ebb::api::BlockState::kSaved) {
    std::printf("the note was evicted\n");
  }
  if (reply.ok()) reply = session.say("What is the code of the north gate?", options);
  if (!reply.ok()) {
    std::fprintf(stderr, "%s\n", reply.error().message.c_str());
    return 1;
  }
  const ebb::api::SessionStats stats = session.stats();
  std::printf("%s\n%d tokens, at most %d of %d hot, %d recalled byte for byte for this answer\n",
              reply.value().text.c_str(), stats.n_tokens, stats.peak_hot_tokens, stats.budget_tokens,
              reply.value().stats.n_recalled_exact);
  return 0;
}
