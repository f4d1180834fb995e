"""Parts by name: those of this package, and those that other packages add as entry points."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from causalarms.errors import CausalArmsError, SettingError, shown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

Made = TypeVar("Made")

NAMED = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Registry(Generic[Made]):
    """One kind of part.

    built_in   factories by name, or where to find them as "module:name", loaded on first use
    group      of entry points; an entry is a callable, as the built-in ones are
    base       what factories make
    given      arguments that are not settings: the caller of `make` gives them
    """

    def __init__(
        self,
        kind: str,
        group: str,
        built_in: Mapping[str, Callable[..., Made] | str],
        base: type,
        given: Iterable[str] = (),
    ) -> None:
        self.kind = kind
        self.group = group
        self.built_in = built_in
        self.base = base
        self.given = frozenset(given)

    def names(self) -> list[str]:
        """Built-in names first, then those of installed packages."""
        others = self._entry_points().names
        return [*self.built_in, *sorted(others - set(self.built_in))]

    def factory(self, name: str | Callable[..., Made]) -> Callable[..., Made]:
        """The callable behind a name; a callable is one already."""
        if callable(name):
            return name
        if not isinstance(name, str):
            raise SettingError(f"{self.kind} must be a name, not {shown(name)}")
        if name in self.built_in:
            found = self.built_in[name]
            return _imported(found) if isinstance(found, str) else found
        entries = self._entries(name)
        if not entries:
            raise SettingError(f"unknown {self.kind} {shown(name)}; {_hint(name, self.names())}")
        if len({(package_of(entry), entry.value) for entry in entries}) > 1:
            packages = " and ".join(sorted(repr(package_of(entry)) for entry in entries))
            raise SettingError(
                f"{self.kind} {shown(name)} is offered by {packages}: uninstall all but one of them"
            )
        return self._load(entries[0])

    def _entries(self, name: str) -> list[EntryPoint]:
        return list(self._entry_points().select(name=name))

    def _entry_points(self) -> EntryPoints:
        # Imported if asked: it parses e-mail headers, which takes long for a command of a study.
        from importlib.metadata import entry_points

        return entry_points(group=self.group)

    def _who(self, name: str) -> str:
        """What it is called in messages; those who offer it are to be asked."""
        packages = [] if name in self.built_in else [package_of(e) for e in self._entries(name)]
        return f"{self.kind} {shown(name)}" + "".join(
            f" of the package {p!r}" for p in packages[:1]
        )

    def _load(self, entry: EntryPoint) -> Callable[..., Made]:
        who = self._who(entry.name)
        try:
            factory: Callable[..., Made] = entry.load()
        except Exception as error:
            raise SettingError(
                f"{who} cannot be loaded from {entry.value!r} ({type(error).__name__}: {error}): "
                "repair or uninstall the package"
            ) from error
        if not callable(factory):
            raise SettingError(f"{who}: {entry.value!r} is {shown(factory)}, which makes nothing")
        return factory

    def settings_of(self, factory: Callable[..., Any]) -> list[str]:
        """Names of the settings a factory takes."""
        return [
            name
            for name, parameter in inspect.signature(factory).parameters.items()
            if parameter.kind in NAMED and name not in self.given
        ]

    def required_of(self, factory: Callable[..., Any]) -> set[str]:
        """Names of the settings a factory cannot do without."""
        parameters = inspect.signature(factory).parameters
        empty = inspect.Parameter.empty
        return {name for name in self.settings_of(factory) if parameters[name].default is empty}

    def check_settings(
        self,
        name: str,
        factory: Callable[..., Any],
        settings: Iterable[str],
        accepted: list[str],
        required: set[str],
    ) -> None:
        """Refuse names of settings that are not accepted, or missing."""
        for setting in settings:
            if setting not in accepted and (accepted or not takes_anything(factory)):
                near = get_close_matches(setting, accepted, n=1)
                own = ", ".join(n for n in accepted if n != "regimes") or "none"  # all have those
                hint = f"did you mean {near[0]!r}?" if near else f"it has {own}"
                raise SettingError(
                    f"{self.kind} {shown(name)} has no setting {shown(setting)}; {hint}"
                )
        missing = sorted(required - set(settings))
        if missing:
            raise SettingError(f"{self.kind} {shown(name)} must be told {', '.join(missing)}")

    def call(self, name: str, factory: Callable[..., Made], *given: Any, **settings: Any) -> Made:
        """What the factory makes of checked settings; its own refusals in words."""
        try:
            made = factory(*given, **settings)
        except CausalArmsError:
            raise
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise SettingError(f"{self._who(name)} refuses its settings: {error}") from error
        if not isinstance(made, self.base):
            raise SettingError(
                f"{self._who(name)} must make a {self.base.__name__}, got {shown(made)}"
            )
        return made

    def make(self, name: str | Callable[..., Made], *given: Any, **settings: Any) -> Made:
        """Build a part by name, or by what makes it."""
        factory, name = self.factory(name), called(name)
        accepted, required = self.settings_of(factory), self.required_of(factory)
        asked = [setting for setting in settings if setting not in self.given]
        self.check_settings(name, factory, asked, accepted, required)
        return self.call(name, factory, *given, **settings)


def part_of(kind: str, given: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """What `module:Class` says, also from modules of the working folder; anything else as it is.

    Only for what a person wrote: a name in a file must not decide which code runs.
    """
    if callable(given) or ":" not in given:
        return given
    here = str(Path.cwd())
    if here not in sys.path:
        # Last, so that a file of the working folder never hides an installed package.
        sys.path.append(here)
    try:
        found = _imported(given)
    except Exception as error:
        raise SettingError(
            f"{kind} {given!r} cannot be loaded ({type(error).__name__}: {error}); it is looked "
            "for in the working folder and among installed packages"
        ) from error
    if not callable(found):
        raise SettingError(f"{kind} {shown(given)} is {shown(found)}, which makes nothing")
    made: Callable[..., Any] = found
    return made


def _imported(place: str) -> Any:
    """What is at "module:name"."""
    module, _, attribute = place.partition(":")
    return attrgetter(attribute)(import_module(module))


def called(given: str | Callable[..., Any]) -> str:
    """What a part is called in messages."""
    return given if isinstance(given, str) else str(getattr(given, "__name__", repr(given)))


def takes_anything(factory: Callable[..., Any]) -> bool:
    """Whether a factory passes on settings it does not name."""
    parameters = inspect.signature(factory).parameters.values()
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)


def package_of(entry: EntryPoint) -> str:
    """Who offers it; the module if no package says so."""
    return entry.dist.name if entry.dist is not None else entry.value.partition(":")[0]


def _hint(name: str, names: list[str]) -> str:
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
