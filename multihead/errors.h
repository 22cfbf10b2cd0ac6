// The exceptions of the library, the number of its threads, and how a caller ends a long call (StopScope).
//
// Every exception is an mh::Error whose message is one line: the thing, what was expected and found, the remedy.
//   FileError    a file or folder is missing, or cannot be read or written
//   FormatError  a file has wrong contents
//   ShapeError   shapes do not fit together
//   UsageError   a setting or an argument is out of range, or contradicts another one
//   Interrupted  the caller asked to stop, a training by its watcher, other work by a StopScope; what was saved stays
//   InternalError  a mistake in the library itself
//
// The library prints nothing and never ends the process.
#pragma once

#include "multihead/base/error.h"
#include "multihead/base/stop.h"
#include "multihead/base/thread_pool.h"
