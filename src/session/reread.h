// Reread: what a prompt's steps computed, read once more right behind the session, so that attention shows which blocks it takes
// to say it again (KVzip, Kim et al. 2025, arXiv 2505.23416). What it finds is noted (Ask::reread), and its rows are dropped.
//
// It gives steps of a bounded piece each. A piece begins with the last tokens before it, whose queries do not count: they lead
// on to it. The original asks the model in words to repeat itself, and lets a piece see no more than its own part of the context;
// here it sees all that is hot. Rows take room as those of a prompt do; what finds none is not read again, and counts as much as
// the rest on average. Thread rule: as its session's; the session must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/runner.h"
#include "session/session.h"

namespace ebb {

// Rows of a piece, those that lead on to it included. More: fewer steps, and more frames that its rows take.
inline constexpr std::int32_t kRereadRows = 256;

class Reread {
 public:
  explicit Reread(Session& session) : session_(&session) {}

  // Tokens that are still to be read again.
  [[nodiscard]] std::int32_t n_tokens() const { return session_->unread().n_tokens(); }
  // The next piece; nothing when there is none, it finds no room, or max_rows are too few for one.
  std::optional<SequenceInput> begin_step(std::int32_t max_rows, Acts& acts);
  void end_step(const std::optional<SequenceMass>& mass);
  void abandon_step();

 private:
  // How many of the piece's rows find a place.
  [[nodiscard]] std::int32_t make_room(std::int32_t max_rows, Acts& acts);

  Session* session_;
  std::vector<Token> piece_;
  std::int32_t n_lead_ = 0;
  std::int32_t n_step_ = 0;
};

}  // namespace ebb
