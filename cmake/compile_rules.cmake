# How every file of ours is compiled. Linked privately (ebb_compile_rules), so that nobody who uses the library gets our
# warnings or flags.
include_guard(GLOBAL)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "ebb needs g++ 12 or newer (this is ${CMAKE_CXX_COMPILER_VERSION}). On Debian 12: script/deps")
endif()

# No -march=native: a build runs on every x86-64, and kernels ask the CPU at run time. Files that end in _avx2.cc,
# _avx512.cc and _avx512vnni.cc get these flags (add_room).
set(EBB_X86_64 OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(EBB_X86_64 ON)
endif()
set(EBB_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(EBB_FLAGS_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c)
set(EBB_FLAGS_avx512vnni ${EBB_FLAGS_avx512} -mavx512vnni)

add_library(ebb_compile_rules INTERFACE)

# Everywhere, whoever links threads: a precompiled header serves only those that define the same macros.
target_compile_options(ebb_compile_rules INTERFACE -pthread)

# Bits: a*b+c is fused only where a kernel says so. Otherwise the compiler decides per file and per flag set, and the
# same sum differs between two of our own kernels.
target_compile_options(ebb_compile_rules INTERFACE -ffp-contract=off)

target_compile_options(ebb_compile_rules INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
  # Designated initialisers leave members to their defaults on purpose (docs/house.md §6).
  -Wno-missing-field-initializers)
# Several files of a room, and several of its tests, are compiled as one, with their common headers parsed and their
# templates instantiated once: half to a quarter of the time, also when a header changes
# (docs/decisions/0016-the-first-build.md). Off: each file by itself, which is quicker where many cores rebuild one file.
option(EBB_UNITY "Compile several files of a room as one" ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
if(EBB_UNITY)
  # A struct of one file may hold what is in that file's unnamed namespace.
  target_compile_options(ebb_compile_rules INTERFACE -Wno-subobject-linkage)
endif()

if(EBB_WARNINGS_AS_ERRORS)
  target_compile_options(ebb_compile_rules INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False alarms: std::optional and std::variant under optimisation, and under every sanitizer.
  target_compile_options(ebb_compile_rules INTERFACE -Wno-maybe-uninitialized)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # g++ 12 reports std::string's own operator+ (GCC bug 105651), under several names where the string's header was
    # precompiled, and its own AVX-512 intrinsics (105593).
    target_compile_options(ebb_compile_rules INTERFACE -Wno-restrict -Wno-stringop-overflow
      -Wno-stringop-overread -Wno-array-bounds)
    list(APPEND EBB_FLAGS_avx512 -Wno-uninitialized)
    list(APPEND EBB_FLAGS_avx512vnni -Wno-uninitialized)
  endif()
endif()

if(EBB_SANITIZE)
  target_compile_options(ebb_compile_rules INTERFACE
    -fsanitize=${EBB_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(ebb_compile_rules INTERFACE -fsanitize=${EBB_SANITIZE})
  # g++'s own header adds vectors of signed integers, which wrap in the instruction (_mm512_reduce_add_epi64).
  foreach(kind avx2 avx512 avx512vnni)
    list(APPEND EBB_FLAGS_${kind} -fno-sanitize=signed-integer-overflow)
  endforeach()
  set(EBB_SANITIZER_SOURCES
    "${PROJECT_SOURCE_DIR}/cmake/sanitizer_defaults.cc" "${PROJECT_SOURCE_DIR}/cmake/sanitizer_openmp.cc")
  set_source_files_properties(${EBB_SANITIZER_SOURCES} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(EBB_SANITIZE STREQUAL "thread")
    # ggml's library must find ours before libgomp's.
    target_link_options(ebb_compile_rules INTERFACE
      -Wl,--export-dynamic-symbol=GOMP_parallel -Wl,--export-dynamic-symbol=GOMP_barrier)
  endif()
endif()
