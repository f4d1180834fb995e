"""The errors and warnings of the package: a small tree with messages that name the thing."""


def shown(given: object, letters: int = 240) -> str:
    """What somebody gave, as a message shows it: short, whatever it is.

    >>> shown({"a": 1}), shown("x" * 30, letters=10)
    ("{'a': 1}", "'xxxxxx...")
    """
    try:
        text = repr(given)
    except Exception:  # nested too deeply, an integer of thousands of digits, a class of its own
        text = f"a {type(given).__name__} that cannot be printed"
    return text if len(text) <= letters else f"{text[: letters - 3]}..."


class CausalArmsError(Exception):
    """Everything this package refuses on purpose."""


class DataError(CausalArmsError, ValueError):
    """Samples, interventions or names that cannot be used as given."""


class DataTypeError(DataError, TypeError):
    """An object that is not a number and cannot become one."""


class MissingExtraError(CausalArmsError, ImportError):
    """An optional package is not installed; the message names the extra that brings it."""


class ModelError(CausalArmsError, ValueError):
    """A system, graph or prior knowledge that contradicts itself."""


class SettingError(ModelError, DataError):
    """A setting of a policy, detector or learner that cannot be used; the message names it."""


class MemoryLimitError(SettingError):
    """The tables of a posterior would not fit into its `memory_limit`."""


class InfeasibleError(ModelError):
    """Constraints that no intervention satisfies; `conflict` is a smallest set of such parts."""

    def __init__(self, message: str, conflict: tuple[tuple[str, int], ...] = ()) -> None:
        super().__init__(message)
        self.conflict = conflict


class StudyError(CausalArmsError, ValueError):
    """A study that cannot be opened, or a request it refuses; nothing was written."""


class TrialError(StudyError):
    """A trial that cannot be what the request needs; `trial` is its number."""

    def __init__(self, message: str, trial: int, state: str = "") -> None:
        super().__init__(message)
        self.trial = trial
        self.state = state


class UnknownTrialError(TrialError):
    """There is no trial with this number."""


class ClosedTrialError(TrialError):
    """The trial is not pending; `state` says what it was instead."""


class NoResultError(TrialError):
    """The trial has no result to correct."""


class NotAskedError(TrialError):
    """Nobody asked for the trial: there is nothing to explain."""


class UnknownAlarmError(StudyError):
    """There is no alarm with this number."""

    def __init__(self, message: str, alarm: int) -> None:
        super().__init__(message)
        self.alarm = alarm


class NodeValueError(StudyError):
    """A value that cannot be used; `node` is whose."""

    def __init__(self, message: str, node: str) -> None:
        super().__init__(message)
        self.node = node


class RepeatedKeyError(StudyError):
    """The key of an earlier request came with another content."""


class TooEarlyError(StudyError):
    """Nothing is known yet, or never by this policy."""


class DiskFullError(StudyError):
    """There is no space left; nothing was written."""


class StudyBusyError(StudyError):
    """Another process kept the study's file locked for too long; ask again."""


class StudyFileError(StudyError):
    """The file of a study cannot be used as it is; nothing was written."""


class ChangedStudyError(StudyFileError):
    """The file of an open study was deleted, emptied, replaced or brought back to an old state."""


class TokenFileError(StudyError):
    """The tokens of a study cannot be read, so nobody may use its service."""


class RemoteStudyError(StudyError):
    """A served study that cannot be reached, or that does not let us."""


class CorruptStudyError(StudyFileError):
    """A study file that is damaged; `event` is the first that cannot be trusted, if known."""

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


class AlarmWarning(CausalArmsWarning):
    """A mechanism of a study seems to have changed, and nobody has acknowledged the alarm."""


class LearningWarning(CausalArmsWarning):
    """A round is kept in the log of a study and left out of learning."""
