# build/PRESET/python/ebb_policy: the package of python/ with the shared library beside it, so that PYTHONPATH is all that it
# needs. The library exports the C ABI (include/ebb/policy_abi.h) and nothing else.
include_guard(GLOBAL)

set(EBB_PYTHON_FOLDER "${PROJECT_BINARY_DIR}/python")

add_library(ebb_policy_abi SHARED $<TARGET_OBJECTS:ebb_plain>)
target_link_libraries(ebb_policy_abi PRIVATE ebb_compile_rules ebb_replay ebb_policy ebb_json ebb_base)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  target_link_options(ebb_policy_abi PRIVATE "LINKER:--version-script,${PROJECT_SOURCE_DIR}/cmake/policy_abi.map")
endif()
set_target_properties(ebb_policy_abi PROPERTIES LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY "${EBB_PYTHON_FOLDER}/ebb_policy")

file(GLOB package_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/ebb_policy/*.py")
set(copied_files "")
foreach(file IN LISTS package_files)
  get_filename_component(name "${file}" NAME)
  set(copied "${EBB_PYTHON_FOLDER}/ebb_policy/${name}")
  add_custom_command(OUTPUT "${copied}" COMMAND "${CMAKE_COMMAND}" -E copy "${file}" "${copied}" DEPENDS "${file}"
    COMMENT "Copying ${name}" VERBATIM)
  list(APPEND copied_files "${copied}")
endforeach()
add_custom_target(ebb_python ALL DEPENDS ebb_policy_abi ${copied_files})
