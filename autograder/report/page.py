"""How a page is made: the template, its style and script inside it, and a policy that lets nothing else in.

The policy names style and script by their hashes, so whatever else a page might hold, nothing but these two is applied.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


@lru_cache(maxsize=1)
def _environment() -> Environment:
    """Templates are compiled once: that takes longer than filling in many pages."""
    environment = Environment(
        loader=PackageLoader("autograder.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["parts"] = _parts
    return environment


def _parts(text: str) -> list[tuple[bool, str]]:
    """A message in pieces: (whether it stood between backticks, the piece)."""
    return [(number % 2 == 1, piece) for number, piece in enumerate(re.split(r"`([^`\n]+)`", text)) if piece]


@lru_cache(maxsize=8)
def _part(name: str) -> str:
    return (files("autograder.report") / name).read_text(encoding="utf-8")


def render(template: str, *, styles: tuple[str, ...], script: str | None = None, **values: Any) -> str:
    """The page as HTML.

    Args:
        template: file name of the template, which writes `policy`, `style` and, if there is one, `script`.
        styles: file names of the style sheets, in order.
        script: file name of the script; the page may run none without it.
        values: what the template shows; all of it is escaped.
    """
    style = "\n".join(_part(name) for name in styles)
    code = _part(script) if script else ""
    allowed = ["default-src 'none'", "img-src data:", f"style-src '{_hash(style)}'"]
    if code:
        allowed.append(f"script-src '{_hash(code)}'")
    allowed += ["base-uri 'none'", "form-action 'none'"]
    # Both parts are ours, and HTML reads neither entities nor quotes in them: they go in as they are.
    return (
        _environment()
        .get_template(template)
        .render(policy="; ".join(allowed), style=Markup(style), script=Markup(code), **values)
    )


def _hash(text: str) -> str:
    """As Content Security Policy Level 3, section 2.3.1 writes it: https://www.w3.org/TR/CSP3/."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
