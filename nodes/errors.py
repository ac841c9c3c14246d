"""What a caller may want to catch.

EverlongError
├── InvalidInputError      the call's input or context cannot be used
│   └── MissingUserError   nobody says whose conversation it is
└── ModelUnavailableError  no chat model can be made of the name
"""


class EverlongError(Exception):
    """Any error that everlong raises on purpose."""


class InvalidInputError(EverlongError, ValueError):
    """The call's input or context cannot be used; nothing was changed."""


class MissingUserError(InvalidInputError):
    """Neither the server nor the context names a user."""


class ModelUnavailableError(EverlongError, ValueError):
    """No chat model can be made of the name."""
