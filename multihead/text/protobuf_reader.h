// ProtobufReader: walks the fields of a protobuf message that is not trusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mh {

class ProtobufReader {
 public:
  /// `name` is what errors call the file. REQUIRES: both outlive this.
  ProtobufReader(std::string_view message, std::string_view name) : rest_(message), name_(name) {}

  struct Field {
    uint64_t number = 0;
    enum class Wire { kNumber, kEightBytes, kBytes, kFourBytes } wire = Wire::kNumber;
    uint64_t value = 0;           ///< kNumber
    std::string_view bytes = {};  ///< the others
  };
  /// Reads the next field; false at the end. Throws FormatError when it is cut short or not protobuf.
  bool next(Field& field);

  // The value of a field. These throw FormatError when it has another wire type.
  bool flag(const Field& field) const { return number(field) != 0; }
  uint64_t number(const Field& field) const;
  float real(const Field& field) const;
  std::string_view bytes(const Field& field) const;
  std::string text(const Field& field) const;  ///< UTF-8

  [[noreturn]] void fail(std::string_view what) const;

 private:
  uint64_t variable_number();
  std::string_view take(uint64_t size);

  std::string_view rest_;
  std::string_view name_;
};

}  // namespace mh
