// For tests of attention: what a run of toy sessions (model/toy_attention.h) is given, and what it gives.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "cache/block_table.h"
#include "cache/sight.h"
#include "model/square_choice.h"

namespace ebb {
class StepReliances;
}

namespace ebb::toy {

struct Session {
  std::int32_t n_tokens = 0;
  Position first;
  std::vector<float> q, k, v;                    // [token][head][dim]
  std::vector<float> stored_k, stored_v;         // what the row type keeps of k and v; sealed, where it seals
  std::vector<float> open_k, open_v;             // ... and what it keeps of them while their block is open
  std::vector<std::vector<TableEntry>> written;  // [kv head]; frames are dealt out by Layer
  std::vector<std::vector<bool>> dropped;        // [kv head][entry]
  // A fork: its first blocks hold what those of another session of the run hold.
  std::optional<std::size_t> fork_of;
  std::vector<std::size_t> n_common;  // [kv head] blocks
};

// What the asking rows of one step gave slices, of one KV head: [entry][n_slices].
struct Slices {
  std::int32_t n_tokens = 0;  // that the session had after the step
  std::int32_t n_asking = 0;  // of them, the last ones
  std::vector<float> sum, window_sum, window_max, last;
};

struct Output {
  std::vector<float> out;      // [token][head][head_dim_v]
  std::vector<float> mass;     // [token][kv head][mass_stride]
  std::vector<Slices> slices;  // [step][kv head], of steps that attend
};

struct RunOptions {
  std::int32_t n_threads = 1;
  std::uint32_t frame_seed = 1;
  bool mass = true;
  // Forks attend to the frames of whom they are forks of, not to copies of their own.
  bool share = false;
  // Only tokens from here on are queries; those before are written and no more.
  std::int32_t attend_from = 0;
  // Of each step the last so many rows ask for mass, and for that of slices where there are any; in a window so many of them.
  std::int32_t n_slices = 0;
  std::int32_t n_mass_rows = INT32_MAX;
  std::int32_t n_window_rows = 2;
  // As the last layer of a model, of each step of which so many rows are outputs.
  bool last_layer = false;
  std::int32_t n_outputs = 0;
  // What rows leave out, of all sessions; not null with squares: where their choices go, of the last step at the end.
  Sight sight;
  SquareChoice* squares = nullptr;
  // Where what rows rely on goes, of the run's one session.
  StepReliances* reliances = nullptr;
};

// Whether the query at a token looks at an entry of its table, of one KV head.
using Looks = std::function<bool(std::int32_t token, std::size_t entry)>;

// Sessions in lock step: step i holds chunk i of every session that has one. A cut is the chunk lengths of a session.
using Cut = std::vector<std::int32_t>;

}  // namespace ebb::toy
