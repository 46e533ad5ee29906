// Linked into our programs under the thread sanitizer: tells it where ggml's threads meet.
//
// They are libgomp's, which is built without the sanitizer: it would not see that what one thread wrote before the barrier
// comes before what another reads behind it, and would call every hand-over a race. These stand before libgomp's own
// functions, call them, and say what they order: all before a parallel region, its threads, all behind it; and in it,
// all before a barrier, all behind it. So nothing of ggml, libgomp or our operations has to be suppressed, and races in
// one graph computation are seen. Other functions of libgomp order nothing that ggml's graphs rely on.
#if defined(__SANITIZE_THREAD__)

#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

namespace {

// What the sanitizer hangs the order on. One each for all regions: those of two graphs at once are then ordered too.
char fork_key;
char join_key;
char barrier_key;

struct Region {
  void (*function)(void*);
  void* data;
};

void run_in_thread(void* region) {
  __tsan_acquire(&fork_key);
  static_cast<Region*>(region)->function(static_cast<Region*>(region)->data);
  __tsan_release(&join_key);
}

template <class Function>
Function find_next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "%s is not in libgomp: was ggml built without OpenMP? Then leave this file out\n", name);
    std::abort();
  }
  return reinterpret_cast<Function>(found);
}

}  // namespace

extern "C" {

void GOMP_parallel(void (*function)(void*), void* data, unsigned n_threads, unsigned flags);
void GOMP_barrier();

void GOMP_parallel(void (*function)(void*), void* data, unsigned n_threads, unsigned flags) {
  using Parallel = void (*)(void (*)(void*), void*, unsigned, unsigned);
  static const auto next = find_next<Parallel>("GOMP_parallel");
  Region region = {function, data};
  __tsan_release(&fork_key);
  next(run_in_thread, &region, n_threads, flags);
  __tsan_acquire(&join_key);
}

void GOMP_barrier() {
  static const auto next = find_next<void (*)()>("GOMP_barrier");
  __tsan_release(&barrier_key);
  next();
  __tsan_acquire(&barrier_key);
}

}  // extern "C"

#endif
