"""The fields of a protobuf message, such as a SentencePiece model: (number, value), bytes for what has a length."""


def _number(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        if key & 7 == 0:
            value, at = _number(data, at)
        else:
            size, at = {1: lambda: (8, at), 5: lambda: (4, at), 2: lambda: _number(data, at)}[key & 7]()
            value, at = data[at:at + size], at + size
        yield key >> 3, value
