// Where the tests find their files. places.cpp alone is compiled with the paths, so that all other objects are the same wherever
// the checkout lies, and a compiler cache serves them to every checkout.
#pragma once

#include <string>

namespace mh {

std::string source_folder();   // the checkout
std::string goldens_folder();  // its tests/goldens
std::string build_folder();    // what cmake was given as build folder
std::string tool_file();       // the tool, `multihead`

}  // namespace mh
