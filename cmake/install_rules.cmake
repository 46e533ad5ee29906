# cmake --install: the program and the public headers. Rooms are internal and are not installed.
include(GNUInstallDirs)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/ebb" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" OPTIONAL)
if(TARGET ebb)
  install(TARGETS ebb RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
