"""Speed and memory of our training beside a straightforward implementation, measured in one run."""
