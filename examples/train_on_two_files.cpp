// Trains a translator on two text files, a sentence a line. Called again, it goes on where it stopped.
//   train_on_two_files train.en train.de MODEL UPDATES
#include <cstdio>
#include <cstdlib>

#include "multihead/multihead.h"

int main(int argc, char** argv) {
  if (argc != 5) return std::fprintf(stderr, "usage: %s SOURCE TARGET MODEL UPDATES\n", argv[0]), 2;
  try {
    mh::TranslatorSettings settings;
    settings.train_source = argv[1];
    settings.train_target = argv[2];
    settings.model = argv[3];
    settings.updates = std::atoll(argv[4]);
    settings.preset = "tiny";
    settings.vocabulary_size = 2000;
    mh::TrainingWatcher watcher;
    watcher.progress = [](const mh::TrainingProgress& now) {
      if (now.update % 20 == 0) {
        std::printf("update %lld, loss %.3f\n", static_cast<long long>(now.update), now.loss);
      }
    };
    const mh::TrainingResult result = mh::train_translator(settings, watcher);
    std::printf("%s holds a model after %lld updates\n", argv[3], static_cast<long long>(result.updates));
  } catch (const mh::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
