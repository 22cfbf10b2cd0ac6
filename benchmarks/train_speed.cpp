// The speed of training, on batches from a file. Runs beside a peer: reads commands from standard input and
// answers each with one line, so that the two can take turns on the same sentences
// (benchmarks/peers/train.py).
//
//   train_speed PRESET VOCABULARY DROPOUT BATCHES_FILE   a line "source ids<TAB>target ids" for each pair,
//                                                        end tokens (3) included; an empty line ends a
//                                                        batch; the start token is 2
//   train FIRST COUNT    trains on batches FIRST, FIRST + 1, ... (modulo their number), one update each
//                        -> "seconds target_tokens last_loss peak_mebibytes"
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/beside_peer.h"
#include "multihead/base/error.h"
#include "multihead/io/lines.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "multihead/train/adam.h"
#include "multihead/train/schedule.h"
#include "multihead/train/training_corpus.h"

namespace {

struct Batches {
  mh::TrainingCorpus corpus;
  std::vector<std::vector<int64_t>> pairs;
};

std::vector<int32_t> ids_of(const std::string& text) {
  std::istringstream words(text);
  std::vector<int32_t> ids;
  for (int32_t id = 0; words >> id;) ids.push_back(id);
  return ids;
}

Batches read_batches(const std::string& path) {
  Batches batches;
  batches.pairs.emplace_back();
  for (const std::string& line : mh::read_lines(path)) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      batches.pairs.emplace_back();
      continue;
    }
    const auto number = static_cast<int64_t>(batches.corpus.lines.size());
    batches.pairs.back().push_back(number);
    batches.corpus.lines.push_back(number);
    batches.corpus.tokens.source.push_back(ids_of(line.substr(0, tab)));
    batches.corpus.tokens.target.push_back(ids_of(line.substr(tab + 1)));
  }
  while (!batches.pairs.empty() && batches.pairs.back().empty()) batches.pairs.pop_back();
  if (batches.pairs.empty()) throw mh::FormatError(path + ": no batches");
  return batches;
}

int run(int argc, char** argv) {
  if (argc != 5) throw mh::UsageError("usage: train_speed PRESET VOCABULARY DROPOUT BATCHES_FILE");
  mh::TranslatorShape shape = mh::transformer_preset(argv[1]);
  shape.vocabulary_size = std::atoi(argv[2]);
  const float dropout = std::strtof(argv[3], nullptr);
  shape.dropout = {.residual = dropout, .weights = dropout, .activation = dropout};
  shape.pad_id = 0;
  shape.decoder_start_id = 2;
  shape.eos_id = 3;
  mh::EncoderDecoder model(shape.config());
  model.initialise(1);
  const Batches batches = read_batches(argv[4]);

  std::vector<mh::NamedParameter> parameters;
  model.visit([&](const std::string& name, mh::Parameter& parameter) {
    parameters.push_back({name, &parameter});
  });
  mh::Adam adam(parameters, {.epsilon = 1e-8});
  const mh::Schedule schedule{.peak = 5e-3, .warmup = 2000};
  mh::Tape tape(mh::Tape::Mode::kRecord);
  mh::Batch source;
  mh::TeacherForced target;

  std::string what;
  size_t first = 0, count = 0;
  while (std::cin >> what >> first >> count) {
    const mh::Stopwatch watch;
    int64_t tokens = 0;
    double last_loss = 0;
    mh::VocabularyScratch scratch;
    for (size_t i = first; i < first + count; ++i) {
      const std::vector<int64_t>& pairs = batches.pairs[i % batches.pairs.size()];
      const int64_t targets = mh::target_tokens(batches.corpus, pairs);
      mh::gather(batches.corpus, pairs, shape.decoder_start_id, source, target);
      tape.clear();
      const auto update = static_cast<uint64_t>(adam.updates() + 1);
      mh::Context context{.tape = tape, .dropout = mh::DropoutKey{1, update}};
      const auto loss =
          model.loss(context, source.view(), target.input.view(), target.next,
                     {.label_smoothing = 0.1f, .scale = 1.0f / static_cast<float>(targets)}, scratch);
      tape.backward();
      adam.gradient_norm();
      adam.update(schedule.learning_rate(adam.updates() + 1));
      tokens += targets;
      last_loss = loss.smoothed / static_cast<double>(targets);
    }
    std::printf("%.6f %lld %.5f %.1f\n", watch.seconds(), static_cast<long long>(tokens), last_loss,
                mh::peak_mebibytes());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return mh::run_beside_peer("train_speed", run, argc, argv);
}
