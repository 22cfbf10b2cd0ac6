// The examples of FIPS 180-4, and pieces of any size.
#include "multihead/base/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace mh {
namespace {

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.digest();
}

TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnPieces) {
  std::string bytes;
  for (int i = 0; i < 331; ++i) bytes += static_cast<char>(i * 7);
  for (const size_t piece : {1, 3, 63, 64, 65, 127, 200}) {
    Sha256 hash;
    for (size_t at = 0; at < bytes.size(); at += piece) hash.add(std::string_view(bytes).substr(at, piece));
    EXPECT_EQ(hash.digest(), sha256(bytes)) << piece;
  }
}

}  // namespace
}  // namespace mh
