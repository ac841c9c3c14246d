"""Errors in the form that provider clients give them."""

from typing import Any


class ProviderError(Exception):
    """An HTTP status, a code and a text, as the clients of most providers raise them."""

    def __init__(
        self, text: str, status: int | None = None, code: str | None = None, body: Any = None
    ) -> None:
        super().__init__(text)
        self.status_code = status
        self.code = code
        self.body = body


def refused(text: str) -> ProviderError:
    """Return the error of a text that begins with its status, such as `429 rate limited`."""
    status, _, words = text.partition(" ")
    return ProviderError(words, int(status)) if status.isdigit() else ProviderError(text)
