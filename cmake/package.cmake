# cmake --install BUILD puts the tool, the libraries, the public headers and two ways to find them in place:
# find_package(multihead) with multihead::multihead, and pkg-config's multihead. docs/api.md says how they are used.
include(CMakePackageConfigHelpers)
include(cmake/public_headers.cmake)

get_property(rooms GLOBAL PROPERTY MULTIHEAD_ROOMS)
set(targets multihead)
foreach(room ${rooms})
  list(APPEND targets multihead_${room})
  set_target_properties(multihead_${room} PROPERTIES EXPORT_NAME ${room})
endforeach()
install(TARGETS ${targets} EXPORT multihead-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT multihead-targets NAMESPACE multihead:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/multihead)

mh_public_headers(headers)
foreach(header ${headers})
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/multihead-config.cmake.in
                              ${PROJECT_BINARY_DIR}/multihead-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/multihead)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/multihead-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/multihead-config.cmake ${PROJECT_BINARY_DIR}/multihead-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/multihead)

# The libraries that exist as files; a linker reads each of a group again until nothing is missing.
set(MULTIHEAD_LINK "")
foreach(room ${rooms})
  get_target_property(type multihead_${room} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    string(APPEND MULTIHEAD_LINK " -lmultihead_${room}")
  endif()
endforeach()
set(MULTIHEAD_PC_MPI "")
if(MULTIHEAD_MPI)
  set(MULTIHEAD_PC_MPI " ompi")
endif()
file(RELATIVE_PATH MULTIHEAD_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/multihead.pc.in ${PROJECT_BINARY_DIR}/multihead.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/multihead.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
