"""Settings of kernels travel as NamedTuples, those of the posterior policy as one config."""

from __future__ import annotations

import ast
import inspect
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

import causalarms
from causalarms.errors import SettingError
from causalarms.policies.posterior import PosteriorPolicy
from causalarms.policies.posterior.system import PosteriorConfig
from causalarms.policies.registry import make_policy

SOURCE = Path(causalarms.__file__).parent
KERNELS = {"kernel", "inner", "inlined"}
MOST = 8
THE_SOLVER = {"_leave_out"}  # of `search`: its inner loop stays as it was measured


def test_no_kernel_takes_more_than_eight_parameters() -> None:
    for path in SOURCE.rglob("*.py"):
        for found in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(found, ast.FunctionDef):
                decorators = {ast.unparse(decorator) for decorator in found.decorator_list}
                if decorators & KERNELS and found.name not in THE_SOLVER:
                    n = len(found.args.args) + len(found.args.kwonlyargs)
                    assert n <= MOST, f"{path}: {found.name} takes {n}"


def test_the_settings_of_the_posterior_policy_are_the_fields_of_its_config() -> None:
    taken = set(inspect.signature(PosteriorPolicy).parameters)
    assert taken == {field.name for field in fields(PosteriorConfig)} | {
        "n_nodes",
        "reward",
        "regimes",
    }
    policy = PosteriorPolicy(3, draws=7)
    assert policy.config == PosteriorConfig(draws=7)
    with pytest.raises(FrozenInstanceError):
        policy.config.draws = 8  # type: ignore[misc]
    with pytest.raises(SettingError, match="did you mean 'quantile'"):
        make_policy("posterior", n_nodes=3, quantil=0.5)


def test_every_setting_of_the_posterior_policy_is_documented() -> None:
    """A string below each field; mkdocstrings shows it."""
    (config,) = (
        found
        for found in ast.parse(inspect.getsource(inspect.getmodule(PosteriorConfig))).body  # type: ignore[arg-type]
        if isinstance(found, ast.ClassDef) and found.name == "PosteriorConfig"
    )
    for statement, following in zip(config.body, config.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign):
            assert isinstance(following, ast.Expr), ast.unparse(statement)
            assert isinstance(following.value, ast.Constant), ast.unparse(statement)
