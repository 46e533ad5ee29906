// TailQueries: the last queries of one sequence, as they were before they were rotated, by layer and query head.
//
// They are what the end of a prompt, or the tokens of a reply, look for: recall by digests scores keys that left with them
// (model/key_scorer.h). Kept in a ring of the last n_rows positions; a step copies what it computed of them and nothing else.
//
// Bytes: 4 n_layers n_heads n_dims for each row: 131 KB of a model of 1B parameters. It knows no model, session or policy.
// Thread rule: add() by all threads of an op; else one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/span.h"
#include "model/attention.h"
#include "model/query_moments.h"

namespace ebb {

class TailQueries {
 public:
  TailQueries(const QueryMoments::Shape& shape, std::int32_t n_rows);

  // As QueryMoments::add. Of a step that ends with an error some layers may have been copied: begin() anew.
  void add(LayerIndex layer, const QueryMoments::Rows& rows, std::int32_t ith, std::int32_t n_threads);
  // A step was computed, whose first row has this position and anchor. Rows that do not follow the last one's begin anew.
  void end_step(Position first, Position anchor, std::int32_t n_rows);
  // Forgets all.
  void begin() { n_rows_ = 0; }

  [[nodiscard]] const QueryMoments::Shape& shape() const { return shape_; }
  // The most that are kept.
  [[nodiscard]] std::int32_t n_most() const { return n_most_; }
  [[nodiscard]] std::int32_t n_rows() const { return n_rows_; }
  // The positions of the rows.
  [[nodiscard]] Span rows() const { return {end_ - n_rows_, end_}; }
  [[nodiscard]] Position anchor(Position row) const { return anchor_end_ - (end_ - row); }
  // Of layer * n_heads + query head: [n_dims].
  [[nodiscard]] std::span<const float> query(std::size_t head, Position row) const;
  [[nodiscard]] std::size_t bytes() const { return queries_.size() * sizeof(float); }

 private:
  [[nodiscard]] std::size_t offset(std::size_t head, Position row) const;

  QueryMoments::Shape shape_;
  std::int32_t n_most_;
  std::int32_t n_rows_ = 0;
  Position end_ = Position(0);
  Position anchor_end_ = Position(0);
  std::vector<float> queries_;  // [layer * n_heads + query head][position % n_most][n_dims]
};

// A layer's queries of a sequence, to whoever of it asks. From threads ith = 0..n_threads-1 of one op.
void give_queries(const SequenceRows& to, LayerIndex layer, const QueryMoments::Rows& rows, std::int32_t ith,
                  std::int32_t n_threads);

}  // namespace ebb
