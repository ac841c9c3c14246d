"""What a caller may want to catch.

EverlongError
├── InvalidInputError      the call's input or context cannot be used
│   └── MissingUserError   nobody says whose conversation it is
├── ModelUnavailableError  no chat model can be made of the name
├── RemoteAgentError       a deployed agent cannot be reached, or refuses
├── ThreadBusyError        another run holds the thread for too long
└── ToolsError             tools that a setting names cannot be had
"""


class EverlongError(Exception):
    """Any error that everlong raises on purpose."""


class InvalidInputError(EverlongError, ValueError):
    """The call's input or context cannot be used; nothing was changed."""


class MissingUserError(InvalidInputError):
    """Neither the server nor the context names a user."""


class ModelUnavailableError(EverlongError, ValueError):
    """No chat model can be made of the name."""


class RemoteAgentError(EverlongError, ConnectionError):
    """A deployed agent cannot be reached, or refuses; what the parent holds is as it was."""


class ThreadBusyError(EverlongError, TimeoutError):
    """Another run holds the thread for too long; nothing was changed."""


class ToolsError(EverlongError, ValueError):
    """Tools that a setting names cannot be had; nothing was started."""
