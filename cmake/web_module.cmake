# multihead.js and multihead.wasm: the module for pages in a browser and for Node, of web/module.cpp.
target_compile_options(multihead_base PUBLIC -msimd128 -fwasm-exceptions
  # What every engine that has these has, too: one instruction in place of several. Not -mbulk-memory: a file of thread_local
  # variables without atomic ones would then keep them where no thread has put them (LLVM 14), over other data.
  -mnontrapping-fptoint -msign-ext
  -fno-threadsafe-statics  # there is one thread
  "SHELL:-include ${PROJECT_SOURCE_DIR}/web/before.h")
# A page loads it over a network: small code everywhere but where the time of a model goes. Eigen, in tensor, is least as it is, at -O1:
# it is made of small functions, three times as large where they are not inlined.
get_property(rooms GLOBAL PROPERTY MULTIHEAD_ROOMS)
list(REMOVE_ITEM rooms kernels autograd tensor)
foreach(room ${rooms} web)
  get_target_property(type multihead_${room} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    target_compile_options(multihead_${room} PRIVATE $<$<CONFIG:Release>:-Oz>)
  endif()
endforeach()
foreach(room kernels autograd)
  target_compile_options(multihead_${room} PRIVATE $<$<CONFIG:Release>:-O2>)
endforeach()
add_executable(multihead_module web/module.cpp)
mh_flags(multihead_module)
target_link_libraries(multihead_module PRIVATE multihead_web)
set_target_properties(multihead_module PROPERTIES OUTPUT_NAME multihead)
target_link_options(multihead_module PRIVATE -Oz -fwasm-exceptions -sMODULARIZE=1 -sEXPORT_NAME=multihead
  -sENVIRONMENT=web,worker,node -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB -sTOTAL_STACK=1MB -sFORCE_FILESYSTEM=1
  -sEXPORTED_FUNCTIONS=_mh_call,_mh_answer_bytes,_malloc,_free -sEXPORTED_RUNTIME_METHODS=FS)
