"""What tools write before each line of a file: `n` is the line's number."""

__all__ = ["PREFIXES"]

PREFIXES = {
    "grep": "config/server.pem:{n}: ",
    "grep of one file": "{n}:",
    "grep with context": "deploy/keys/a-b.pem-{n}-",
    "cat -n": "{n:6d}\t",
    "nl": "{n:>6}  ",
    "quotation": "> ",
    "nested quotation": "> > ",
    "added": "+",
    "added with blank": "+ ",
    "removed": "-",
    "log": "2026-11-21T08:03:{n:02d}.4{n:02d}Z INFO ",
    "syslog": "Nov 21 08:03:{n:02d} web1 app[4{n}]: ",
    "docker compose": "web-1  | ",
    "comment": "# ",
    "code comment": "// ",
    "indented": "        ",
    "editor": "{n:>4} │ ",
}
