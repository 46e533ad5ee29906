# The dashboard's files (src/server/page/) as part of the server's library, so that the program needs no folder beside it.
#
# embed_page(TARGET): adds a source to TARGET that defines page_files() (server/page_files.h). It is written at build time
# by this same file run as a script: each file becomes an array of bytes, so that nothing in it needs escaping.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  include_guard(GLOBAL)
  set(EBB_EMBED_PAGE_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

  function(embed_page target)
    set(folder "${PROJECT_SOURCE_DIR}/src/server/page")
    set(source "${PROJECT_BINARY_DIR}/page_files.cc")
    file(GLOB files CONFIGURE_DEPENDS "${folder}/*")
    add_custom_command(OUTPUT "${source}"
      COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${folder}" "-DSOURCE=${source}" -P "${EBB_EMBED_PAGE_SCRIPT}"
      DEPENDS ${files} "${EBB_EMBED_PAGE_SCRIPT}"
      COMMENT "Embedding the dashboard"
      VERBATIM)
    target_sources(${target} PRIVATE "${source}")
  endfunction()
  return()
endif()

file(GLOB files RELATIVE "${FOLDER}" "${FOLDER}/*")
set(arrays "")
set(entries "")
set(n 0)
foreach(name IN LISTS files)
  file(READ "${FOLDER}/${name}" hex HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND arrays "constexpr char kFile${n}[] = {${bytes}};\n")
  string(APPEND entries "    {\"${name}\", {kFile${n}, sizeof kFile${n}}},\n")
  math(EXPR n "${n} + 1")
endforeach()
file(WRITE "${SOURCE}" "// Written by cmake/embed_page.cmake from src/server/page/.
#include \"server/page_files.h\"

namespace ebb {
namespace {

${arrays}
constexpr PageFile kFiles[] = {
${entries}};

}  // namespace

std::span<const PageFile> page_files() { return kFiles; }

}  // namespace ebb
")
