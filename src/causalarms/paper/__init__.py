"""The reproduction of the paper: every figure and headline number of Sec. VI."""
