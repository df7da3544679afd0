"""One training loop for every neural model: budget, schedule, loop, checkpoint, progress."""
