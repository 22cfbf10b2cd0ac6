// multihead._native: the library for the Python package, which wraps it (python/multihead).
#include <nanobind/nanobind.h>

#include "module_parts.h"

NB_MODULE(_native, module) {
  mh::python::add_errors(module);
  mh::python::add_attention(module);
  mh::python::add_torch_attention(module);
  mh::python::add_torch_threads(module);
  mh::python::add_corpus(module);
  mh::python::add_model(module);
  mh::python::add_training(module);
  mh::python::add_measures(module);
  mh::python::add_study(module);
  mh::python::add_settings(module);
  mh::python::add_tool(module);
  module.def("version", [] { return MULTIHEAD_VERSION; });
}
