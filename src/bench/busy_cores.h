// BusyCores: other programs that want cores all the time, as a browser or a compiler beside us does.
//
// Each is a process of its own that does nothing but go round, at our own priority, while it is resumed, and stands still while it is paused.
// Begin it before large memory is taken: each is a fork of ours. They end with us, however that comes.
// Thread rule: one thread at a time, which lives as long as they are to.
#pragma once

#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "base/status.h"

namespace ebb {

class BusyCores {
 public:
  BusyCores() = default;
  // Paused. kIo where the system starts no more processes.
  static Result<BusyCores> start(std::int32_t n_cores);
  ~BusyCores();
  BusyCores(BusyCores&& other) noexcept { swap(other); }
  BusyCores& operator=(BusyCores&& other) noexcept {
    swap(other);
    return *this;
  }

  // Idempotent, both. Once pause() returns, all stand still.
  void resume();
  void pause();
  [[nodiscard]] std::int32_t n_cores() const { return static_cast<std::int32_t>(children_.size()); }
  // What all of them together ran so far, in seconds of a core.
  [[nodiscard]] double seconds_run() const;

 private:
  void swap(BusyCores& other) noexcept;

  std::vector<pid_t> children_;
  bool runs_ = false;
};

}  // namespace ebb
