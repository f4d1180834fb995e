"""Promises are functions that raise; what they raise becomes an AssertionError that names them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import numpy as np

from causalarms.arrays import FloatArray, Intervention

Case = TypeVar("Case")
Result = TypeVar("Result")
Round: TypeAlias = tuple[Intervention, FloatArray]

PLAIN = "biuf"  # kinds of arrays and scalars that a state may hold


def keep(promises: Mapping[str, Callable[[Case], None]], case: Case, who: str) -> None:
    """Check all of them, one after the other.

    promises   by the words for them
    case       what they are checked on
    who        whose promises they are
    """
    # Without this, `python -O` would find every promise kept.
    if not __debug__:
        raise AssertionError("python -O switches assertions off: nothing can be checked")
    for words, promise in promises.items():
        try:
            promise(case)
        # Code of others may raise anything: that too breaks the promise under test.
        except Exception as error:
            raise AssertionError(f"{who} breaks a promise: {words}\n{_words(error)}") from error


def _words(error: Exception) -> str:
    name = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    return f"{name}{error}".strip()


def assert_same_state(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Bit for bit; nan is equal to itself."""
    assert one.keys() == other.keys(), f"entries {sorted(one)} are not {sorted(other)}"
    for name, value in one.items():
        # Strict: another dtype or shape would be another state on the disk.
        np.testing.assert_array_equal(value, other[name], err_msg=name, strict=True)


def assert_plain(state: Mapping[str, Any]) -> None:
    """Names, and arrays or scalars of numbers."""
    for name, value in state.items():
        assert isinstance(name, str), f"{name!r} is not a name"
        plain = isinstance(value, np.ndarray | np.generic | int | float | bool)
        assert plain, f"{name} is a {type(value).__name__}, not an array or a number"
        assert np.asarray(value).dtype.kind in PLAIN, f"{name} holds {np.asarray(value).dtype}"


def copied(state: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy."""
    return {name: np.array(value) for name, value in state.items()}


def stored(state: Mapping[str, Any]) -> dict[str, Any]:
    """As a study stores it: arrays of their own, numbers of Python."""
    return {
        name: value.copy() if isinstance(value, np.ndarray) else np.asarray(value).item()
        for name, value in state.items()
    }


def assert_plain_copy(
    state: Callable[[], Mapping[str, Any]], go_on: Iterable[Callable[[], object]]
) -> None:
    """A state is plain, and none of the steps that go on changes it."""
    exported = state()
    assert_plain(exported)
    before = copied(exported)
    for step in go_on:
        step()
        for name, value in exported.items():
            np.testing.assert_array_equal(
                value, before[name], err_msg=f"{name} is not a copy: it changed later"
            )


def under_two_random_states(run: Callable[[], Result]) -> list[Result]:
    """What `run` gives under either; AssertionError if it uses the global random state."""
    found = []
    # Two seeds: with one alone, a detector or policy that draws would look reproducible.
    for seed in (1, 2):
        with global_random_state(seed):
            found.append(run())
    return found


@contextmanager
def global_random_state(seed: int) -> Iterator[None]:
    """Seeded inside; AssertionError if it is used, and the caller's again afterwards."""
    outside = np.random.get_state(legacy=False)  # noqa: NPY002
    try:
        np.random.seed(seed)  # noqa: NPY002
        before = np.random.get_state(legacy=False)  # noqa: NPY002
        yield
        after = np.random.get_state(legacy=False)  # noqa: NPY002
        np.testing.assert_equal(after, before, err_msg="the global random state was touched")
    finally:
        np.random.set_state(outside)  # noqa: NPY002
