"""Cluster: other replicas and hosts."""
