// What the module consists of; each function is in the file of its name.
#pragma once

#include <nanobind/nanobind.h>

namespace mh::python {

/// The exceptions of the library as those of multihead/_errors.py.
void add_errors(nanobind::module_& module);
/// attention and attention_backward.
void add_attention(nanobind::module_& module);
/// torch_attention and torch_attention_backward, for multihead.torch.
void add_torch_attention(nanobind::module_& module);
/// use_openmp_threads, for the same.
void add_torch_threads(nanobind::module_& module);
/// Corpus: what analyses read.
void add_corpus(nanobind::module_& module);
/// Model, Edits and Seen.
void add_model(nanobind::module_& module);
/// train.
void add_training(nanobind::module_& module);
/// BLEU, the ledger, and threads.
void add_measures(nanobind::module_& module);
/// study and studies.
void add_study(nanobind::module_& module);
/// settings: what the library says of the settings of analyses; suggestions: the names that one was most likely meant to be.
void add_settings(nanobind::module_& module);
/// The command-line tool.
void add_tool(nanobind::module_& module);

}  // namespace mh::python
