// What says the same in other words is found among blocks that left, by an embedding model's vectors, which outlive the process.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/meaning_thread.h"
#include "model/toy_gguf.h"
#include "tests/by_words.h"
#include "tests/sessions.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RecallAsk by_meaning(std::string_view question, std::int32_t max_blocks = 2) {
  return {.cues = find_cues(question),
          .max_blocks = max_blocks,
          .selectors = SelectorList::parse("embedding:least=0.9,wait=60000").value()};
}

// With random weights, which find what is the same word for word.
class RecallByMeaning : public Sessions {
 protected:
  void SetUp() override {
    Sessions::SetUp();
    open_with_embedder({});
  }

  void open_with_embedder(EngineOptions options, std::uint64_t seed = 1) {
    toy_ = std::make_unique<ToyGguf>(RandomModelSpec{.n_ctx_train = 300, .seed = seed});
    options.embedding_model =
        toy_->write_with_keys([](gguf_context* gguf) { gguf_set_val_u32(gguf, "llama.pooling_type", 1); });
    engine_.reset();
    open(options);
  }

  static std::string said() {
    std::string text;
    for (const char* const word :
         {"ant", "bee", "cow", "dog", "elk", "fox", "gnu", "hen", "owl", "pig", "rat", "yak"}) {
      text += std::string("I saw that ") + word + " today. ";
    }
    return text;
  }

  std::unique_ptr<Session> long_session() {
    std::unique_ptr<Session> session = new_session(96);
    say(*session, said(), {.max_tokens = 1, .recall = by_meaning("nothing")});
    EXPECT_LT(session->n_hot_blocks(), session->n_blocks());
    return session;
  }

  RecallLook ask(Session& session, std::string_view question) {
    say(session, " hm", {.max_tokens = 4, .recall = by_meaning(question)});
    EXPECT_FALSE(last_.looks.empty());
    return last_.looks.front();
  }

  static std::vector<std::string> texts_of(const Session& session, const RecallLook& look) {
    std::vector<std::string> texts;
    for (const RecallLook::Told& told : look.told) {
      if (told.considered.verdict == Verdict::kRecall) texts.push_back(*session.block_text(told.considered.block));
    }
    return texts;
  }

  std::unique_ptr<ToyGguf> toy_;
};

TEST_F(RecallByMeaning, a_sentence_that_a_border_cuts_brings_both_of_its_blocks) {
  const auto session = long_session();
  const std::int32_t n_cold = session->n_blocks() - session->n_hot_blocks();
  const RecallLook look = ask(*session, "I saw that cow today.");
  EXPECT_EQ(look.selector, "embedding");
  EXPECT_EQ(look.moment, Moment::kBeforePrompt);
  // Hot ones are not waited for.
  EXPECT_GE(look.n_looked_at, n_cold);
  EXPECT_EQ(last_.acts.recalled.size(), 2U);
  std::string together;
  for (const BlockIndex block : last_.acts.recalled) together += *session->block_text(block);
  EXPECT_THAT(together, HasSubstr("cow"));
  EXPECT_NEAR(look.told.front().considered.score, 1.0, 0.01);
  EXPECT_TRUE(look.told.front().came);
}

TEST_F(RecallByMeaning, nothing_is_computed_before_somebody_asks_and_then_for_what_there_is_already) {
  const auto session = new_session(96);
  say(*session, said(), {.max_tokens = 1, .recall = by_words("nothing")});
  engine_->meanings()->wait_idle();
  EXPECT_EQ(engine_->meanings()->stats().n_texts, 0);
  ask(*session, "I saw that cow today.");
  EXPECT_GT(engine_->meanings()->stats().n_blocks, 4);
  EXPECT_FALSE(last_.acts.recalled.empty());
}

TEST_F(RecallByMeaning, what_does_not_come_in_time_is_not_waited_for) {
  const auto session = new_session(96);
  say(*session, said(), {.max_tokens = 1});
  RecallAsk hasty = by_meaning("I saw that cow today.");
  hasty.selectors = SelectorList::parse("embedding:wait=0").value();
  say(*session, " hm", {.max_tokens = 4, .recall = hasty});
  EXPECT_LT(last_.looks.front().n_looked_at, session->n_blocks());
}

TEST_F(RecallByMeaning, what_is_forgotten_is_found_no_more) {
  const auto session = long_session();
  session->cut(Position(32));
  say(*session, " something else was said then.", {.max_tokens = 1});
  const RecallLook look = ask(*session, "I saw that yak today.");
  EXPECT_LE(look.n_looked_at, session->n_blocks());
  for (const std::string& text : texts_of(*session, look)) EXPECT_THAT(text, Not(HasSubstr("yak")));
}

TEST_F(RecallByMeaning, sessions_of_one_tenant_share_vectors_and_of_two_do_not) {
  const auto say_as = [&](const std::string& tenant) {
    auto session = open_session({.budget_tokens = 96, .tenant = tenant});
    say(*session, said(), {.max_tokens = 1, .recall = by_meaning("nothing")});
    engine_->meanings()->wait_idle();
    const MeaningStats stats = engine_->meanings()->stats();
    return std::pair(std::move(session), stats.n_blocks);
  };
  const auto [first, n_first] = say_as("ada");
  const auto [second, n_second] = say_as("ada");
  const auto [third, n_third] = say_as("bob");
  EXPECT_GT(n_first, 0);
  EXPECT_EQ(n_second, n_first);
  EXPECT_EQ(n_third, 2 * n_first);
  EXPECT_EQ(engine_->meanings()->stats().n_read, 0);
}

TEST_F(RecallByMeaning, without_a_model_it_is_refused_and_says_what_to_do) {
  open({});
  const auto session = new_session(96);
  const auto refused = Generation::start(*session, engine_->vocabulary(), Prompt(tokenize("hm")),
                                         {.max_tokens = 4, .recall = by_meaning("cow")});
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("--embedding-model"));
  EXPECT_FALSE(engine_->check_selectors(by_meaning("cow").selectors).ok());
  EXPECT_TRUE(engine_->check_selectors(SelectorList::fused()).ok());
}

class KeptMeanings : public RecallByMeaning {
 protected:
  EngineOptions on_disk() const {
    EngineOptions options;
    options.store.disk = DiskOptions{.folder = folder_.path()};
    return options;
  }
  // A session's image, whose process has ended.
  SessionImage leave() {
    open_with_embedder(on_disk());
    const auto session = long_session();
    engine_->meanings()->wait_idle();
    EXPECT_TRUE(session->save().ok());
    SessionImage image = session->image();
    options_ = session->options();
    EXPECT_TRUE(engine_->store()->flush().ok());
    return image;
  }
  void ask_again(const SessionImage& image) {
    const Result<std::unique_ptr<Session>> session = engine_->restore_session(options_, image);
    ASSERT_TRUE(session.ok()) << session.status().message();
    look_ = ask(**session, "I saw that cow today.");
    stats_ = engine_->meanings()->stats();
  }

  // Records of vectors are small, and begin on multiples of 64 bytes.
  static void flip_a_bit_of_every_record(const std::filesystem::path& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const auto n_bytes = static_cast<std::streamoff>(std::filesystem::file_size(path));
    for (std::streamoff at = 72; at < n_bytes; at += 64) {
      file.seekg(at);
      const int byte = file.get();
      file.seekp(at);
      file.put(static_cast<char>(byte ^ 1));
    }
  }

  TemporaryFolder folder_;
  SessionOptions options_;
  RecallLook look_;
  MeaningStats stats_;
};

TEST_F(KeptMeanings, are_read_after_a_restart_and_not_computed_again) {
  const SessionImage image = leave();
  open_with_embedder(on_disk());
  ask_again(image);
  // All but the block that was open.
  EXPECT_GE(stats_.n_read, look_.n_looked_at - 1);
  EXPECT_LE(stats_.n_blocks, 1);
  EXPECT_FALSE(last_.acts.recalled.empty());
}

TEST_F(KeptMeanings, of_another_embedding_model_are_not_used) {
  const SessionImage image = leave();
  open_with_embedder(on_disk(), 2);
  ask_again(image);
  EXPECT_EQ(stats_.n_read, 0);
  EXPECT_GE(stats_.n_blocks, look_.n_looked_at);
  EXPECT_FALSE(last_.acts.recalled.empty());
}

TEST_F(KeptMeanings, that_are_damaged_are_computed_again) {
  const SessionImage image = leave();
  engine_.reset();
  for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
    if (file.path().extension() == ".ebb") flip_a_bit_of_every_record(file.path());
  }
  open_with_embedder(on_disk());
  ask_again(image);
  EXPECT_EQ(stats_.n_read, 0);
  EXPECT_GT(stats_.n_blocks, 0);
  EXPECT_GT(look_.n_looked_at, 4);
}

// With a real embedding model, where there is one.
TEST(RecallOfParaphrases, are_found_by_embedding_and_not_by_words) {
  const auto embedder = find_test_file("../shared/models/all-minilm-l6-v2-q8_0.gguf");
  const auto model = find_test_file("models/ebb-recall.gguf");
  if (!embedder) GTEST_SKIP() << "no shared/models/all-minilm-l6-v2-q8_0.gguf";
  const Result<std::unique_ptr<Engine>> engine = Engine::open({.model = *model,
                                                               .n_threads = 1,
                                                               .block_size = 32,
                                                               .kv_budget_tokens = 256,
                                                               .policy = "recency",
                                                               .embedding_model = *embedder});
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  std::string text;
  for (int i = 0; i < 70; ++i) {
    text += i == 10 ? "The physician arrived at dawn carrying his bag. "
                    : "The shepherd crossed the quiet harbour before the rain began. ";
  }
  const std::string question = "When did our doctor come?";
  const auto look = [&](const char* selector) {
    const std::unique_ptr<Session> session = (*engine)->new_session().value();
    const Prompt prompt((*engine)->vocabulary().tokenize(text + question).value());
    const GenerationOptions options{
        .max_tokens = 1,
        .recall = {.cues = find_cues(question), .max_blocks = 2, .selectors = SelectorList::parse(selector).value()}};
    const auto generation = Generation::start(*session, (*engine)->vocabulary(), prompt, options).value();
    Generation* const running = generation.get();
    while (!running->finished()) EXPECT_TRUE((*engine)->step({&running, 1}).ok());
    std::string recalled;
    for (const BlockIndex block : running->turn_stats().acts.recalled) recalled += *session->block_text(block);
    return recalled;
  };
  EXPECT_THAT(look("lexical"), Not(HasSubstr("physician arrived")));
  EXPECT_THAT(look("embedding:wait=60000"), HasSubstr("physician arrived"));
}

}  // namespace
}  // namespace ebb
