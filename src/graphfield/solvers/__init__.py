"""Exact and convex solvers: pure functions on arrays, no estimator in sight."""
