"""Things of which a project mostly has one at a time, by what they are: naming another one means a change.

A table of data: a row is an attribute and the values it can take, each one lower-case word or identifier.
"""

import re
from collections.abc import Mapping

__all__ = ["attribute_of", "may_name_alternative", "canonical_name"]

_ALTERNATIVES = {
    "database": """
        postgres postgresql mysql mariadb sqlite mongodb mongo cockroachdb oracle mssql dynamodb cassandra duckdb
        firebird couchdb planetscale supabase neo4j
    """,
    "package manager": "npm pnpm yarn bun pip poetry uv pipenv conda bundler composer",
    "test runner": "jest vitest mocha jasmine pytest unittest nose rspec minitest junit testng",
    "formatter": "black prettier yapf autopep8 biome dprint",
    "linter": "eslint pylint flake8 ruff tslint",
    "front end": "react vue angular svelte jquery preact solidjs ember",
    "web framework": "django flask fastapi express fastify koa rails laravel gin actix axum nestjs",
    "broker": "rabbitmq kafka nats sqs pulsar activemq",
    "cloud": "aws azure gcp hetzner digitalocean heroku fly.io",
    "continuous integration": "jenkins circleci travis buildkite teamcity",
    "version control": "git mercurial subversion svn perforce",
    "chat": "slack mattermost discord zulip",
    "tracker": "jira linear trello asana redmine",
    "editor": "vim neovim emacs vscode sublime intellij pycharm zed",
    "payment provider": "stripe adyen paypal mollie braintree klarna",
    "indentation": "tabs spaces",
}


_ATTRIBUTE_OF: Mapping[str, str] = {
    value: attribute for attribute, row in _ALTERNATIVES.items() for value in row.split()
}
_ANY_ALTERNATIVE = re.compile("|".join(map(re.escape, sorted(_ATTRIBUTE_OF))))
_SYNONYMS: Mapping[str, str] = {"postgres": "postgresql", "mongo": "mongodb", "svn": "subversion"}


def attribute_of(word: str) -> str:
    """Return what the thing of this lower-case name is, such as `database`; empty when it is not known."""
    return _ATTRIBUTE_OF.get(word, "")


def may_name_alternative(text: str) -> bool:
    """Tell whether the name of such a thing may stand in a lower-case text."""
    return _ANY_ALTERNATIVE.search(text) is not None


def canonical_name(word: str) -> str:
    """Return the name by which a thing with two names is compared; any other word as it is."""
    return _SYNONYMS.get(word, word)
