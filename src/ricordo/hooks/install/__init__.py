"""Connecting hosts: the settings of a coding agent get the hooks and the MCP server of Ricordo, and lose them again.

Only a person at the command line does it: no hook, no tool and no MCP call imports this package.
"""

__all__: list[str] = []
