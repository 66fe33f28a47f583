"""Training on the workers of a cluster.

Each worker holds a shard: adjacent parts of the data, in bins, with scores, gradients and leaves. The driver, which is
the process of the command, holds the trees and searches the splits in sums of the shards' histograms.
"""
