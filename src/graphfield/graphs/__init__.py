"""What comes out: edge strengths, thresholds, graphs, files. NumPy only, no model in sight."""
