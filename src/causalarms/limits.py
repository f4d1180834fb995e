"""How large things may be, in one table: what is larger is searched, sampled or refused by name.

Numbers of nodes are of nodes with two regimes; with others, that power of two counts.
"""

from __future__ import annotations

# Interventions
MAX_REGIMES = 256  # of a node: a regime is one byte
MAX_LEVELS = 1024  # of all nodes, learned by additive: least squares take 0.5 s a phase
MAX_FEW = 256  # compared one by one by a search: quicker than compiling it
MAX_ENUMERATED_NODES = 24  # all_interventions, ucb, ga-lcb: 2^24 rewards take 128 MiB
MAX_SCORED_NODES = 20  # all scored by csl-ucb and by learned models with cycles: a million
MAX_OPTIMISTIC_NODES = 16  # all scored by linsem-ucb and robust-linsem: 0.5 s a round
MAX_TABLE_NODES = 15  # all compared by posterior: 20 draws of 2^15 rewards take 5 MiB, 10 ms
MAX_PATTERN_NODES = 8  # on cycles of a learned model, beyond MAX_SCORED_NODES: 2^8 searches
MAX_LISTED = 2**20  # allowed ones in a list: 20 MiB with 20 nodes
MAX_DRAWN_FROM_LIST = 2**16  # allowed ones listed for one random choice: 0.1 s
MAX_BENT_NODES = 14  # of a simulated world that is not linear: 2^14 means of 10,000 samples, 5 s
MAX_RATIOS = 2**12  # allowed ones whose information ratios are compared: 100 draws take 1 s
MAX_COMPARED = 2**14  # allowed ones that `study.best` compares in each of 400 draws: 50 MiB
MAX_AT_RISK = 2**15  # whose probability of failing is weighed: 0.1 s; of more, what mostly fails

# Failing: 20 factors may decide by threes, 60 by twos, more one by one
MAX_FAILURE_SETS = 2000  # of factors that may decide whether a trial fails: 50 ms
MAX_FAILURE_CELLS = 4096  # combinations of levels of such a set
MAX_FAILURE_SETTINGS = 4096  # the last ones tried, from which is learned what fails

# Nodes
MAX_NODES = 10_000  # of a system: weights of two regimes take 1.6 GB
MAX_NAME_LETTERS = 200  # of a node, a factor or a level

# Graphs
MAX_EXACT_NODES = 16  # posterior sums over all orders: 0.1 s a round, four times that with 18
MAX_FACTOR_BITS = 16  # other nodes and factors of unknown targets summed over per node: 0.2 s
EXACT_BYTES = 2**30  # of the tables of a GraphPosterior: enough for 20 nodes of two regimes
MAX_SMALL_NODES = 12  # whose exact tables take less memory than chains do, whatever the limit
MAX_ORDERED_NODES = 20  # whose safest order is found by dynamic programming over 2^N sets
MAX_CORE_NODES = 62  # parents in nearly all graphs: bits of a set in one integer

# Studies
MAX_HORIZON = 10**9  # rounds
MAX_PENDING_TRIALS = 1000  # of one worker: with 14 nodes, choosing as many takes minutes

# Pictures
MAX_WEIGHTED_NODES = 12  # numbers on the arrows of larger systems cannot be told apart
MAX_LARGE_NODES = 15  # names in full size; smaller type beyond
MAX_SEPARATED_EDGES = 150  # more overlap whatever is tried, and comparing all pairs takes seconds

# Input. A table is held as text, about 100 bytes a cell.
TABLE_CELLS = 20_000_000  # rows times columns, e.g. a million rounds of ten nodes with switches
TABLE_COLUMNS = 2 * MAX_NODES + 100  # values, switches, and what an exported study adds
TABLE_BYTES = 2**29  # of a CSV file
LOG_BYTES = 2**32  # of an exported study
SYSTEM_BYTES = 2**26  # of a system.json
STANDARD_INPUT_BYTES = 2**24  # of one result
MIN_VALUES_TO_LEARN = 2  # of a node with missing values: one says nothing of how it varies
