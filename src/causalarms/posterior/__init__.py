"""The posterior over pairs of graphs with a common order: exact up to 20 nodes, sampled past that.

A pair (G_0, G_1) with acyclic union is weighted by the number of orders it fits (an order-modular
prior: the order is drawn first, then the parents of every mechanism among the nodes before it).
That is how random systems are usually drawn, and what makes the sum over all pairs exact:
scores of parent sets -> sums over subsets -> sums over orders -> probabilities and draws.
Past 20 nodes chains walk over the orders, and the sums are over subsets of candidate parents.
"""
