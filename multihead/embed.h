// Turn sentences into vectors with a model of sentence-transformers, or any encoder, and compare them; or give them the labels of a
// classifier.
//
//   const mh::SentenceModel model = mh::load_sentence_model("minilm");
//   const mh::Tensor rows = mh::embed_text(model, lines);        // [lines, model.dimension]
//   mh::cosine(rows.view(), 0, 1);                               // how alike lines 0 and 1 are
//   mh::nearest_rows(queries.view(), rows.view(), 5, model.similarity);  // which lines each query is most like
//
//   const mh::ModelFolder classifier = mh::load_model_folder("distilbert-sst2");
//   mh::classify_text(classifier, lines).at(0).rows[0].scores;   // of each label, classifier.labels->names
//
// examples/nearest_sentence.cpp is a whole program.
#pragma once

#include "multihead/folders/sentence_model.h"
#include "multihead/tasks/classify_text.h"
#include "multihead/tasks/embed_text.h"
#include "multihead/tensor/tensor.h"
