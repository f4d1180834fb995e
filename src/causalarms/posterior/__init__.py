"""The posterior over the graphs of all regimes with a common order.

It is exact up to 20 nodes and sampled past that. A set of graphs, one per regime, with acyclic
union is weighted by the number of orders it fits (an order-modular prior: the order is drawn first,
then the parents of every mechanism among the nodes before it). That is how random systems are
usually drawn, and what makes the sum over all sets of graphs exact:
scores of parent sets -> sums over subsets -> sums over orders -> probabilities and draws.
Past 20 nodes chains walk over the orders, and the sums are over subsets of candidate parents.
"""
