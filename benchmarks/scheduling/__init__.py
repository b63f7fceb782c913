"""Workloads, bounds and Karpenter's way of packing, for the benchmark of the scheduling simulation."""
