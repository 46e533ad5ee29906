// Ctrl-C, as something that commands can ask about.
//
// While a listener lives, the first Ctrl-C is noted, and stops the computation of the engine that listens; a second one
// that comes before the first was taken ends the program at once, as without a listener. Thread rule: one listener at a
// time, in the main thread.
#pragma once

namespace ebb {

class Engine;

class InterruptListener {
 public:
  InterruptListener();
  ~InterruptListener();
  InterruptListener(const InterruptListener&) = delete;
  InterruptListener& operator=(const InterruptListener&) = delete;

  // The engine must outlive the listener.
  void stop_also(Engine& engine);
  [[nodiscard]] bool interrupted() const;
  // Whether there was a Ctrl-C since the last call; lets the engine compute again.
  bool take();
  // Waits until stdin has something to read (true) or Ctrl-C comes (false).
  [[nodiscard]] bool wait_for_input() const;
};

}  // namespace ebb
