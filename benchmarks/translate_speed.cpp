// The speed of translation, with random weights and translations of a fixed length. Runs beside a peer: reads
// commands from standard input and answers each with one line, so that the two can take turns
// (benchmarks/peers/translate.py).
//
//   translate_speed PRESET VOCABULARY LENGTH MAX_BATCH_TOKENS IDS_FILE
//                        a line of token ids for each sentence, end token 0 last; the start token is 2
//   precision NAME       -> 0; products are of this precision from now on (docs/precision.md)
//   all BEAM COUNT       -> seconds for the first COUNT sentences
//   single BEAM COUNT    -> median seconds of one sentence alone
#include <algorithm>
#include <cstdlib>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/beside_peer.h"
#include "benchmarks/precision_command.h"
#include "multihead/base/error.h"
#include "multihead/generate/translate.h"
#include "multihead/io/lines.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"

namespace {

std::vector<std::vector<int32_t>> read_ids(const std::string& path) {
  std::vector<std::vector<int32_t>> sentences;
  for (const std::string& line : mh::read_lines(path)) {
    std::istringstream words(line);
    auto& sentence = sentences.emplace_back();
    for (int32_t id = 0; words >> id;) sentence.push_back(id);
  }
  return sentences;
}

int run(int argc, char** argv) {
  if (argc != 6)
    throw mh::UsageError("usage: translate_speed PRESET VOCABULARY LENGTH MAX_BATCH_TOKENS IDS_FILE");
  mh::TranslatorShape shape = mh::transformer_preset(argv[1]);
  shape.vocabulary_size = std::atoi(argv[2]);
  shape.eos_id = 0;
  shape.pad_id = shape.decoder_start_id = 2;
  mh::EncoderDecoder model(shape.config());
  model.initialise(1);
  mh::Translator translator(model);
  const std::vector<std::vector<int32_t>> sentences = read_ids(argv[5]);

  return mh::answer_commands([&](const std::string& what, std::istringstream& rest) {
    if (what == "precision") return mh::use_precision_named(model, rest);
    int32_t beam = 0;
    size_t count = 0;
    if (!(rest >> beam >> count)) throw mh::UsageError("expected " + what + " BEAM COUNT");
    const int32_t length = std::atoi(argv[3]);
    const mh::TranslateOptions options{
        .search = {.beam_size = beam, .min_length = length, .max_length = length},
        .max_batch_tokens = std::atoi(argv[4]),
    };
    const std::span<const std::vector<int32_t>> some(sentences.data(), std::min(count, sentences.size()));
    if (what == "all") {
      const mh::Stopwatch watch;
      translator.translate(some, options);
      return watch.seconds();
    }
    std::vector<double> each;
    for (const auto& sentence : some) {
      const mh::Stopwatch watch;
      translator.translate({&sentence, 1}, options);
      each.push_back(watch.seconds());
    }
    return mh::median(std::move(each));
  });
}

}  // namespace

int main(int argc, char** argv) {
  return mh::run_beside_peer("translate_speed", run, argc, argv);
}
