// Linked into our programs when a sanitizer is on, so that they behave the same under ctest, a debugger and by hand.
// Environment variables (ASAN_OPTIONS and so on) still come on top.

extern "C" {

const char* __asan_default_options();
const char* __asan_default_options() { return "detect_stack_use_after_return=1:strict_string_checks=1"; }

const char* __ubsan_default_options();
const char* __ubsan_default_options() { return "print_stacktrace=1"; }

const char* __tsan_default_options();
const char* __tsan_default_options() {
  // A frame memory that is too large is refused, not fatal.
  return "halt_on_error=1:second_deadlock_stack=1:allocator_may_return_null=1";
}

// libgomp keeps its thread pool until the process ends.
const char* __lsan_default_suppressions();
const char* __lsan_default_suppressions() { return "leak:libgomp.so\n"; }

}  // extern "C"
