// Puts what a head gives on another sentence, position by position, in the place of what it gives on this one, and shows
// how probable the model then finds the sentence (a translator: its translation). Every model that predicts words.
//   patch_head MODEL "two dogs run ." "two cats sleep ." encoder.1.self_attention.2
#include <algorithm>
#include <cstdio>
#include <string>

#include "multihead/multihead.h"

int main(int argc, char** argv) {
  if (argc != 5) return std::fprintf(stderr, "usage: %s MODEL SENTENCE OTHER HEAD\n", argv[0]), 2;
  try {
    const mh::ModelFolder folder = mh::load_model_folder(argv[1]);
    const mh::HeadName head = mh::parse_head_name(argv[4]);
    const std::string site = head.attention + ".heads";  // [tokens, heads * size]
    const mh::Observation here = mh::observe_text(folder, argv[2], {}, {.keep = {site}}),
                          other = mh::observe_text(folder, argv[3], {}, {.keep = {site}});
    const mh::ConstMatrixView given = other.value(site).view();
    const int64_t size = given.cols / folder.model->attention(head.attention).heads();
    const auto rows = static_cast<int32_t>(std::min(given.rows, here.value(site).rows()));
    mh::SiteValues patch;
    for (int32_t i = 0; i < rows; ++i) {
      const auto own = given.rows_between(i, i + 1).columns_between(head.head * size, (head.head + 1) * size);
      patch.replace({.site = site, .position = i, .head = head.head, .numbers = mh::copied(own)});
    }
    mh::TextPass plain(*folder.model, here), patched(*folder.model, here, {.sites = &patch});
    std::printf("%d rows of %s patched\n", rows, argv[4]);
    std::printf("log-probability before %.4f\n", static_cast<double>(plain.log_probability().value()(0, 0)));
    std::printf("log-probability after  %.4f\n",
                static_cast<double>(patched.log_probability().value()(0, 0)));
  } catch (const mh::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
