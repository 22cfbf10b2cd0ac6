# cmake --install BUILD, then find_package(multihead) in another project and link multihead::multihead.
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY MULTIHEAD_ROOMS)
set(targets multihead)
foreach(room ${rooms})
  list(APPEND targets multihead_${room})
  set_target_properties(multihead_${room} PROPERTIES EXPORT_NAME ${room})
endforeach()
install(TARGETS ${targets} EXPORT multihead-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT multihead-targets NAMESPACE multihead:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/multihead)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/multihead DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*-inl.h" EXCLUDE)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/multihead-config.cmake.in
                              ${PROJECT_BINARY_DIR}/multihead-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/multihead)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/multihead-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/multihead-config.cmake ${PROJECT_BINARY_DIR}/multihead-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/multihead)
