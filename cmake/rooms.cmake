# mh_room(NAME ROOMS ... NEEDS ...): the library multihead_NAME made of every source in multihead/NAME. A name may be that of a
# folder in a folder: heads/sites is the library multihead_heads_sites.
# mh_lab_room(NAME ...): the library multihead_lab_NAME made of lab/NAME; nobody else's program gets it, and with
# -DMULTIHEAD_LAB=OFF there is none.
# ROOMS are the rooms it may include (lab_NAME: one of the laboratory's); NEEDS are libraries from outside, seen by this
# room's sources only.

# -Wrestrict: gcc 12 warns falsely of std::string (its bug 105651).
set(MULTIHEAD_WARNINGS -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-psabi $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)

if(NOT MULTIHEAD_TARGETS MATCHES "^(all|native|baseline)$")
  message(FATAL_ERROR "MULTIHEAD_TARGETS is all, native or baseline, not ${MULTIHEAD_TARGETS}")
endif()

function(mh_flags target)
  target_compile_options(${target} PRIVATE ${MULTIHEAD_WARNINGS} $<$<BOOL:${MULTIHEAD_WERROR}>:-Werror>)
  if(MULTIHEAD_SANITIZE)
    # A view of no rows may be null, and its columns are null and an offset, which nobody reads: no pointer-overflow.
    target_compile_options(${target} PUBLIC -fsanitize=${MULTIHEAD_SANITIZE} -fno-sanitize=pointer-overflow
      -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${MULTIHEAD_SANITIZE})
  endif()
endfunction()

# Every source of a target as one: headers such as json's are read and instantiated once. Files that Highway compiles once
# for each instruction set include themselves, so they stay alone; MULTIHEAD_TARGETS says for which ones.
function(mh_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${MULTIHEAD_UNITY} UNITY_BUILD_BATCH_SIZE 0)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    file(STRINGS ${source} includes REGEX "foreach_target.h")
    if(includes)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      if(NOT MULTIHEAD_TARGETS STREQUAL "all")
        set_source_files_properties(${source} PROPERTIES
          COMPILE_DEFINITIONS HWY_COMPILE_ONLY_STATIC
          COMPILE_OPTIONS "$<$<STREQUAL:${MULTIHEAD_TARGETS},native>:-march=native>")
      endif()
    endif()
  endforeach()
endfunction()

function(mh_library target folder)
  cmake_parse_arguments(ROOM "" "" "ROOMS;NEEDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  # NAME_web.cpp stands in for NAME.cpp or NAME_posix.cpp in a module for pages, and is nowhere else.
  foreach(source ${sources})
    if(source MATCHES "^(.*)_web\\.cpp$")
      if(EMSCRIPTEN)
        list(REMOVE_ITEM sources ${CMAKE_MATCH_1}.cpp ${CMAKE_MATCH_1}_posix.cpp)
      else()
        list(REMOVE_ITEM sources ${source})
      endif()
    endif()
  endforeach()
  if(NOT sources)
    add_library(${target} INTERFACE)
    foreach(room ${ROOM_ROOMS})
      string(REPLACE "/" "_" room ${room})
      target_link_libraries(${target} INTERFACE multihead_${room})
    endforeach()
    target_include_directories(${target} INTERFACE
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  else()
    add_library(${target} STATIC ${sources})
    mh_flags(${target})
    mh_unity(${target})
    target_compile_features(${target} PUBLIC cxx_std_20)
    target_include_directories(${target} PUBLIC
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    foreach(room ${ROOM_ROOMS})
      string(REPLACE "/" "_" room ${room})
      target_link_libraries(${target} PUBLIC multihead_${room})
    endforeach()
    target_link_libraries(${target} PRIVATE fmt::fmt ${ROOM_NEEDS})
  endif()
endfunction()

function(mh_room folder)
  string(REPLACE "/" "_" name ${folder})
  mh_library(multihead_${name} multihead/${folder} ${ARGN})
  add_library(multihead::${name} ALIAS multihead_${name})
  set_property(GLOBAL APPEND PROPERTY MULTIHEAD_ROOMS ${name})
endfunction()

function(mh_lab_room name)
  if(NOT MULTIHEAD_LAB)
    return()
  endif()
  mh_library(multihead_lab_${name} lab/${name} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY MULTIHEAD_LAB_ROOMS ${name})
endfunction()

# multihead::multihead is every room of the library at once; multihead_lab is the laboratory with it.
function(mh_whole_house)
  get_property(rooms GLOBAL PROPERTY MULTIHEAD_ROOMS)
  add_library(multihead INTERFACE)
  add_library(multihead::multihead ALIAS multihead)
  foreach(room ${rooms})
    target_link_libraries(multihead INTERFACE multihead_${room})
  endforeach()
  get_property(lab_rooms GLOBAL PROPERTY MULTIHEAD_LAB_ROOMS)
  add_library(multihead_lab INTERFACE)
  target_link_libraries(multihead_lab INTERFACE multihead)
  foreach(room ${lab_rooms})
    target_link_libraries(multihead_lab INTERFACE multihead_lab_${room})
  endforeach()
endfunction()
