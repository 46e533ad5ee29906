# One folder of src/ is one room: a library, its tests, its benchmarks. Files register themselves by their names:
#
#   x.cc               -> library ebb_ROOM (alias ebb::ROOM)
#   x_avx2.cc          -> the same library, built for AVX2, only on x86-64; likewise _avx512.cc and _avx512bf16.cc
#   x_test.cc          -> executable ROOM_test, every TEST in it registered with CTest
#   x_benchmark.cc     -> executable ROOM_benchmark
#
# Includes are written from src/ ("cache/frame_pool.h"); public headers from include/ ("ebb/engine.h"). A folder that
# does not exist yet is an empty room, and subfolders belong to their room. New files are seen without re-running cmake by hand (CONFIGURE_DEPENDS).
include_guard(GLOBAL)
include(GoogleTest)
include(room_table)

# Sorts the *.cc files of a folder by their names into OUT_sources, OUT_tests and OUT_benchmarks.
function(sort_room_files folder out)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS "${folder}/*.cc")
  list(REMOVE_ITEM files "${folder}/main.cc")
  set(tests ${files})
  set(benchmarks ${files})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER benchmarks INCLUDE REGEX "_benchmark\\.cc$")
  list(FILTER files EXCLUDE REGEX "_(test|benchmark)\\.cc$")
  if(NOT EBB_X86_64)
    list(FILTER files EXCLUDE REGEX "_avx(2|512|512bf16)\\.cc$")
  endif()
  foreach(file IN LISTS files)
    if(file MATCHES "_(avx2|avx512|avx512bf16)\\.cc$")
      set_source_files_properties("${file}" PROPERTIES COMPILE_OPTIONS "${EBB_FLAGS_${CMAKE_MATCH_1}}")
    endif()
  endforeach()
  set(${out}_sources "${files}" PARENT_SCOPE)
  set(${out}_tests "${tests}" PARENT_SCOPE)
  set(${out}_benchmarks "${benchmarks}" PARENT_SCOPE)
endfunction()

# Makes TARGET (a library without sources of its own becomes an INTERFACE one).
function(make_room_library target)
  if(ARGN)
    add_library(${target} STATIC ${ARGN})
    target_link_libraries(${target} PRIVATE ebb_compile_rules)
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope}
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>" "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>")
  set_target_properties(${target} PROPERTIES EBB_LINK_SCOPE ${scope})
endfunction()

function(make_room_tests target files libraries)
  if(NOT EBB_BUILD_TESTS OR NOT files)
    return()
  endif()
  add_executable(${target} ${files} ${EBB_SANITIZER_SOURCES})
  target_link_libraries(${target} PRIVATE ebb_compile_rules ${libraries} GTest::gmock_main)
  target_compile_definitions(${target} PRIVATE EBB_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${target}
    DISCOVERY_MODE PRE_TEST
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    # ggml's threads spin while they wait, and ctest runs several tests at once.
    PROPERTIES TIMEOUT 600 LABELS "${target}" ENVIRONMENT "OMP_WAIT_POLICY=passive")
endfunction()

function(make_room_benchmarks target files libraries)
  if(NOT EBB_BUILD_BENCHMARKS OR NOT files)
    return()
  endif()
  add_executable(${target} ${files})
  target_link_libraries(${target} PRIVATE ebb_compile_rules ${libraries} benchmark::benchmark_main)
endfunction()

# add_room(NAME [DEPS room...] [LIBS target...] [TEST_LIBS target...])
function(add_room name)
  cmake_parse_arguments(PARSE_ARGV 1 ROOM "" "" "DEPS;LIBS;TEST_LIBS")
  if(ROOM_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "add_room(${name}): unknown arguments: ${ROOM_UNPARSED_ARGUMENTS}")
  endif()
  require_lower_rooms(${name} ${ROOM_DEPS})

  sort_room_files("${PROJECT_SOURCE_DIR}/src/${name}" room)
  make_room_library(ebb_${name} ${room_sources})
  add_library(ebb::${name} ALIAS ebb_${name})
  get_target_property(scope ebb_${name} EBB_LINK_SCOPE)
  list(TRANSFORM ROOM_DEPS PREPEND "ebb_")
  target_link_libraries(ebb_${name} ${scope} ${ROOM_DEPS} ${ROOM_LIBS})

  make_room_tests(${name}_test "${room_tests}" "ebb_${name};${ROOM_TEST_LIBS}")
  make_room_benchmarks(${name}_benchmark "${room_benchmarks}" "ebb_${name};${ROOM_TEST_LIBS}")
  set_property(GLOBAL APPEND PROPERTY EBB_ROOMS ${name})
endfunction()

# add_room_executable(NAME EXECUTABLE [DEPS ...] [LIBS ...]): a room whose main.cc is a program. Everything but main.cc is
# the room's library, so that its tests can link it.
function(add_room_executable name executable)
  add_room(${name} ${ARGN})
  file(GLOB main CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/main.cc")
  if(main)
    add_executable(${executable} ${main} ${EBB_SANITIZER_SOURCES})
    target_link_libraries(${executable} PRIVATE ebb_compile_rules ebb_${name})
    set_target_properties(${executable} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  endif()
endfunction()

# add_tests_folder(FOLDER EXECUTABLE [LIBS ...]): tests over several rooms. Its *_test.cc make EXECUTABLE; its other *.cc
# are helpers linked into it. May link every room.
function(add_tests_folder folder executable)
  cmake_parse_arguments(PARSE_ARGV 2 TESTS "" "" "LIBS")
  sort_room_files("${PROJECT_SOURCE_DIR}/${folder}" folder)
  get_property(rooms GLOBAL PROPERTY EBB_ROOMS)
  list(TRANSFORM rooms PREPEND "ebb_")
  if(folder_tests)
    make_room_tests(${executable} "${folder_tests};${folder_sources}" "${rooms};${TESTS_LIBS}")
    if(TARGET ${executable})
      target_include_directories(${executable} PRIVATE "${PROJECT_SOURCE_DIR}")
    endif()
  endif()
endfunction()
