# Every library but ggml and libllama, all from Debian 12. script/deps installs them.
include_guard(GLOBAL)

# find_or_say(PACKAGE DEBIAN_PACKAGE): find_package that names the Debian package to install.
macro(find_or_say package debian_package)
  find_package(${package} CONFIG QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} is missing. Run script/deps (or: apt-get install ${debian_package})")
  endif()
endmacro()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_or_say(fmt libfmt-dev)
find_or_say(nlohmann_json nlohmann-json3-dev)
find_or_say(CLI11 libcli11-dev)
# HTTP (src/server): Asio and Beast, headers only.
find_package(Boost 1.81 CONFIG QUIET)
if(NOT Boost_FOUND)
  message(FATAL_ERROR "Boost 1.81 is missing. Run script/deps (or: apt-get install libboost1.81-dev)")
endif()
# SHA-256 of API keys (src/server).
find_package(OpenSSL COMPONENTS Crypto QUIET)
if(NOT OpenSSL_FOUND)
  message(FATAL_ERROR "OpenSSL's libcrypto is missing. Run script/deps (or: apt-get install libssl-dev)")
endif()
if(EBB_BUILD_TESTS)
  find_or_say(GTest libgmock-dev)
  find_package(Python3 COMPONENTS Interpreter QUIET)
  enable_testing()
endif()
if(EBB_BUILD_BENCHMARKS)
  find_or_say(benchmark libbenchmark-dev)
endif()

# xxHash comes without a CMake config on Debian.
find_path(XXHASH_INCLUDE_DIR xxhash.h)
find_library(XXHASH_LIBRARY xxhash)
mark_as_advanced(XXHASH_INCLUDE_DIR XXHASH_LIBRARY)
if(NOT XXHASH_INCLUDE_DIR OR NOT XXHASH_LIBRARY)
  message(FATAL_ERROR "xxHash is missing. Run script/deps (or: apt-get install libxxhash-dev)")
endif()
add_library(xxHash::xxHash UNKNOWN IMPORTED)
set_target_properties(xxHash::xxHash PROPERTIES
  IMPORTED_LOCATION "${XXHASH_LIBRARY}"
  INTERFACE_INCLUDE_DIRECTORIES "${XXHASH_INCLUDE_DIR}"
  INTERFACE_COMPILE_DEFINITIONS "XXH_STATIC_LINKING_ONLY=")  # makes XXH3_state_t a complete type
# The library as most build it knows the CPU's wider registers, by functions of their own: twice to four times as fast.
include(CheckCXXSymbolExists)
set(CMAKE_REQUIRED_INCLUDES "${XXHASH_INCLUDE_DIR}")
set(CMAKE_REQUIRED_LIBRARIES "${XXHASH_LIBRARY}")
check_cxx_symbol_exists(XXH3_128bits_update_dispatch xxh_x86dispatch.h EBB_XXHASH_DISPATCHES)
unset(CMAKE_REQUIRED_INCLUDES)
unset(CMAKE_REQUIRED_LIBRARIES)
