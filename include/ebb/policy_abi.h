/* The pure parts of ebb's policies for other languages: a C ABI of plain arrays and JSON. python/ is built on it.
 *
 * No engine and no model is needed. What is small is JSON, what is large an array of doubles that the question names:
 *
 *   {"ask": "choose", "policy": "snapkv:window=16", "arrays": ["begin", "end", "window_mean"], ...}
 *
 * and arrays[i] is the one that "arrays"[i] names, row by row. Every length is checked against every other before anything is
 * computed; what does not fit is refused in words. The questions: docs/policy_abi.md.
 *
 * Thread rule: an ebb_areas by one thread at a time; all else from any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ebb_numbers {
  const double* values; /* null only where n is 0 */
  size_t n;
} ebb_numbers;

/* What a call answers; NULL where memory did not suffice even for that. ebb_reply_free() takes it back. */
typedef struct ebb_reply {
  int32_t code; /* 0, and the text is JSON; else what is wrong, in words: 1 + ebb::api::Code (ebb/result.h) */
  size_t n_bytes;
  const char* text; /* UTF-8, with a 0 behind it */
} ebb_reply;

void ebb_reply_free(ebb_reply* reply);

/* A question that needs no memory of earlier ones: list, show, observe, choose, rescue, shifts, rotation_table. */
ebb_reply* ebb_policy_ask(const char* question, size_t n_bytes, const ebb_numbers* arrays, size_t n_arrays);

/* A recording through the areas scheme, whole (docs/policy_replay.md). */
ebb_reply* ebb_policy_replay(const char* recording, size_t n_bytes);

/* One sequence under the areas scheme, step by step. */
typedef struct ebb_areas ebb_areas;

/* `recording` as above, without its steps. *areas is NULL where the code is not 0. ebb_areas_free() takes it back. */
ebb_reply* ebb_areas_make(const char* recording, size_t n_bytes, ebb_areas** areas);
ebb_reply* ebb_areas_copy(const ebb_areas* areas, ebb_areas** copy);
/* register_scores, register_diversity, evict, reset, state. An error leaves it as it was, but for diversity. */
ebb_reply* ebb_areas_act(ebb_areas* areas, const char* act, size_t n_bytes, const ebb_numbers* arrays, size_t n_arrays);
void ebb_areas_free(ebb_areas* areas);

#ifdef __cplusplus
}
#endif
