// MH_EMBED: the bytes of a file as a part of the library. The source that uses it is compiled alone and depends on the file
// (CMakeLists.txt).
#pragma once

#if defined(__EMSCRIPTEN__)
/// Nothing: a page brings the files that it needs, and its module stays small.
#define MH_EMBED(name, path) [[maybe_unused]] static constexpr const char *name = "", *name##_end = name
#else
/// The bytes of the file at `path`, a text, from `name` to `name##_end`; used outside of any namespace.
#define MH_EMBED(name, path)                                                            \
  asm(".section .rodata\n" #name ":\n.incbin \"" path "\"\n" #name "_end:\n.previous"); \
  extern "C" const char name[], name##_end[]
#endif
