// Checks that a hostile input ends in an exception of this library with a one-line message.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "multihead/base/error.h"
#include "multihead/base/utf8.h"

namespace mh::test {

/// Runs `body`; expects an mh::Error whose message is one line and contains `part`.
template <class Body>
void expect_one_line_error(Body&& body, std::string_view part, std::string_view what) {
  try {
    body();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(part), std::string::npos) << what << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << what << ": " << message;
    EXPECT_EQ(first_invalid_utf8(message), std::string::npos) << what << ": " << message;
    EXPECT_LT(message.size(), 2000u) << what;
    return;
  } catch (const std::exception& error) {
    FAIL() << what << ": not an mh::Error: " << error.what();
  }
  FAIL() << what << ": accepted";
}

}  // namespace mh::test
