// Whose threads run the tasks of parallel_for (thread_pool.h): those of its pool, or those of the program that calls the library.
// A program whose own loops leave their threads spinning for a while, as those of OpenMP do, has two threads on each processor
// when it calls a library with a pool; with one executor for both it has one.
#pragma once

namespace mh {

/// Calls work(data) on up to `threads` threads at once, the caller's among them, each once; returns when all have returned.
/// With fewer threads a loop takes longer and has the same results. `work` throws nothing.
using Executor = void (*)(int threads, void (*work)(void* data), void* data);

/// What runs the tasks from now on; nullptr, as at the start and in a child of fork(): the pool.
/// REQUIRES: no other thread is in a parallel_for.
void set_executor(Executor executor);

}  // namespace mh
