"""Arrows: around foreign nodes, inside their panel, ends apart."""

from __future__ import annotations

import numpy as np

from causalarms.pictures.arrows import (
    bent,
    choose_routes,
    distance_to_boxes,
    distance_to_capsule,
    place_labels,
    spread_ends,
    visible_part,
)

HALF = np.array([0.15, 0.1])


def test_a_straight_way_stays_straight_and_a_blocked_one_is_bent() -> None:
    centres = np.array([[0.3, 0.5], [1.5, 0.5], [2.7, 0.5]])
    halves = np.tile(HALF, (3, 1))
    edges = np.array([[0, 1], [0, 2]])
    straight, around = choose_routes(centres, halves, edges, (3.0, 1.5))
    assert np.ptp(straight[:, 1]) < 0.1
    assert distance_to_boxes(around, centres[1:2], halves[1:2]).min() > 0.05
    assert around.min() > 0
    assert (around.max(axis=0) < [3.0, 1.5]).all()


def test_there_and_back_are_two_lines() -> None:
    centres = np.array([[0.3, 0.75], [2.7, 0.75]])
    there, back = choose_routes(
        centres, np.tile(HALF, (2, 1)), np.array([[0, 1], [1, 0]]), (3.0, 1.5)
    )
    middle = len(there) // 2
    assert np.hypot(*(there[middle] - back[middle])) > 0.08


def test_heads_at_one_node_do_not_cover_each_other() -> None:
    tails = np.column_stack([np.zeros(5), np.linspace(0.9, 1.1, 5)])
    centres = np.vstack([tails, [[3.0, 1.0]]])
    edges = np.array([[tail, 5] for tail in range(5)])
    curves = np.array([bent(centres[a], centres[b], 0.0) for a, b in edges])
    heads = spread_ends(curves, edges, centres, np.tile(HALF, (6, 1)))[:, 1]
    gaps = np.hypot(*(heads[:, None] - heads[None]).transpose(2, 0, 1))
    assert gaps[~np.eye(5, dtype=bool)].min() > 0.06
    assert np.allclose(distance_to_capsule(heads, centres[5], HALF), 0, atol=0.01)


def test_an_arrow_is_visible_only_between_its_nodes() -> None:
    begin, end = np.array([0.0, 0.0]), np.array([2.0, 0.0])
    line = visible_part(bent(begin, end, 0.1), begin, HALF, end, HALF)
    assert distance_to_capsule(line, begin, HALF).min() > -0.01
    assert distance_to_capsule(line, end, HALF).min() > 0


def test_labels_of_crossing_lines_do_not_overlap() -> None:
    t = np.linspace(0, 1, 100)
    lines = [np.column_stack([2 * t, t]), np.column_stack([2 * t, 1 - t])]
    nodes = np.array([[-0.2, 0.5]])
    labels = place_labels(lines, {0: "0.53", 1: "1.2"}, nodes, HALF[None])
    assert labels.overlap == 0
    assert np.hypot(*(labels.centres[0] - labels.centres[1])) > 0.1
