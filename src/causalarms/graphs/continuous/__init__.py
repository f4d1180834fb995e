"""Graphs by continuous optimisation over weight matrices: GOLEM and DAGMA (Sec. VI-A)."""
