# cmake --install: the program, the bundled model where the program looks for it, and the public headers. Rooms are
# internal and are not installed.
include(GNUInstallDirs)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/ebb" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" OPTIONAL)
if(TARGET ebb)
  install(TARGETS ebb RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(TARGETS ebb_policy_abi LIBRARY DESTINATION "${CMAKE_INSTALL_DATADIR}/ebb/python/ebb_policy")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/ebb_policy" DESTINATION "${CMAKE_INSTALL_DATADIR}/ebb/python"
  FILES_MATCHING PATTERN "*.py")
install(FILES "${PROJECT_SOURCE_DIR}/models/ebb-recall.gguf" DESTINATION "${CMAKE_INSTALL_DATADIR}/ebb")
