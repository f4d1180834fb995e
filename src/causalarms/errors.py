"""The errors and warnings of the package: a small tree with messages that name the thing."""


class CausalArmsError(Exception):
    """Everything this package refuses on purpose."""


class DataError(CausalArmsError, ValueError):
    """Samples, interventions or names that cannot be used as given."""


class DataTypeError(DataError, TypeError):
    """An object that is no number and cannot become one."""


class ModelError(CausalArmsError, ValueError):
    """A system, graph or prior knowledge that contradicts itself."""


class CausalArmsWarning(UserWarning):
    """The result stands, but the user should know something about it."""


class IdentifiabilityWarning(CausalArmsWarning):
    """The data cannot tell some causes from effects, or say nothing about a mechanism."""


class ScaleWarning(CausalArmsWarning):
    """The units of the nodes differ so much that they influence the learned graph."""
