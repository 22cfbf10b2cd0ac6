"""python -m multihead VERB ...: the command-line tool."""

import sys

from . import _native


def main() -> None:
    sys.exit(_native.run_tool(["multihead", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
