// Exceptions of the library become those of multihead/_errors.py.
#include <nanobind/nanobind.h>

#include <cerrno>
#include <exception>

#include "errors.h"
#include "module_parts.h"
#include "multihead/base/error.h"

namespace mh::python {

namespace nb = nanobind;

namespace {

const char* class_of(const Error& error) {
  if (const auto* file = dynamic_cast<const FileError*>(&error)) {
    if (file->code() == ENOENT) return "MissingFileError";
    if (file->code() == EACCES || file->code() == EPERM) return "FilePermissionError";
    return "FileError";
  }
  if (dynamic_cast<const FormatError*>(&error)) return "FormatError";
  if (dynamic_cast<const ArgumentTypeError*>(&error)) return "ArgumentTypeError";
  if (dynamic_cast<const ShapeError*>(&error)) return "ShapeError";
  if (dynamic_cast<const UsageError*>(&error)) return "UsageError";
  if (dynamic_cast<const Interrupted*>(&error)) return "Interrupted";
  if (dynamic_cast<const InternalError*>(&error)) return "InternalError";
  return "Error";
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const nb::object type = nb::module_::import_("multihead._errors").attr(class_of(error));
    PyErr_SetString(type.ptr(), error.what());
  }
}

}  // namespace

void add_errors(nb::module_&) {
  nb::register_exception_translator(translate);
}

}  // namespace mh::python
