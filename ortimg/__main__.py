"""`ortimg` and `python -m ortimg`: until Ctrl-C is heard, as little as possible is imported."""

import sys


def main() -> None:
    """Entry point of the `ortimg` command."""
    try:
        from ortimg.cli import main as command

        command()
    except KeyboardInterrupt:  # ahead of click, or after it
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
