// BLEU of two systems' translations against references, as sacreBLEU prints it.
#include <cstdio>
#include <string>
#include <vector>

#include "multihead/bleu.h"

int main() {
  const std::vector<std::string> references = {"the small dog runs in the park .", "two children play ."};
  const std::vector<std::string> one = {"the small dog runs in the garden .", "two children play ."};
  const std::vector<std::string> other = {"a dog runs in a park .", "two kids are playing ."};
  for (const auto& system : {one, other}) {
    std::printf("%s\n", mh::corpus_bleu(system, references, {.lowercase = true}).line().c_str());
  }
}
