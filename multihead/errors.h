// What the library throws, and how many threads it uses.
//
// Every exception is an mh::Error whose message is one line: the thing, what was expected and found, the remedy.
//   FileError    a file or folder is missing, or cannot be read or written
//   FormatError  the contents are not what they should be
//   ShapeError   shapes do not fit together
//   UsageError   a setting or an argument is out of range, or contradicts another one
//   Interrupted  the caller asked a training to stop; what there was is saved
//   InternalError  a mistake in the library itself
//
// The library prints nothing and never ends the process.
#pragma once

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
