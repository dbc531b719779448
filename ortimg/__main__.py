"""`python -m ortimg`."""

from ortimg.cli import main

if __name__ == "__main__":
    main()
