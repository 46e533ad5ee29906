// A process that plays a random session and is killed -9 at a random moment, and what the next one goes on with.
//
// Many lives over one disk folder and one file with the session's image. Moments are counted in work, not in time:
// steps of the model, and file operations, of the store's threads and of the image; a write is cut in its middle. Each
// life goes on from the last image; between two lives the parent looks at what is left:
//
//   bytes    a block that comes back has the bytes that it had when its life first computed it (the ledger)
//   saved    what was flushed before the image comes back; only the rest is computed again
//   logits   where everything is visible, the session goes on bit for bit as a twin that never evicted
#include <csignal>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/random_model.h"
#include "session/image.h"
#include "tests/files.h"
#include "tests/fused_file_system.h"
#include "tests/solo_sessions.h"

namespace ebb::session_crash_test {
namespace {

constexpr std::int32_t kLives = 40;
constexpr std::uint64_t kMostWork = 400;  // of one life
constexpr std::int32_t kBlockSize = 8;
constexpr std::int32_t kBudgetBlocks = 10;
constexpr std::int32_t kLockStepTokens = (kBudgetBlocks - 1) * kBlockSize;  // can be hot as a whole
constexpr std::int32_t kMostTokens = 30 * kBlockSize;

const RandomModelSpec kModel = {
    .n_layers = 2, .n_embd = 32, .n_heads = 2, .n_kv_heads = 1, .head_dim = 32, .n_ff = 32, .n_vocab = 272};

struct Places {
  std::filesystem::path model;
  std::filesystem::path folder;

  [[nodiscard]] std::filesystem::path cold() const { return folder / "cold"; }
  [[nodiscard]] std::filesystem::path image() const { return folder / "image"; }
  [[nodiscard]] std::filesystem::path ledger() const { return folder / "ledger"; }
};

ColdStoreOptions store_options(const Places& places, FileSystem& system) {
  return {.ram_bytes = 16 << 10,
          .disk = DiskOptions{.folder = places.cold(), .max_bytes = 64 << 20, .segment_bytes = 16 << 10},
          .queue_bytes = 8 << 10,
          .system = &system};
}

const SessionOptions kOptions = {.budget_tokens = kBudgetBlocks * kBlockSize, .recent_tokens = kBlockSize};

std::unique_ptr<SoloSessions> open_sessions(const Places& places) {
  return *SoloSessions::open(places.model, {.n_threads = 1, .kv_type = RowType::kF16, .block_size = kBlockSize},
                             "recency");
}

bool is_full(const Session& session, BlockIndex block) { return session.hot().span(block).n_tokens() == kBlockSize; }

void cut(Session& session, std::int32_t n_tokens) { session.cut(Position(std::min(n_tokens, session.end().value()))); }

// --- what one life leaves for the next ---

// One line of the ledger: a full block's exact name, and the hash of the bytes that were computed for it.
struct Line {
  Hash128 name;
  Hash128 bytes;
};

std::vector<std::byte> read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> chars((std::istreambuf_iterator<char>(file)), {});
  const auto bytes = std::as_bytes(std::span(chars));
  return {bytes.begin(), bytes.end()};
}

std::map<Hash128, Hash128> read_ledger(const Places& places) {
  const std::vector<std::byte> bytes = read_all(places.ledger());
  std::map<Hash128, Hash128> ledger;
  Line line;
  for (std::size_t at = 0; at + sizeof line <= bytes.size(); at += sizeof line) {
    std::memcpy(&line, bytes.data() + at, sizeof line);
    ledger.emplace(line.name, line.bytes);
  }
  return ledger;
}

// The session's image, behind how many of its blocks may be missing from the cold store.
struct Left {
  SessionImage image;
  std::int32_t n_missing = 0;
};

std::optional<Left> read_image(const Places& places) {
  const std::vector<std::byte> bytes = read_all(places.image());
  Left left;
  if (bytes.size() < sizeof left.n_missing) return std::nullopt;
  std::memcpy(&left.n_missing, bytes.data(), sizeof left.n_missing);
  Result<SessionImage> image = decode_image(std::span(bytes).subspan(sizeof left.n_missing));
  EXPECT_TRUE(image.ok()) << image.status().message();
  if (!image.ok()) return std::nullopt;
  left.image = *std::move(image);
  return left;
}

// --- a life ---

// Ends by the fuse; what goes wrong before is told by another end.
class Life {
 public:
  Life(const Places& places, std::uint64_t seed, std::uint64_t n_work)
      : places_(places), random_(seed), fuse_(n_work), sessions_(open_sessions(places)), known_(read_ledger(places)) {
    Result<std::unique_ptr<ColdStore>> store = ColdStore::open(store_options(places, system_));
    require(store.ok(), "the store does not open");
    store_ = *std::move(store);
    // Whole lines only: the last one may have been cut.
    std::error_code ignored;
    std::filesystem::resize_file(places.ledger(), known_.size() * sizeof(Line), ignored);
    ledger_ = ::open(places.ledger().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    require(ledger_ >= 0, "the ledger does not open");
    const std::optional<Left> left = read_image(places);
    session_ = left ? *Session::restore(sessions_->deps(store_.get()), kOptions, left->image)
                    : std::make_unique<Session>(sessions_->deps(store_.get()), kOptions);
  }

  [[noreturn]] void play() {
    while (true) {
      operate();
      session_->check_invariants();
      look_at_bytes();
    }
  }

 private:
  static void require(bool holds, const char* what) {
    if (holds) return;
    (void)std::fprintf(stderr, "a life ends early: %s\n", what);
    ::_exit(1);
  }

  std::uint64_t draw(std::uint64_t n) { return random_() % n; }

  std::vector<BlockIndex> draw_blocks(std::uint64_t one_in) {
    std::vector<BlockIndex> blocks;
    for (std::int32_t b = 0; b < session_->n_blocks(); ++b) {
      if (draw(one_in) == 0) blocks.emplace_back(b);
    }
    return blocks;
  }

  void operate() {
    const std::int32_t end = session_->end().value();
    if (end > kMostTokens) return cut(*session_, static_cast<std::int32_t>(draw(kLockStepTokens)));
    switch (draw(8)) {
      case 0: return evict();
      case 1: return recall(draw_blocks(2));
      case 2: return cut(*session_, end - static_cast<std::int32_t>(draw(12)) * (end > 12 ? 1 : 0));
      case 3: return write_image();
      case 4: return say(static_cast<std::int32_t>(draw(40)));
      default:
        // With all of a short session visible, as the twin computes it.
        if (end > kLockStepTokens / 2 && draw(4) == 0) cut(*session_, static_cast<std::int32_t>(draw(kLockStepTokens)));
        if (session_->end().value() < kLockStepTokens) recall(draw_blocks(1));
        return say(static_cast<std::int32_t>(draw(12)));
    }
  }

  void say(std::int32_t n_tokens) {
    for (std::int32_t i = 0; i < n_tokens; ++i) {
      const std::vector<Token> token = {Token(static_cast<std::int32_t>(draw(kModel.n_vocab)))};
      Turn turn(*session_, Prompt(token));
      while (turn.n_pending() > 0) step(turn);
      turn.settle();
    }
  }

  // Evicts some blocks, half of the times in some heads only.
  void evict() {
    if (draw(2) == 0) {
      session_->evict(draw_blocks(3));
      return;
    }
    HeadSet heads(session_->shape().n_heads());
    for (std::size_t head = 0; head < heads.n_heads(); ++head) {
      if (draw(2) == 0) heads.add(head);
    }
    session_->evict(draw_blocks(3), heads);
  }

  // In the order of their positions, so that what is computed again sees what it saw.
  void recall(const std::vector<BlockIndex>& blocks) {
    for (std::size_t at = 0; at < blocks.size(); at += kBudgetBlocks / 2) {
      Turn turn(*session_, Prompt());
      turn.recall(std::span(blocks).subspan(at, std::min<std::size_t>(kBudgetBlocks / 2, blocks.size() - at)));
      turn.prepare_all(1);
      while (turn.n_recomputing() > 0) step(turn);
      turn.settle();
    }
  }

  void step(Turn& turn) {
    fuse_.burn();
    require(sessions_->step(turn).has_value(), "a step finds no room");
  }

  // Every full block that is hot has the bytes that were computed for its name; of new ones the ledger is told.
  void look_at_bytes() {
    for (std::int32_t b = 0; b < session_->n_blocks(); ++b) {
      const BlockIndex block(b);
      if (!session_->hot().is_hot(block) || !is_full(*session_, block)) continue;
      const Line line = {session_->exact_name(block), hash_bytes(sessions_->bytes_of(*session_, block))};
      const auto [known, is_new] = known_.emplace(line.name, line.bytes);
      require(known->second == line.bytes, "a block has other bytes than it had");
      if (is_new) require(::write(ledger_, &line, sizeof line) == sizeof line, "the ledger takes no line");
    }
  }

  // Into a file beside it, then in its place: an image is the old one or the new one. Half of them only after
  // everything is flushed.
  void write_image() {
    Left left{.image = {}, .n_missing = kMostTokens};
    if (draw(2) == 0) {
      (void)session_->save();
      require(store_->flush().ok(), "the store does not flush");
      left.n_missing = 0;
      for (std::int32_t b = 0; b < session_->n_blocks(); ++b) {
        left.n_missing += session_->state(BlockIndex(b)) == BlockState::kMissing ? 1 : 0;
      }
    }
    const std::vector<std::byte> image = encode_image(session_->image());
    const std::filesystem::path part = places_.folder / "image.part";
    {
      std::ofstream file(part, std::ios::binary | std::ios::trunc);
      file.write(reinterpret_cast<const char*>(&left.n_missing), sizeof left.n_missing);
      file.flush();
      fuse_.burn([&] { file.write(reinterpret_cast<const char*>(image.data()), std::ssize(image) / 2).flush(); });
      file.write(reinterpret_cast<const char*>(image.data()), std::ssize(image));
    }
    fuse_.burn();
    std::filesystem::rename(part, places_.image());
    fuse_.burn();
  }

  const Places& places_;
  std::mt19937_64 random_;
  Fuse fuse_;
  FusedFileSystem system_{fuse_};
  std::unique_ptr<SoloSessions> sessions_;
  std::unique_ptr<ColdStore> store_;
  std::unique_ptr<Session> session_;
  std::map<Hash128, Hash128> known_;
  int ledger_ = -1;
};

// --- what the parent looks at ---

class SessionCrash : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_random_model(kModel, file_.path()).ok());
    places_ = {.model = file_.path(), .folder = folder_.path()};
    sessions_ = open_sessions(places_);
    twin_ = std::make_unique<Session>(sessions_->deps(nullptr), kOptions);
  }

  void live_and_die(std::uint64_t seed, std::uint64_t n_work) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) Life(places_, seed, n_work).play();
    int how = 0;
    ASSERT_EQ(::waitpid(child, &how, 0), child);
    ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) << how;
  }

  // Brings back every block, one by one.
  void check_bytes(ColdStore& store, const Left& left) {
    const std::map<Hash128, Hash128> ledger = read_ledger(places_);
    const auto session = *Session::restore(sessions_->deps(&store), kOptions, left.image);
    std::int32_t n_lost = 0;
    for (std::int32_t b = 0; b < session->n_blocks(); ++b) {
      const BlockIndex block(b);
      const Hash128 name = session->exact_name(block);
      Turn turn(*session, Prompt());
      turn.recall(std::vector{block});
      turn.prepare_all(1);
      n_lost += turn.n_recomputing();
      if (turn.n_recomputing() == 0 && is_full(*session, block)) {
        ASSERT_TRUE(ledger.contains(name)) << "block " << b << " was never computed";
        ASSERT_EQ(hash_bytes(sessions_->bytes_of(*session, block)), ledger.at(name)) << "block " << b;
        ++n_compared_blocks_;
      }
      while (turn.n_recomputing() > 0) ASSERT_TRUE(sessions_->step(turn).has_value());
      turn.settle();
      ASSERT_TRUE(session->hot().is_hot(block)) << "block " << b;
    }
    EXPECT_LE(n_lost, left.n_missing) << "of " << session->n_blocks() << " blocks, after a flush";
    n_lost_blocks_ += n_lost;
  }

  // As far as the twin has computed the same, both go on.
  void check_logits(ColdStore& store, const Left& left) {
    const auto session = *Session::restore(sessions_->deps(&store), kOptions, left.image);
    cut(*session, kLockStepTokens);
    bring_twin_to(session->tokens());
    std::int32_t n_same = 0;
    for (; n_same < session->n_blocks(); ++n_same) {
      const BlockIndex block(n_same);
      Turn turn(*session, Prompt());
      turn.recall(std::vector{block});
      turn.prepare_all(1);
      while (turn.n_recomputing() > 0) ASSERT_TRUE(sessions_->step(turn).has_value());
      turn.settle();
      // What was computed beside a hole is not what the twin has.
      if (session->exact_name(block) != twin_->exact_name(block)) break;
      if (!is_full(*session, block)) continue;  // slots that hold no token have no bytes to compare
      ASSERT_EQ(sessions_->bytes_of(*session, block), sessions_->bytes_of(*twin_, block)) << "block " << n_same;
    }
    cut(*session, n_same * kBlockSize);
    cut(*twin_, n_same * kBlockSize);
    for (std::int32_t i = 0; i < kBlockSize; ++i) {
      const std::vector<Token> token = {Token(static_cast<std::int32_t>(random_() % kModel.n_vocab))};
      const std::vector<float> ours = say(*session, token);
      const std::vector<float> theirs = say(*twin_, token);
      ASSERT_EQ(std::memcmp(ours.data(), theirs.data(), ours.size() * sizeof(float)), 0) << "token " << i;
      n_compared_logits_ += n_same > 0 ? 1 : 0;
    }
  }

  void bring_twin_to(std::span<const Token> tokens) {
    const auto [ours, theirs] = std::ranges::mismatch(tokens, twin_->tokens());
    const auto n_same = ours - tokens.begin();
    cut(*twin_, static_cast<std::int32_t>(n_same));
    for (const Token token : tokens.subspan(static_cast<std::size_t>(n_same))) (void)say(*twin_, std::vector{token});
  }

  std::vector<float> say(Session& session, const std::vector<Token>& token) {
    Turn turn(session, Prompt(token));
    const std::optional<std::vector<float>> logits = sessions_->step(turn);
    turn.settle();
    EXPECT_TRUE(logits && !logits->empty());
    return logits.value_or(std::vector<float>(1));
  }

  TemporaryFile file_{".gguf"};
  TemporaryFolder folder_;
  Places places_;
  std::mt19937_64 random_{29};
  std::unique_ptr<SoloSessions> sessions_;
  std::unique_ptr<Session> twin_;
  std::int64_t n_compared_blocks_ = 0;
  std::int64_t n_compared_logits_ = 0;
  std::int64_t n_lost_blocks_ = 0;
};

TEST_F(SessionCrash, a_killed_process_costs_work_and_changes_no_byte_and_no_logit) {
  for (std::int32_t n_lives = 0; n_lives < kLives; ++n_lives) {
    const std::uint64_t seed = 100 + static_cast<std::uint64_t>(n_lives);
    const std::uint64_t n_work = 1 + random_() % kMostWork;
    SCOPED_TRACE(fmt::format("life {}: seed {}, killed after {} pieces of work", n_lives, seed, n_work));
    live_and_die(seed, n_work);
    if (HasFatalFailure()) return;
    const std::optional<Left> left = read_image(places_);
    if (!left) continue;
    const auto store = ColdStore::open(store_options(places_, real_file_system()));
    ASSERT_TRUE(store.ok()) << store.status().message();
    check_bytes(**store, *left);
    if (HasFatalFailure()) return;
    check_logits(**store, *left);
    if (HasFatalFailure()) return;
    (*store)->check_invariants();
  }
  RecordProperty("blocks_compared", std::to_string(n_compared_blocks_));
  RecordProperty("logits_compared", std::to_string(n_compared_logits_));
  RecordProperty("blocks_lost", std::to_string(n_lost_blocks_));
  EXPECT_GT(n_compared_blocks_, kLives);
  EXPECT_GT(n_compared_logits_, kLives);
  EXPECT_GT(n_lost_blocks_, 0) << "some images are written before what they name is saved";
}

}  // namespace
}  // namespace ebb::session_crash_test
