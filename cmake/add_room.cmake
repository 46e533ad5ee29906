# One folder of src/ is one room: a library, its tests, its benchmarks. Files register themselves by their names:
#
#   x.cc               -> library ebb_ROOM
#   x_avx2.cc          -> the same library, built for AVX2, only on x86-64; likewise _avx512.cc and _avx512vnni.cc
#   x_test.cc          -> executable ROOM_test, every TEST in it registered with CTest
#   x_benchmark.cc     -> executable ROOM_benchmark
#   toy_x.cc, fault_x.cc, x_twin.cc -> library ebb_ROOM_testing, which only tests link: this room's and those of all rooms
#                         above it
#
# Includes are written from src/ ("cache/frame_pool.h"); public headers from include/ ("ebb/engine.h"). Subfolders belong to
# their room. New files are seen without re-running cmake by hand (CONFIGURE_DEPENDS).
include_guard(GLOBAL)
include(GoogleTest)
include(precompile)
include(room_table)

# Sorts the *.cc files of a folder by their names into OUT_sources, OUT_tests, OUT_benchmarks and OUT_testing.
function(sort_room_files folder out)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS "${folder}/*.cc")
  list(REMOVE_ITEM files "${folder}/main.cc")
  set(tests ${files})
  set(benchmarks ${files})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER benchmarks INCLUDE REGEX "_benchmark\\.cc$")
  list(FILTER files EXCLUDE REGEX "_(test|benchmark)\\.cc$")
  set(testing ${files})
  set(testing_names "/((toy|fault)_[^/]*|[^/]*_twin)\\.cc$")
  list(FILTER testing INCLUDE REGEX "${testing_names}")
  list(FILTER files EXCLUDE REGEX "${testing_names}")
  if(NOT EBB_X86_64)
    list(FILTER files EXCLUDE REGEX "_avx(2|512|512vnni)\\.cc$")
  endif()
  foreach(file IN LISTS files)
    if(file MATCHES "_(avx2|avx512|avx512vnni)\\.cc$")
      set_source_files_properties("${file}" PROPERTIES
        COMPILE_OPTIONS "${EBB_FLAGS_${CMAKE_MATCH_1}}" SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
  set(${out}_sources "${files}" PARENT_SCOPE)
  set(${out}_tests "${tests}" PARENT_SCOPE)
  set(${out}_benchmarks "${benchmarks}" PARENT_SCOPE)
  set(${out}_testing "${testing}" PARENT_SCOPE)
endfunction()

function(make_room_library target precompiled)
  add_library(${target} STATIC ${ARGN})
  target_link_libraries(${target} PRIVATE ebb_compile_rules)
  precompile(${target} ${precompiled})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${EBB_UNITY})
  target_include_directories(${target} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>" "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>")
endfunction()

# What serves tests of this room and of the rooms above it, and no program.
function(make_testing_library room files)
  if(NOT EBB_BUILD_TESTS OR NOT files)
    return()
  endif()
  add_library(ebb_${room}_testing STATIC ${files})
  precompile(ebb_${room}_testing standard)
  target_link_libraries(ebb_${room}_testing PRIVATE ebb_compile_rules PUBLIC ebb_${room})
  set_property(GLOBAL APPEND PROPERTY EBB_TESTING_LIBRARIES ebb_${room}_testing)
endfunction()

function(make_room_tests target files libraries)
  if(NOT EBB_BUILD_TESTS OR NOT files)
    return()
  endif()
  get_property(testing GLOBAL PROPERTY EBB_TESTING_LIBRARIES)
  add_executable(${target} ${files} ${EBB_SANITIZER_SOURCES})
  target_link_libraries(${target} PRIVATE ebb_compile_rules ${testing} ${libraries} GTest::gmock_main)
  target_compile_definitions(${target} PRIVATE EBB_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  precompile(${target} tests)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${EBB_UNITY})
  # Compiling tests takes longer than running them; what they test is a library, optimised as it ships.
  target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-O1>")
  gtest_discover_tests(${target}
    DISCOVERY_MODE PRE_TEST
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    # ggml's threads spin while they wait, and ctest runs several tests at once.
    PROPERTIES TIMEOUT 600 LABELS "${target}" ENVIRONMENT "OMP_WAIT_POLICY=passive")
endfunction()

function(make_room_benchmarks target files libraries)
  if(NOT EBB_BUILD_BENCHMARKS OR NOT EBB_BUILD_TESTS OR NOT files)
    return()
  endif()
  get_property(testing GLOBAL PROPERTY EBB_TESTING_LIBRARIES)
  add_executable(${target} ${files})
  target_link_libraries(${target} PRIVATE ebb_compile_rules ${testing} ${libraries} benchmark::benchmark_main)
endfunction()

# add_room(NAME [PRECOMPILED kind] [DEPS room...] [LIBS target...])     kinds: cmake/precompile.cmake; default: standard
function(add_room name)
  cmake_parse_arguments(PARSE_ARGV 1 ROOM "" "PRECOMPILED" "DEPS;LIBS")
  if(ROOM_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "add_room(${name}): unknown arguments: ${ROOM_UNPARSED_ARGUMENTS}")
  endif()
  require_lower_rooms(${name} ${ROOM_DEPS})

  sort_room_files("${PROJECT_SOURCE_DIR}/src/${name}" room)
  if(NOT ROOM_PRECOMPILED)
    set(ROOM_PRECOMPILED standard)
  endif()
  make_room_library(ebb_${name} ${ROOM_PRECOMPILED} ${room_sources})
  list(TRANSFORM ROOM_DEPS PREPEND "ebb_")
  target_link_libraries(ebb_${name} PUBLIC ${ROOM_DEPS} ${ROOM_LIBS})

  make_testing_library(${name} "${room_testing}")
  make_room_tests(${name}_test "${room_tests}" ebb_${name})
  make_room_benchmarks(${name}_benchmark "${room_benchmarks}" ebb_${name})
  set_property(GLOBAL APPEND PROPERTY EBB_ROOMS ${name})
endfunction()

# add_room_executable(NAME EXECUTABLE [DEPS ...] [LIBS ...]): a room whose main.cc is a program. Everything but main.cc is
# the room's library, so that its tests can link it.
function(add_room_executable name executable)
  add_room(${name} ${ARGN})
  add_executable(${executable} "${PROJECT_SOURCE_DIR}/src/${name}/main.cc" ${EBB_SANITIZER_SOURCES})
  target_link_libraries(${executable} PRIVATE ebb_compile_rules ebb_${name})
  set_target_properties(${executable} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
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
