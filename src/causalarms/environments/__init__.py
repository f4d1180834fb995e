"""The world a policy plays in; it knows the truth."""

from causalarms.environments.worlds import Change, World, switching_world

__all__ = ["Change", "World", "switching_world"]
