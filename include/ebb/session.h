// Session: one conversation, which may be far longer than its KV budget.
//
// Thread rule: an engine and all its sessions are used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ebb/blocks.h"
#include "ebb/events.h"
#include "ebb/options.h"
#include "ebb/result.h"
#include "ebb/stats.h"

namespace ebb::api {

struct Reply {
  std::string text;
  // "stop" (the model ended or a stop string came), "length" or "cancelled".
  std::string finish_reason;
  // Why it was cut short for want of room; empty otherwise.
  std::string note;
  TurnStats stats;
};

// Where memory runs short in the midst of a change to it, a session is lost: the reply ends with kOutOfBudget or a
// note, and what is asked of it then with kDamaged, or is nothing.
class Session {
 public:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // A user's message in the model's chat template, and the reply. Blocks of the message are named "name#0", "name#1",
  // ... kOutOfBudget before any work when the message cannot be served.
  Result<Reply> say(std::string_view message, const ReplyOptions& options = {}, const Listener& listener = {},
                    std::string_view name = "");
  // The text as it stands, without a template.
  Result<Reply> go_on(std::string_view text, const ReplyOptions& options = {}, const Listener& listener = {},
                      std::string_view name = "");

  [[nodiscard]] std::vector<Block> blocks() const;
  // The blocks of the parts called `name`; "name#i" is the i-th block of them.
  [[nodiscard]] std::vector<Block> find(std::string_view name) const;
  // The text of a block, control tokens shown. kNotFound for an index that is none.
  Result<std::string> text(std::int32_t block) const;
  // Pins hold what is hot now and what becomes hot later. How many parts have the name.
  std::int32_t pin(std::string_view name, bool pinned = true);
  // 1 is normal, more stays longer. kInvalidArgument unless finite and not negative.
  Result<Done> set_priority(std::string_view name, double priority);
  // How many blocks left or came back. What is recalled by name stays hot until others need the room.
  std::int32_t evict(std::string_view name);
  Result<std::int32_t> recall(std::string_view name);

  // All of the session but its K and V, which go to the cold store: what Engine::restore goes on from, in this process
  // or, with a disk, in a later one. As secret as the conversation itself.
  Result<std::vector<std::byte>> image();

  [[nodiscard]] SessionStats stats() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace ebb::api
