// multihead VERB ...
#include "cli/run_tool.h"

int main(int argc, char** argv) {
  return mh::cli::run_tool(argc, argv);
}
