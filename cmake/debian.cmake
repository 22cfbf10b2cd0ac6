# `cpack -G DEB`, in a build folder: multihead_VERSION_ARCHITECTURE.deb with the tool, the libraries, the headers, and what
# CMake and pkg-config need to find them. scripts/release makes it from the tarball.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()  # a part of somebody else's project, whose packages are theirs
endif()

# Debian's policy asks for both of every package.
execute_process(COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/CHANGELOG.md OUTPUT_FILE ${PROJECT_BINARY_DIR}/changelog.gz
                COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/debian/copyright ${PROJECT_BINARY_DIR}/changelog.gz
        DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME multihead)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "train, run and look inside the heads of Transformers")
set(CPACK_PACKAGE_DESCRIPTION "A command-line tool and a C++20 library for encoder-decoder
Transformers on the CPU. It trains them on two files of sentences,
translates, scores, and shows, compares and mutes their attention heads.
This package holds the tool multihead, the static libraries and the headers.")
set(CPACK_PACKAGE_VENDOR "The multihead developers")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The multihead developers")  # CPack demands one; there is no address to give
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # what the tool is linked with
# What a program that links the static libraries is linked with (multihead-config.cmake finds them).
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libfmt-dev, libhwy-dev, libutf8proc-dev, nlohmann-json3-dev, pkg-config, zlib1g-dev")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)
include(CPack)
