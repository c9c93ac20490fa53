"""`python -m ricordo` is the command `ricordo`."""

from ricordo.cli.main import run

__all__: list[str] = []

if __name__ == "__main__":
    run()
