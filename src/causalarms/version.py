"""The version, in this place only: packaging, commands and results files read it here."""

__version__ = "0.2.0"
