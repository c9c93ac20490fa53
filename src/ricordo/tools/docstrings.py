"""What a docstring says to a model: the description of a tool, and of each of its arguments. Pure."""

import inspect
import re

__all__ = ["split_docstring"]

_ARGUMENTS_SECTION = re.compile(r"(Args|Arguments|Parameters):\s*")
_ARGUMENT_LINE = re.compile(r"(?P<indent> +)\*{0,2}(?P<name>\w+)(?: \([^)]*\))?: ?(?P<said>.*)")


def split_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the text without its section of arguments, and what that section says of each by name."""
    kept: list[str] = []
    said: dict[str, list[str]] = {}
    inside, indent, name = False, 0, ""
    for line in inspect.cleandoc(docstring).splitlines():
        if _ARGUMENTS_SECTION.fullmatch(line):
            inside, indent = True, 0
        elif inside and (not line.strip() or line.startswith(" ")):
            argument = _ARGUMENT_LINE.fullmatch(line)
            if argument and (not indent or len(argument["indent"]) == indent):
                name, indent = argument["name"], len(argument["indent"])
                said[name] = [argument["said"]]
            elif name:
                said[name].append(line.strip())
        else:
            inside = False
            kept.append(line)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return text, {each: " ".join(filter(None, words)) for each, words in said.items()}
