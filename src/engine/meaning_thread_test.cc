#include "engine/meaning_thread.h"

#include <atomic>
#include <cmath>
#include <future>

#include "llama.h"
#include <gtest/gtest.h>

#include "model/toy_gguf.h"

namespace ebb {
namespace {

constexpr std::size_t kMuchRoom = std::size_t{1} << 20;

std::unique_ptr<Embedder> toy_embedder(std::uint32_t seed = 1) {
  const ToyGguf toy({.n_ctx_train = 300, .seed = seed});
  const auto path = toy.write_with_keys(
      [](gguf_context* gguf) { gguf_set_val_u32(gguf, "llama.pooling_type", LLAMA_POOLING_TYPE_MEAN); });
  Result<std::unique_ptr<Embedder>> embedder = Embedder::open({.model = path});
  EBB_CHECK(embedder.ok(), "{}", embedder.status().message());
  return *std::move(embedder);
}

class MeaningThreads : public ::testing::Test {
 protected:
  std::unique_ptr<MeaningThread> open(ColdStore* store = nullptr) {
    Result<std::unique_ptr<MeaningThread>> thread = MeaningThread::open(*embedder_, {.store = store, .room = room_});
    EBB_CHECK(thread.ok(), "{}", thread.status().message());
    return *std::move(thread);
  }
  static std::unique_ptr<ColdStore> ram() { return ColdStore::open({}).value(); }
  static std::shared_ptr<Meaning> ask(MeaningThread& thread, std::uint64_t name, std::vector<std::string> texts) {
    return thread.ask_behind({name, 1}, {.texts = std::move(texts)});
  }
  static void wait_for(MeaningThread& thread, const std::vector<std::shared_ptr<Meaning>>& wanted) {
    thread.await(wanted, 1e9, {})->wait();
  }

  std::unique_ptr<Embedder> embedder_ = toy_embedder();
  ByteRoom room_{kMuchRoom};
};

TEST_F(MeaningThreads, give_the_embedders_vectors_of_each_text) {
  const auto thread = open();
  const auto block = ask(*thread, 1, {"the north gate", "rain on the hills"});
  const auto cue = thread->ask_now("rain on the hills");
  wait_for(*thread, {block, cue});
  ASSERT_EQ(block->vectors().size(), 2U);
  ASSERT_EQ(cue->vectors().size(), 1U);
  EXPECT_NEAR(block->vectors().cosine(1, cue->vectors(), 0), 1.0, 0.005);
  const std::vector<float> a = *embedder_->embed(*embedder_->tokenize("the north gate"));
  const std::vector<float> b = *embedder_->embed(*embedder_->tokenize("rain on the hills"));
  double exact = 0.0;
  for (std::size_t d = 0; d < a.size(); ++d) exact += double{a[d]} * b[d];
  EXPECT_NEAR(block->vectors().cosine(0, cue->vectors(), 0), exact, 0.01);
  const MeaningStats stats = thread->stats();
  EXPECT_EQ(stats.n_blocks, 1);
  EXPECT_EQ(stats.n_texts, 3);
  EXPECT_GT(stats.ms, 0.0);
  EXPECT_EQ(room_.used(), block->vectors().bytes().size());
}

TEST_F(MeaningThreads, compute_a_name_once_while_somebody_holds_it_and_give_its_memory_back) {
  const auto thread = open();
  auto one = ask(*thread, 1, {"the north gate"});
  EXPECT_EQ(ask(*thread, 1, {"the north gate"}), one);
  EXPECT_NE(ask(*thread, 2, {"the north gate"}), one);
  wait_for(*thread, {one});
  thread->wait_idle();
  one.reset();
  EXPECT_EQ(room_.used(), 0U);
}

TEST_F(MeaningThreads, do_not_compute_what_nobody_wants_any_more) {
  const auto thread = open();
  std::vector<std::shared_ptr<Meaning>> many;
  for (std::uint64_t i = 0; i < 200; ++i) many.push_back(ask(*thread, i, {"the north gate and more words"}));
  many.clear();
  thread->wait_idle();
  EXPECT_LT(thread->stats().n_blocks, 200);
  EXPECT_EQ(room_.used(), 0U);
}

TEST_F(MeaningThreads, read_what_was_kept_and_compute_nothing_twice) {
  const auto store = ram();
  double before = 0.0;
  {
    const auto thread = open(store.get());
    const auto block = ask(*thread, 1, {"the north gate", "rain"});
    wait_for(*thread, {block});
    before = block->vectors().cosine(0, block->vectors(), 1);
  }
  const auto later = open(store.get());
  const auto block = ask(*later, 1, {"the north gate", "rain"});
  const auto other_text = ask(*later, 1, {"the south gate", "rain"});
  const auto other_name = ask(*later, 2, {"the north gate", "rain"});
  wait_for(*later, {block, other_text, other_name});
  EXPECT_EQ(later->stats().n_read, 1);
  EXPECT_EQ(later->stats().n_blocks, 2);
  EXPECT_EQ(block->vectors().cosine(0, block->vectors(), 1), before);
}

TEST_F(MeaningThreads, never_use_vectors_of_another_embedding_model) {
  const auto store = ram();
  {
    const auto thread = open(store.get());
    wait_for(*thread, {ask(*thread, 1, {"the north gate"})});
  }
  embedder_ = toy_embedder(2);
  const auto thread = open(store.get());
  wait_for(*thread, {ask(*thread, 1, {"the north gate"})});
  EXPECT_EQ(thread->stats().n_read, 0);
  EXPECT_EQ(thread->stats().n_blocks, 1);
}

TEST_F(MeaningThreads, have_no_vectors_beyond_their_memory) {
  const std::size_t n_bytes = MeaningVectors::bytes_of(static_cast<std::size_t>(embedder_->n_dimensions()));
  ByteRoom small(n_bytes + n_bytes / 2);
  const auto thread = MeaningThread::open(*embedder_, {.room = small}).value();
  const auto first = ask(*thread, 1, {"the north gate"});
  wait_for(*thread, {first});
  const auto second = ask(*thread, 2, {"the south gate"});
  wait_for(*thread, {second});
  EXPECT_EQ(first->vectors().size(), 1U);
  EXPECT_TRUE(second->is_done());
  EXPECT_EQ(second->vectors().size(), 0U);
  EXPECT_EQ(thread->stats().n_without_room, 1);
  EXPECT_EQ(small.used(), n_bytes);
}

TEST_F(MeaningThreads, cut_a_text_that_is_longer_than_a_pass_and_count_it) {
  const auto thread = open();
  const auto block = ask(*thread, 1, {std::string(3000, 'x')});
  wait_for(*thread, {block});
  EXPECT_EQ(block->vectors().size(), 1U);
  EXPECT_EQ(thread->stats().n_cut, 1);
}

TEST_F(MeaningThreads, make_nobody_wait_longer_than_was_said) {
  const auto thread = open();
  std::vector<std::shared_ptr<Meaning>> many;
  for (std::uint64_t i = 0; i < 500; ++i) many.push_back(ask(*thread, i, {std::string(200, 'x') + std::to_string(i)}));
  std::promise<void> told;
  const auto wait = thread->await(many, 0.0, [&] { told.set_value(); });
  told.get_future().wait();
  EXPECT_TRUE(wait->is_ready());
  EXPECT_FALSE(many.back()->is_done());
}

TEST_F(MeaningThreads, that_end_tell_whoever_waits) {
  auto thread = open();
  std::vector<std::shared_ptr<Meaning>> many;
  for (std::uint64_t i = 0; i < 500; ++i) many.push_back(ask(*thread, i, {std::string(200, 'x') + std::to_string(i)}));
  const auto wait = thread->await(many, 1e9, {});
  thread.reset();
  EXPECT_TRUE(wait->is_ready());
  // Nothing to wait for is ready at once.
  const auto none = open()->await({}, 1e9, {});
  EXPECT_TRUE(none->is_ready());
}

}  // namespace
}  // namespace ebb
