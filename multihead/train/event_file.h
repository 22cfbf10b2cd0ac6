// Writes TensorBoard's event files: TFRecords of Event messages (docs/checkpoints.md shows every byte).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace mh {

/// CRC-32C (Castagnoli), reflected, polynomial 0x82F63B78, as in RFC 3720 appendix B.4.
uint32_t crc32c(std::string_view bytes);

/// One TFRecord: length (u64), masked crc of the length, bytes, masked crc of the bytes; little-endian.
/// The mask: rotate right by 15, add 0xA282EAD8.
std::string tf_record(std::string_view bytes);

struct Scalar {
  std::string_view tag;
  float value;
};

/// These return the bytes of an Event message (protobuf).
std::string version_event(double wall_time);
/// Tells TensorBoard that a run was resumed from `step`, so that it ignores later steps of older files.
std::string restart_event(double wall_time, int64_t step);
std::string scalars_event(double wall_time, int64_t step, std::span<const Scalar> scalars);

}  // namespace mh
