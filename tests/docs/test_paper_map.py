"""docs/paper-map.md: every label of the paper is there, every file and symbol it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAP = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
TARGETS = sorted(set(re.findall(r"`((?:src|tests)/[\w/.-]+\.py(?:::[\w.]+)?)`", MAP)))
_LABELS = """
eq:constr_Ba eq:LinSEM eq:mu_a eq:def_subgraph eq:xi_decomp eq:xi_hat_decomp eq:res eq:MI_decomp
eq:phi_x eq:MI_indep_bound eq:crit_fail eq:Ba_error_cf eq:est_reward eq:del_mu_ub eq:conc_error_mu
eq:U eq:select_a eq:whiten_x eq:psi eq:mle_gauss eq:psi_s_1 eq:psi_s_2 eq:approx_psi_2 eq:Ba_fp
eq:weight_error_vec eq:chi_bound eq:chi_moment eq:LS_1 eq:LS_2 eq:TE eq:del_mu
prop:decompose prop:I_decomp prop:graph_error lem:moment_bound lem:sv_bound thm:conf_bound
alg:CSL alg:CSL-UCB tab:related fig:causal_graph fig:graph_false_neg fig:precision fig:recall
fig:hamming_dis fig:error_FN fig:cum_regret fig:opt_percent fig:cum_regret_c fig:opt_percent_c
"""
LABELS = _LABELS.split()


@pytest.mark.parametrize("label", LABELS)
def test_every_label_has_a_row(label: str) -> None:
    assert f"\n| {label} |" in MAP


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_exists(target: str) -> None:
    path, _, symbol = target.partition("::")
    assert (ROOT / path).is_file(), f"{path} does not exist"
    assert not symbol or symbol in symbols(ROOT / path), f"{path} has no {symbol}"


def test_code_is_source_and_tests_are_tests() -> None:
    assert len(TARGETS) > 50
    for target in TARGETS:
        assert target.startswith("src/") or Path(target).name.startswith("test_"), target


def test_only_a_step_of_a_proof_has_code_without_a_test() -> None:
    rows = [line.split(" | ") for line in MAP.splitlines() if line.startswith("| ")]
    untested = [row[0] for row in rows if len(row) == 5 and "`src/" in row[2] and row[3] == "-"]
    assert untested == ["| lem:moment_bound"]


@cache
def symbols(path: Path) -> set[str]:
    """Classes, functions and their members as `Class.member`."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{member.name}"
                for member in node.body
                if isinstance(member, ast.FunctionDef)
            }
    return found
