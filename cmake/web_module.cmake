# multihead.js and multihead.wasm: the module for pages in a browser and for Node, of web/module.cpp.
target_compile_options(multihead_base PUBLIC -msimd128 -fwasm-exceptions "SHELL:-include ${PROJECT_SOURCE_DIR}/web/before.h")
add_executable(multihead_module web/module.cpp)
mh_flags(multihead_module)
target_link_libraries(multihead_module PRIVATE multihead_web)
set_target_properties(multihead_module PROPERTIES OUTPUT_NAME multihead)
target_link_options(multihead_module PRIVATE -fwasm-exceptions -sMODULARIZE=1 -sEXPORT_NAME=multihead
  -sENVIRONMENT=web,worker,node -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB -sTOTAL_STACK=1MB -sFORCE_FILESYSTEM=1
  -sEXPORTED_FUNCTIONS=_mh_call,_mh_answer_bytes,_malloc,_free -sEXPORTED_RUNTIME_METHODS=FS)
