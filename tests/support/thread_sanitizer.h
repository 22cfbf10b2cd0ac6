// Whether the tests run under the thread sanitizer, where each step takes ten times as long: races hide in the threads, so
// tests of many shapes may then try some of them.
#pragma once

namespace mh {

#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace mh
