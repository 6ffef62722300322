"""A server built with a Python library, to run behind Switchboard.

Usage: python server.py MODULE CLASS
"""

import sys
from importlib import import_module

server = getattr(import_module(sys.argv[1]), sys.argv[2])("python")


@server.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.resource("note://greeting")
def greeting() -> str:
    """A note."""
    return "hello from a note"


@server.prompt()
def review(language: str) -> str:
    """Ask for a review."""
    return f"Review this {language} code."


server.run("stdio")
