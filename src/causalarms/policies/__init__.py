"""Ask for the next intervention, tell what was measured."""

from causalarms.policies.base import Policy, Suggestion
from causalarms.policies.registry import make_policy, policy_names

__all__ = ["Policy", "Suggestion", "make_policy", "policy_names"]
