// Engine: a model, its KV cache and cold store, and the sessions on it.
//
//   auto engine = ebb::api::Engine::open({.model = "model.gguf", .kv_budget_tokens = 4096});
//   if (!engine.ok()) { ... engine.error().message ... }
//   auto session = engine.value().new_session();
//   auto reply = session.value().say("What is the code of the north gate?");
//
// Thread rule: one thread at a time for an engine and all its sessions; cancel() from any thread or signal handler. An
// engine outlives its sessions.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "ebb/options.h"
#include "ebb/result.h"
#include "ebb/session.h"
#include "ebb/stats.h"

namespace ebb::api {

class Engine {
 public:
  struct State;
  static Result<Engine> open(const EngineOptions& options);
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  Result<Session> new_session(const SessionOptions& options = {});
  // Goes on where the image was taken. kDamaged for bytes that are no image, or another model's.
  Result<Session> restore(std::span<const std::byte> image, const SessionOptions& options = {});

  // Stops the reply under way, which ends as "cancelled"; what was computed stays in its session.
  void cancel();
  // Returns when all that was put into the cold store is on disk.
  Result<Done> flush();

  [[nodiscard]] EngineStats stats() const;

 private:
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ebb::api
