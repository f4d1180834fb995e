"""The errors and warnings of the package: a small tree with messages that name the thing."""


class CausalArmsError(Exception):
    """Everything this package refuses on purpose."""


class DataError(CausalArmsError, ValueError):
    """Samples, interventions or names that cannot be used as given."""


class DataTypeError(DataError, TypeError):
    """An object that is no number and cannot become one."""


class ModelError(CausalArmsError, ValueError):
    """A system, graph or prior knowledge that contradicts itself."""


class SettingError(ModelError, DataError):
    """A setting of a policy, detector or learner that cannot be used; the message names it."""


class InfeasibleError(ModelError):
    """Constraints that no intervention satisfies; `conflict` is a smallest set of such parts."""

    def __init__(self, message: str, conflict: tuple[tuple[str, int], ...] = ()) -> None:
        super().__init__(message)
        self.conflict = conflict


class StudyError(CausalArmsError, ValueError):
    """A study that cannot be opened, or a request it refuses; nothing was written."""


class StudyBusyError(StudyError):
    """Another process kept the study's file locked for too long; ask again."""


class ChangedStudyError(StudyError):
    """The file of an open study was deleted, replaced or brought back to an earlier state."""


class CorruptStudyError(StudyError):
    """A study file that is damaged; `event` is the first that cannot be trusted, where known."""

    def __init__(self, message: str, event: int | None = None) -> None:
        super().__init__(message)
        self.event = event


class CausalArmsWarning(UserWarning):
    """The result stands, but the user should know something about it."""


class IdentifiabilityWarning(CausalArmsWarning):
    """The data cannot tell some causes from effects, or say nothing about a mechanism."""


class ScaleWarning(CausalArmsWarning):
    """The units of the nodes differ so much that they influence the learned graph."""


class ConvergenceWarning(CausalArmsWarning):
    """Chains that sample a posterior do not agree yet."""


class FarValueWarning(CausalArmsWarning):
    """A value of a study lies far outside all others; it is kept, and may be a typing error."""


class LearningWarning(CausalArmsWarning):
    """A round is kept in the log of a study and left out of learning."""
