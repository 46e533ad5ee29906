# ggml and libllama, of the one version ebb is tested with: targets ggml::ggml and llama::llama.
#
# Where: LLAMA_PREFIX (cache variable, else environment) and nowhere else when it is set; otherwise CMAKE_PREFIX_PATH,
# then .deps/llama, which script/deps makes, then the system. No step here downloads or builds anything.
include_guard(GLOBAL)

# Both move fast and break their API without notice. To move on: change these three, script/deps' version, and read the
# oracle tests. Why an exact version: docs/decisions/0002-one-tested-llama.md.
set(EBB_GGML_VERSION 0.25.3)
set(EBB_LLAMA_VERSION 0.5.0)
set(EBB_LLAMA_PACKAGE "llama-cpp-python 0.3.36")
set(EBB_LLAMA_FIX
  "Mend it with\n    script/deps\nor point at an installation of that version: cmake --preset release -DLLAMA_PREFIX=/path")

set(LLAMA_PREFIX "" CACHE PATH "Prefix of an installed ggml + libllama (default: CMAKE_PREFIX_PATH, .deps/llama, system)")
option(EBB_ANY_LLAMA_VERSION "Accept untested versions of ggml and libllama" OFF)

set(llama_prefix "${LLAMA_PREFIX}")
if(NOT llama_prefix AND DEFINED ENV{LLAMA_PREFIX})
  set(llama_prefix "$ENV{LLAMA_PREFIX}")
endif()

# What an earlier configure found is kept only as long as the question is the same.
set(llama_question "${llama_prefix}|${CMAKE_PREFIX_PATH}")
if(NOT "${EBB_LLAMA_QUESTION}" STREQUAL "${llama_question}")
  foreach(answer ggml_DIR llama_DIR GGML_LIBRARY GGML_BASE_LIBRARY GGML_CPU_LIBRARY ggml-cpu_LIBRARY llama_LIBRARY)
    unset(${answer} CACHE)
  endforeach()
  set(EBB_LLAMA_QUESTION "${llama_question}" CACHE INTERNAL "")
endif()

if(llama_prefix)
  set(llama_search PATHS "${llama_prefix}" NO_DEFAULT_PATH)
else()
  set(llama_search HINTS "${PROJECT_SOURCE_DIR}/.deps/llama")  # after CMAKE_PREFIX_PATH, before the system
endif()
find_package(ggml CONFIG QUIET ${llama_search})
if(ggml_FOUND)
  find_package(llama CONFIG QUIET ${llama_search})
endif()

if(NOT ggml_FOUND OR NOT llama_FOUND)
  if(llama_prefix)
    set(where "${llama_prefix} (LLAMA_PREFIX)")
  else()
    set(where "CMAKE_PREFIX_PATH, .deps/llama or the system")
  endif()
  message(FATAL_ERROR "ggml ${EBB_GGML_VERSION} and libllama ${EBB_LLAMA_VERSION} are not in ${where}.\n${EBB_LLAMA_FIX}\n")
endif()

string(REGEX REPLACE "-.*$" "" llama_release "${llama_VERSION}")  # "0.5.0-dev" -> "0.5.0"
if(NOT ggml_VERSION STREQUAL EBB_GGML_VERSION OR NOT llama_release STREQUAL EBB_LLAMA_VERSION)
  set(difference "ebb is tested with ggml ${EBB_GGML_VERSION} and libllama ${EBB_LLAMA_VERSION} (${EBB_LLAMA_PACKAGE}), \
but ${ggml_DIR} holds ggml ${ggml_VERSION} and ${llama_DIR} libllama ${llama_VERSION}.")
  if(EBB_ANY_LLAMA_VERSION)
    message(WARNING "${difference} Going on, because EBB_ANY_LLAMA_VERSION is set.")
  else()
    message(FATAL_ERROR "${difference}\n${EBB_LLAMA_FIX}\nor try it as it is: -DEBB_ANY_LLAMA_VERSION=ON\n")
  endif()
endif()
message(STATUS "ggml ${ggml_VERSION}, libllama ${llama_VERSION}: ${GGML_INCLUDE_DIR}")

if(NOT TARGET llama::llama)
  add_library(llama::llama ALIAS llama)
endif()

# Programs of ours find the libraries where they lie, also after cmake --install.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # The libraries' own libraries too: llama.cpp, installed by cmake --install, has libraries that do not say where their
  # siblings lie, and the newer tag (DT_RUNPATH) would serve only what a program names itself.
  add_link_options(LINKER:--disable-new-dtags)
endif()
