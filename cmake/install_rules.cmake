# cmake --install: the program, the bundled model where the program looks for it, and the public headers. Rooms are
# internal and are not installed.
include(GNUInstallDirs)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/ebb" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" OPTIONAL)
if(TARGET ebb)
  install(TARGETS ebb RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(FILES "${PROJECT_SOURCE_DIR}/models/ebb-recall.gguf" DESTINATION "${CMAKE_INSTALL_DATADIR}/ebb")
