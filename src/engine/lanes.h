// Lanes: the sessions of clients that say their whole history with each request.
//
// A lane is found by the id its client gives ("client~root", the root being its instructions), or by the same client's
// id where most of lane and history are the same; without an id by what it holds: the lane of the same owner that has
// most of the history, if that is half of the lane or more and beyond how conversations open (LaneAsk), or one of the
// same hint that has most of what was said since. Owners never share a lane. A lane is awake (its session
// lives, with what is hot) or parked (an image; its blocks are in the cold store and give their frames to others). It
// does not compute.
// Thread rule: one thread at a time (the scheduler's).
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "engine/lane_folder.h"
#include "engine/token_sketch.h"
#include "policy/offered.h"
#include "session/image.h"
#include "session/match.h"

namespace ebb {

// What lanes may be. Lanes there may be at most: of idle ones the longest unused of whoever has most goes, before those of known owners
// one of somebody whom nobody knows any more; its blocks stay in the cold store for what adopts them.
struct LaneLimits {
  std::size_t most = 256;
  // The most lanes of one owner; it then has a new one at its own cost.
  std::size_t most_of_owner = 256;
  // Whose lanes may still be asked for. Those of others, kept by an earlier process, do not go on; and whose key is taken away makes
  // room first.
  std::function<bool(std::string_view owner)> is_known_owner = [](std::string_view) { return true; };
  // The policies that owners may choose for theirs.
  OfferedPolicies policies;
};

// Which lane a request wants.
struct LaneAsk {
  std::string_view owner = {};
  // Empty: whichever idle lane fits.
  std::string_view id = {};
  // What many conversations of one client have in common, such as OpenAI's prompt_cache_key. It names no lane: nobody waits for
  // another because of it.
  std::string_view hint = {};
  std::span<const Token> history = {};
  // Of the history, its instructions, and these with the first message behind them: many conversations begin with the former,
  // and one that goes on with the latter. 0: not known.
  std::int32_t n_instructions = 0;
  std::int32_t n_opening = 0;
  std::string_view sparse_prompt = "none";
  // As the turn will hold it against what the lane holds; null: what has the same bytes is the same.
  const SameReply* same_reply = nullptr;
};

struct Lane {
  std::string owner;
  // As the client gave it; empty: found by what it holds.
  std::string id;
  // Of the last request without an id that had one.
  std::string hint;
  // What its owner calls it: the id, or one made up. Safe in a URL where the id is.
  std::string public_id;
  // Null while it is parked, or when it was never awake.
  std::unique_ptr<Session> session;
  std::optional<SessionImage> image;
  // A request is at work in it.
  bool busy = false;
  // The sketch of what it holds.
  TokenSketch sketch;
  std::int64_t last_use = 0;
  // Tokens that may be hot at most, whatever its share of the budget is; 0: no bound of its own.
  std::int32_t budget_tokens = 0;
  // Chooses what leaves, where a request does not say; null: the engine's.
  std::shared_ptr<const Policy> policy;
  [[nodiscard]] std::string own_policy() const { return policy != nullptr ? policy->spec() : std::string(); }
  // How its first prompt was read (policy/sparse_prompt.h).
  std::string sparse_prompt = "none";
  // The counters of its session, awake or parked.
  [[nodiscard]] SessionStats stats() const {
    if (session != nullptr) return session->stats();
    return image ? image->stats : SessionStats();
  }
  // The record of its open block that its kept image names; the next one is another's.
  std::optional<Hash128> open_record;
};

class Lanes {
 public:
  // The most tokens of an image from elsewhere. Its next request lists all of its blocks' words at once, while all
  // others wait: two to three seconds for as many. More: longer.
  static constexpr std::size_t kMostTakenTokens = std::size_t{1} << 20;

  // With a folder, which must outlive it, they are kept there from request to request.
  Lanes(Engine& engine, const SessionOptions& options, const LaneLimits& limits, LaneFolder* folder = nullptr);

  // The lane for a request; busy ones are found by id only. Without an id, only one whose prompts are read as this one's: nobody is
  // given what was computed otherwise without having said that it is his. Null when a new one is needed and all are busy.
  Lane* find_or_open(const LaneAsk& ask);
  // What a request did in a busy lane is done; it is idle.
  void release(Lane& lane);
  // Leaves it as one that was never awake: what it holds is not to be gone on with, and its next request computes or
  // recalls what it needs (law 8).
  static void let_go(Lane& lane);
  // Null where the owner has no such lane.
  [[nodiscard]] Lane* find(std::string_view owner, std::string_view public_id);
  // A new lane that goes on where the image was taken; "" has a public id made up. kInvalidArgument where there is one of
  // that name or the image has more than kMostTakenTokens, kDamaged for an image that does not fit, kOutOfBudget when
  // all lanes are busy.
  Result<Lane*> take_in(std::string_view owner, std::string_view id, const LaneImage& given);

  // Makes the lane's session live, with a budget of n_tokens, or as little above as its pins allow.
  Status wake(Lane& lane, std::int32_t n_tokens);
  // The same for a request, by whose policy it goes until the next; null: by its own.
  Status wake(Lane& lane, std::int32_t n_tokens, const std::shared_ptr<const Policy>& asked);
  // Makes the lane's session live with the lane's own budget; does nothing where it lives.
  Status wake(Lane& lane);
  // Its own policy from its next request on, and now where it is idle; null: none of its own.
  Status set_policy(Lane& lane, std::shared_ptr<const Policy> policy);
  // What chooses now in what it holds.
  [[nodiscard]] const Policy& policy(const Lane& lane) const;
  // The session of a parked lane as it would wake, with nothing hot, for those who only look: the lane stays parked.
  Result<std::unique_ptr<Session>> copy_parked(const Lane& lane) const;
  // Saves what is hot in the lane that was idle longest and frees its frames. False if none is awake and idle.
  bool park_one(const Lane* but_not = nullptr);
  void park(Lane& lane);
  // All of an idle lane but its hot K and V, which are saved first.
  SessionImage save(Lane& lane);
  // Gives an idle lane's image, as it is, to the folder; its blocks are saved already.
  void keep(Lane& lane);
  // Opens parked lanes for what an earlier process kept: images of this engine's model and layout, of known owners.
  void resume_kept();
  // Forgets an idle lane, and of its saved blocks those that no other lane of its owner begins with.
  void forget(Lane& lane);

  // From the next lane that is opened on.
  void set_owners(std::size_t most_of_owner, std::function<bool(std::string_view owner)> is_known) {
    limits_.most_of_owner = most_of_owner;
    limits_.is_known_owner = std::move(is_known);
  }

  // Lanes that were compared with histories token by token, so far, to find where a client's conversation goes on.
  [[nodiscard]] std::int64_t n_compared() const { return n_compared_; }
  [[nodiscard]] const std::list<Lane>& all() const { return lanes_; }
  [[nodiscard]] std::list<Lane>& all() { return lanes_; }

 private:
  [[nodiscard]] std::int32_t own_budget(const Lane& lane) const;
  [[nodiscard]] std::shared_ptr<const Policy> policy_for(const Lane& lane,
                                                         const std::shared_ptr<const Policy>& asked) const;
  Result<std::unique_ptr<Session>> make_session(const Lane& lane, std::int32_t n_tokens,
                                                const std::shared_ptr<const Policy>& asked) const;
  // Of an image that a stranger or another process wrote: what may be chosen here, else none.
  [[nodiscard]] std::shared_ptr<const Policy> kept_policy(std::string_view spec) const;
  [[nodiscard]] std::int32_t n_common(const Lane& lane, const LaneAsk& ask) const;
  [[nodiscard]] bool goes_on(const Lane& lane, const LaneAsk& ask, std::int32_t common) const;
  [[nodiscard]] Lane* find_by_history(const LaneAsk& ask);
  [[nodiscard]] Lane* find_changed(const LaneAsk& ask);
  void rename(Lane& lane, std::string_view id);
  void erase(Lane& lane);
  // Null when it has no room: as many lanes as may be, all busy.
  Lane* open(std::string_view owner, std::string_view id);
  // Forgets the owner's longest unused idle lane; false when all are busy.
  bool erase_oldest(std::string_view owner);
  // The same of whoever has most lanes, with one more of `next`'s, and an idle one.
  bool erase_of_greatest(std::string_view next);

  Engine& engine_;
  SessionOptions options_;
  LaneLimits limits_;
  LaneFolder* folder_;
  std::list<Lane> lanes_;
  std::int64_t n_uses_ = 0;
  std::int64_t n_compared_ = 0;
};

}  // namespace ebb
