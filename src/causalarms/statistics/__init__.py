"""What the data say, arrays in and arrays out: rounds, moments, regressions, dependence."""

from causalarms.statistics.dataset import Dataset, Moments
from causalarms.statistics.mutual_information import mutual_information
from causalarms.statistics.normal_equations import Regression, regress

__all__ = ["Dataset", "Moments", "Regression", "mutual_information", "regress"]
