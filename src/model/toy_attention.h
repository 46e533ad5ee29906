// For tests of attention: toy sessions of random K and V, run through write_kv() and attend() in any cut, company and
// thread count, beside a plain float64 reference.
//
// Each KV head of a session cuts its positions into blocks of its own, some partially filled, and drops some of them
// (holes). Frames are dealt out in shuffled order and filled with bytes that read as NaN before anything is written. Of a
// layout that seals, all blocks but the last are full, and open frames are held as the runtime holds them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "model/attention.h"
#include "model/slice_mass.h"
#include "model/toy_attention_run.h"
#include "model/toy_rows.h"

namespace ebb::toy {

inline void run_threads(std::int32_t n_threads, const std::function<void(std::int32_t)>& work) {
  std::vector<std::thread> threads;
  for (std::int32_t i = 1; i < n_threads; ++i) threads.emplace_back(work, i);
  work(0);
  for (std::thread& thread : threads) thread.join();
}

class Layer {
 public:
  Layer(const AttentionShape& shape, std::uint32_t seed) : shape_(shape), random_(seed) {}

  // Blocks hold 1 to block_size tokens (all of them when even); each is dropped with the given chance.
  Session make_session(std::int32_t n_tokens, Position first, double drop_chance, bool even) {
    Session session;
    session.n_tokens = n_tokens;
    session.first = first;
    const FrameLayout& layout = shape_.layout;
    fill(session.q, n_tokens * shape_.n_heads * layout.head_dim_k, 2.0F);
    fill(session.k, n_tokens * shape_.n_kv_heads * layout.head_dim_k, 2.0F);
    fill(session.v, n_tokens * shape_.n_kv_heads * layout.head_dim_v, 1.0F);
    for (std::int32_t i = 0; i < n_tokens * shape_.n_kv_heads; ++i) {
      append(session.stored_k, &session.k[to_size(i * layout.head_dim_k)], layout.head_dim_k);
      append(session.stored_v, &session.v[to_size(i * layout.head_dim_v)], layout.head_dim_v);
    }
    session.open_k = session.stored_k;
    session.open_v = session.stored_v;
    if (layout.seals()) seal_full_blocks(session);
    std::bernoulli_distribution drop(drop_chance);
    std::uniform_int_distribution<std::int32_t> length(even || layout.seals() ? layout.block_size : 1,
                                                       layout.block_size);
    for (std::int32_t h = 0; h < shape_.n_kv_heads; ++h) {
      std::vector<TableEntry> entries;
      std::vector<bool> dropped;
      for (std::int32_t begin = 0; begin < n_tokens;) {
        const std::int32_t n = std::min(length(random_), n_tokens - begin);
        entries.push_back({FrameIndex(0), first + begin, n});
        dropped.push_back(drop(random_));
        begin += n;
      }
      session.written.push_back(std::move(entries));
      session.dropped.push_back(std::move(dropped));
    }
    return session;
  }

  // Another session that begins with the first `n_common` tokens of session `of`, the index-th of the run.
  Session make_fork(const Session& of, std::size_t index, std::int32_t n_common, std::int32_t n_tokens) {
    Session fork = make_session(n_tokens, of.first, 0.2, true);
    const auto copy = [&](auto member) {
      const std::size_t n = (of.*member).size() / to_size(of.n_tokens) * to_size(n_common);
      std::copy_n((of.*member).begin(), n, (fork.*member).begin());
    };
    for (const auto member :
         {&Session::k, &Session::v, &Session::stored_k, &Session::stored_v, &Session::open_k, &Session::open_v}) {
      copy(member);
    }
    fork.fork_of = index;
    for (std::size_t h = 0; h < to_size(shape_.n_kv_heads); ++h) {
      std::vector<TableEntry>& entries = fork.written[h];
      fork.n_common.push_back(0);
      while (fork.n_common[h] < entries.size() && entries[fork.n_common[h]].span().end <= of.first + n_common) {
        fork.dropped[h][fork.n_common[h]] = of.dropped[h][fork.n_common[h]];
        ++fork.n_common[h];
      }
    }
    return fork;
  }

  [[nodiscard]] std::vector<Output> run(std::vector<Session> sessions, const std::vector<Cut>& cuts,
                                        const RunOptions& options) const {
    std::vector<std::byte> frames;
    std::vector<std::byte> open_frames;
    AttentionStep step;
    step.frames = deal_frames(sessions, frames, options.frame_seed);
    step.open_frames = deal_open_frames(sessions, open_frames);
    step.n_layers = 2;
    step.n_kv_heads = shape_.n_kv_heads;
    step.mass_stride = options.mass || options.reliances != nullptr ? mass_stride(sessions) : 0;
    std::vector<Output> outputs;
    for (const Session& session : sessions) {
      outputs.push_back(
          {.out = std::vector<float>(to_size(session.n_tokens * shape_.n_heads * shape_.layout.head_dim_v)),
           .mass = std::vector<float>(to_size(session.n_tokens * shape_.n_kv_heads * step.mass_stride))});
    }
    AttentionScratch scratch;
    std::vector<std::int32_t> done(sessions.size(), 0);
    for (std::size_t i = 0;; ++i) {
      std::vector<Chunk> chunks;
      for (std::size_t s = 0; s < sessions.size(); ++s) {
        if (i < cuts[s].size()) chunks.push_back({s, done[s], cuts[s][i]});
      }
      if (chunks.empty()) return outputs;
      run_step(step, sessions, chunks, options, scratch, outputs);
      for (const Chunk& chunk : chunks) done[chunk.session] += chunk.n_tokens;
    }
  }

  // One query, in float64: its heads' outputs, and the mass of every entry of the KV heads' tables, or of every one of
  // n_parts slices of each.
  [[nodiscard]] std::vector<double> reference(const Session& session, std::int32_t token, std::int32_t head,
                                              std::vector<double>* mass, std::int32_t n_parts = 1,
                                              const Looks& looks = {}) const {
    const FrameLayout& layout = shape_.layout;
    const std::int32_t kv_head = head / (shape_.n_heads / shape_.n_kv_heads);
    const float* const q = &session.q[to_size((token * shape_.n_heads + head) * layout.head_dim_k)];
    std::vector<double> out(to_size(layout.head_dim_v), 0.0);
    std::vector<std::pair<std::int32_t, double>> seen;  // token, score
    const std::vector<TableEntry> table = kept_entries(session, kv_head, session.n_tokens);
    const auto is_left_out = [&](std::size_t entry) { return looks && !looks(token, entry); };
    double greatest = -std::numeric_limits<double>::infinity();
    for_each_seen(session, table, token, [&](std::int32_t other, std::size_t entry) {
      if (is_left_out(entry)) return;
      const float* const k = key(session, token, other, kv_head);
      double score = 0.0;
      for (std::int32_t d = 0; d < layout.head_dim_k; ++d) score += static_cast<double>(q[d]) * k[d];
      seen.emplace_back(other, score * shape_.scale);
      greatest = std::max(greatest, seen.back().second);
    });
    double total = 0.0;
    for (auto& [other, p] : seen) total += (p = std::exp(p - greatest));
    std::size_t i = 0;
    for_each_seen(session, table, token, [&](std::int32_t other, std::size_t entry) {
      if (is_left_out(entry)) return;
      const double p = seen[i++].second / total;
      const float* const v = value(session, token, other, kv_head);
      for (std::size_t d = 0; d < out.size(); ++d) out[d] += p * v[d];
      const std::int32_t slot = session.first + other - table[entry].begin;
      if (mass != nullptr) (*mass)[entry * to_size(n_parts) + to_size(slot * n_parts / layout.block_size)] += p;
    });
    return out;
  }

  // The key and the value of `other` as the query at `token` sees them.
  [[nodiscard]] const float* key(const Session& session, std::int32_t token, std::int32_t other,
                                 std::int32_t kv_head) const {
    const std::vector<float>& keys = same_block(token, other) ? session.open_k : session.stored_k;
    return &keys[to_size((other * shape_.n_kv_heads + kv_head) * shape_.layout.head_dim_k)];
  }
  [[nodiscard]] const float* value(const Session& session, std::int32_t token, std::int32_t other,
                                   std::int32_t kv_head) const {
    const std::vector<float>& values = same_block(token, other) ? session.open_v : session.stored_v;
    return &values[to_size((other * shape_.n_kv_heads + kv_head) * shape_.layout.head_dim_v)];
  }

  // The longest table any session has, whatever was dropped.
  [[nodiscard]] static std::int32_t mass_stride(const std::vector<Session>& sessions) {
    std::size_t longest = 0;
    for (const Session& session : sessions) {
      for (const auto& entries : session.written) longest = std::max(longest, entries.size());
    }
    return static_cast<std::int32_t>(longest);
  }

  // The hot entries of a head's table once `n_written` tokens are written.
  [[nodiscard]] static std::vector<TableEntry> kept_entries(const Session& session, std::int32_t head,
                                                            std::int32_t n_written) {
    std::vector<TableEntry> kept = written_entries(session, head, n_written);
    std::vector<TableEntry> out;
    for (std::size_t e = 0; e < kept.size(); ++e) {
      if (!session.dropped[to_size(head)][e]) out.push_back(kept[e]);
    }
    return out;
  }

 private:
  struct Chunk {
    std::size_t session;
    std::int32_t begin;
    std::int32_t n_tokens;
  };

  void fill(std::vector<float>& out, std::int32_t n, float spread) {
    std::uniform_real_distribution<float> uniform(-spread, spread);
    out.resize(to_size(n));
    for (float& x : out) x = uniform(random_);
  }

  void append(std::vector<float>& out, const float* x, std::int32_t n) const {
    const std::vector<float> stored = stored_values(shape_.layout.open_layout().row_type, x, n);
    out.insert(out.end(), stored.begin(), stored.end());
  }

  // Blocks that seal are cut alike in every session.
  [[nodiscard]] bool same_block(std::int32_t token, std::int32_t other) const {
    return token / shape_.layout.block_size == other / shape_.layout.block_size;
  }

  void seal_full_blocks(Session& session) const {
    const FrameLayout& layout = shape_.layout;
    for (std::int32_t begin = 0; begin + layout.block_size <= session.n_tokens; begin += layout.block_size) {
      for (std::int32_t h = 0; h < shape_.n_kv_heads; ++h) {
        const auto row = [&](std::int32_t i) { return (begin + i) * shape_.n_kv_heads + h; };
        for (std::int32_t d = 0; d < layout.head_dim_k; ++d) {
          std::vector<float*> run;
          for (std::int32_t i = 0; i < layout.block_size; ++i) {
            run.push_back(&session.stored_k[to_size(row(i) * layout.head_dim_k + d)]);
          }
          seal_run(run);
        }
        for (std::int32_t i = 0; i < layout.block_size * layout.value_runs(); ++i) {
          const std::int32_t first = i % layout.value_runs() * kScaleGroup;
          std::vector<float*> run;
          for (std::int32_t d = first; d < std::min(first + kScaleGroup, layout.head_dim_v); ++d) {
            run.push_back(&session.stored_v[to_size(row(i / layout.value_runs()) * layout.head_dim_v + d)]);
          }
          seal_run(run);
        }
      }
    }
  }

  static std::vector<TableEntry> written_entries(const Session& session, std::int32_t head, std::int32_t n_written) {
    std::vector<TableEntry> out;
    for (TableEntry entry : session.written[to_size(head)]) {
      const std::int32_t begin = entry.begin - session.first;
      if (begin >= n_written) break;
      entry.n_tokens = std::min(entry.n_tokens, n_written - begin);
      out.push_back(entry);
    }
    return out;
  }

  // Gives every entry a frame of its own and poisons all of them; returns the first byte of frame 0.
  std::byte* deal_frames(std::vector<Session>& sessions, std::vector<std::byte>& frames, std::uint32_t seed) const {
    std::vector<TableEntry*> entries;
    for (Session& session : sessions) {
      for (auto& table : session.written) {
        for (TableEntry& entry : table) entries.push_back(&entry);
      }
    }
    std::vector<std::int32_t> order(entries.size() + 3);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    for (std::size_t i = 0; i < entries.size(); ++i) entries[i]->frame = FrameIndex(order[i]);
    frames.assign(order.size() * shape_.layout.frame_bytes() + 64, std::byte{0xFF});
    return frames.data() + (64 - reinterpret_cast<std::uintptr_t>(frames.data()) % 64);
  }

  // One for each entry that may be open, poisoned too; null where nothing seals.
  std::byte* deal_open_frames(std::vector<Session>& sessions, std::vector<std::byte>& frames) const {
    if (!shape_.layout.seals()) return nullptr;
    std::int32_t n_frames = 0;
    for (Session& session : sessions) {
      for (auto& table : session.written) {
        for (TableEntry& entry : table) entry.open = FrameIndex(n_frames++);
      }
    }
    frames.assign(to_size(n_frames) * shape_.layout.open_layout().frame_bytes() + 64, std::byte{0xFF});
    return frames.data() + (64 - reinterpret_cast<std::uintptr_t>(frames.data()) % 64);
  }

  // Only blocks that are open when the chunk begins or when it ends hold open frames.
  void let_go(std::vector<TableEntry>& entries, Position chunk_begin) const {
    for (TableEntry& entry : entries) {
      const bool was_open = entry.begin < chunk_begin && entry.span().end > chunk_begin;
      const bool stays_open = entry.n_tokens < shape_.layout.block_size;
      if (!was_open && !stays_open) entry.open = kNoFrame;
    }
  }

  // What was written before the chunk, in frames of its own, is in those of the other session too.
  static void share_frames(std::vector<TableEntry>& entries, const std::vector<Session>& sessions, const Chunk& chunk,
                           std::int32_t head) {
    const Session& session = sessions[chunk.session];
    if (!session.fork_of) return;
    const std::vector<TableEntry>& own = session.written[to_size(head)];
    const std::vector<TableEntry>& others = sessions[*session.fork_of].written[to_size(head)];
    for (TableEntry& entry : entries) {
      for (std::size_t e = 0; e < session.n_common[to_size(head)]; ++e) {
        const bool is_done = own[e].span().end <= session.first + chunk.begin;
        if (is_done && own[e].begin == entry.begin) entry.frame = others[e].frame;
      }
    }
  }

  void run_step(AttentionStep& step, const std::vector<Session>& sessions, const std::vector<Chunk>& chunks,
                const RunOptions& options, AttentionScratch& scratch, std::vector<Output>& outputs) const {
    const std::int32_t dk = shape_.layout.head_dim_k;
    const std::int32_t dv = shape_.layout.head_dim_v;
    std::vector<float> q, k, v;
    std::vector<std::vector<TableEntry>> written, kept;
    step.sequences.clear();
    std::int32_t n_rows = 0;
    bool attends = false;
    for (const Chunk& chunk : chunks) {
      const Session& session = sessions[chunk.session];
      const std::int32_t n_asking = options.mass ? std::min(options.n_mass_rows, chunk.n_tokens) : 0;
      step.sequences.push_back({.row_begin = n_rows,
                                .n_rows = chunk.n_tokens,
                                .first = session.first + chunk.begin,
                                .n_outputs = std::min(options.n_outputs, chunk.n_tokens),
                                .n_mass_rows = n_asking,
                                .n_window_rows = std::min(options.n_window_rows, n_asking),
                                .n_slices = options.n_slices,
                                .reliances = options.reliances,
                                .sight = options.sight});
      n_rows += chunk.n_tokens;
      attends = attends || chunk.begin + chunk.n_tokens > options.attend_from;
      copy_rows(q, session.q, chunk, shape_.n_heads * dk);
      copy_rows(k, session.k, chunk, shape_.n_kv_heads * dk);
      copy_rows(v, session.v, chunk, shape_.n_kv_heads * dv);
      written.resize(written.size() + to_size(shape_.n_kv_heads));  // layer 0 has nothing
      kept.resize(kept.size() + to_size(shape_.n_kv_heads));
      for (std::int32_t h = 0; h < shape_.n_kv_heads; ++h) {
        written.push_back(written_entries(session, h, chunk.begin + chunk.n_tokens));
        kept.push_back(kept_entries(session, h, chunk.begin + chunk.n_tokens));
        let_go(written.back(), session.first + chunk.begin);
        let_go(kept.back(), session.first + chunk.begin);
        if (options.share) share_frames(kept.back(), sessions, chunk, h);
      }
    }
    std::vector<float> out(to_size(n_rows * shape_.n_heads * dv), std::nanf(""));
    std::vector<float> mass(to_size(n_rows * shape_.n_kv_heads * step.mass_stride), 0.0F);
    AttentionTensors tensors;
    tensors.q = q.data();
    tensors.k = k.data();
    tensors.v = v.data();
    tensors.out = out.data();
    tensors.mass = options.mass || options.reliances != nullptr ? mass.data() : nullptr;
    tensors.last_layer = options.last_layer;
    tensors.q_head_stride = tensors.k_head_stride = to_size(dk);
    tensors.v_head_stride = tensors.out_head_stride = to_size(dv);
    tensors.q_row_stride = to_size(shape_.n_heads * dk);
    tensors.k_row_stride = to_size(shape_.n_kv_heads * dk);
    tensors.v_row_stride = to_size(shape_.n_kv_heads * dv);
    tensors.out_row_stride = to_size(shape_.n_heads * dv);

    step.tables.assign(written.begin(), written.end());
    scratch.reserve(shape_, step, options.n_threads);
    run_threads(options.n_threads, [&](std::int32_t ith) {
      write_kv(shape_, step, LayerIndex(1), tensors, scratch, ith, options.n_threads);
    });
    if (!attends) return;
    step.tables.assign(kept.begin(), kept.end());
    SliceMass slices;
    slices.begin(step);
    if (step.asks_slices()) tensors.slices = &slices;
    scratch.reserve(shape_, step, options.n_threads);
    if (options.squares != nullptr) {
      options.squares->begin(shape_, step, options.n_threads);
      run_threads(options.n_threads, [&](std::int32_t ith) {
        options.squares->choose(shape_, step, LayerIndex(1), tensors, scratch, ith, options.n_threads);
      });
      tensors.squares = options.squares;
    }
    run_threads(options.n_threads, [&](std::int32_t ith) {
      attend(shape_, step, LayerIndex(1), tensors, scratch, ith, options.n_threads);
    });
    run_threads(options.n_threads,
                [&](std::int32_t ith) { slices.end_layer(step, LayerIndex(1), ith, options.n_threads); });
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      for (std::int32_t h = 0; options.n_slices > 0 && h < shape_.n_kv_heads; ++h) {
        const HeadSlices head = slices.head(step, c, LayerIndex(1), HeadIndex(h));
        const auto copy = [](std::span<const float> x) { return std::vector<float>(x.begin(), x.end()); };
        outputs[chunks[c].session].slices.push_back({chunks[c].begin + chunks[c].n_tokens,
                                                     step.sequences[c].n_mass_rows, copy(head.sum),
                                                     copy(head.window_sum), copy(head.window_max), copy(head.last)});
      }
      const auto row = to_size(step.sequences[c].row_begin);
      Output& output = outputs[chunks[c].session];
      paste_rows(output.out, out, chunks[c], row, to_size(shape_.n_heads * dv));
      paste_rows(output.mass, mass, chunks[c], row, to_size(shape_.n_kv_heads * step.mass_stride));
    }
  }

  static void copy_rows(std::vector<float>& out, const std::vector<float>& from, const Chunk& chunk,
                        std::int32_t width) {
    const float* const begin = from.data() + to_size(chunk.begin * width);
    out.insert(out.end(), begin, begin + to_size(chunk.n_tokens * width));
  }
  static void paste_rows(std::vector<float>& out, const std::vector<float>& from, const Chunk& chunk, std::size_t row,
                         std::size_t width) {
    std::copy_n(from.data() + row * width, to_size(chunk.n_tokens) * width, out.data() + to_size(chunk.begin) * width);
  }

  // f(token, entry of `table`) for what the query at `token` sees, in position order.
  template <class F>
  void for_each_seen(const Session& session, const std::vector<TableEntry>& table, std::int32_t token, F f) const {
    const Position query = session.first + token;
    for (std::size_t e = 0; e < table.size(); ++e) {
      for (std::int32_t i = 0; i < table[e].n_tokens; ++i) {
        const Position at = table[e].begin + i;
        if (at > query || (shape_.window > 0 && query - at >= shape_.window)) continue;
        f(at - session.first, e);
      }
    }
  }

  AttentionShape shape_;
  std::mt19937 random_;
};

}  // namespace ebb::toy
