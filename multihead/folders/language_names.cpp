#include "multihead/folders/language_names.h"

#include <algorithm>

namespace mh {
namespace {

/// The code of ISO 639-1, that of ISO 639-3, and those of ISO 639-3 for the languages that the two stand for where these are several
/// (a "macrolanguage"), of which NLLB-200 has these. M2M-100 calls Northern Sotho, which has no code of two letters, "ns".
constexpr std::string_view kLanguages[] = {
    "af afr",         "ak aka",     "am amh",     "ar ara arb", "as asm",     "ay aym ayr", "az aze azj azb",
    "ba bak",         "be bel",     "bg bul",     "bm bam",     "bn ben",     "bo bod",     "br bre",
    "bs bos",         "ca cat",     "cs ces",     "cy cym",     "da dan",     "de deu",     "dz dzo",
    "ee ewe",         "el ell",     "en eng",     "eo epo",     "es spa",     "et est",     "eu eus",
    "fa fas pes prs", "ff ful fuv", "fi fin",     "fj fij",     "fo fao",     "fr fra",     "fy fry",
    "ga gle",         "gd gla",     "gl glg",     "gn grn",     "gu guj",     "ha hau",     "he heb",
    "hi hin",         "hr hrv",     "ht hat",     "hu hun",     "hy hye",     "id ind",     "ig ibo",
    "is isl",         "it ita",     "ja jpn",     "jv jav",     "ka kat",     "kg kon",     "ki kik",
    "kk kaz",         "km khm",     "kn kan",     "ko kor",     "kr kau knc", "ks kas",     "ku kur kmr ckb",
    "ky kir",         "lb ltz",     "lg lug",     "li lim",     "ln lin",     "lo lao",     "lt lit",
    "lv lav lvs",     "mg mlg plt", "mi mri",     "mk mkd",     "ml mal",     "mn mon khk", "mr mar",
    "ms msa zsm",     "mt mlt",     "my mya",     "nb nob",     "ne nep npi", "nl nld",     "nn nno",
    "no nor nob nno", "ns nso",     "ny nya",     "oc oci",     "om orm gaz", "or ori ory", "pa pan",
    "pl pol",         "ps pus pbt", "pt por",     "qu que quy", "rn run",     "ro ron",     "ru rus",
    "rw kin",         "sa san",     "sc srd",     "sd snd",     "sg sag",     "si sin",     "sk slk",
    "sl slv",         "sm smo",     "sn sna",     "so som",     "sq sqi als", "sr srp",     "ss ssw",
    "st sot",         "su sun",     "sv swe",     "sw swa swh", "ta tam",     "te tel",     "tg tgk",
    "th tha",         "ti tir",     "tk tuk",     "tl tgl",     "tn tsn",     "tr tur",     "ts tso",
    "tt tat",         "tw twi",     "ug uig",     "uk ukr",     "ur urd",     "uz uzb uzn", "vi vie",
    "wo wol",         "xh xho",     "yi yid ydd", "yo yor",     "zh zho",     "zu zul"};

std::string_view next_word(std::string_view& rest) {
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  return word;
}

/// Where a code stands in a row; none: not there.
int place_in(std::string_view row, std::string_view code) {
  for (int place = 0; !row.empty(); ++place) {
    if (next_word(row) == code) return place;
  }
  return -1;
}

}  // namespace

bool same_language(std::string_view a, std::string_view b) {
  if (a == b) return true;
  return std::any_of(std::begin(kLanguages), std::end(kLanguages), [&](std::string_view row) {
    const int of_a = place_in(row, a), of_b = place_in(row, b);
    return of_a >= 0 && of_b >= 0 && std::min(of_a, of_b) < 2;  // one of the two names of them all
  });
}

}  // namespace mh
