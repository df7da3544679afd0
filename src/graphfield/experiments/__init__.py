"""The paper's experiments: published numbers and recipes as TOML, and the demo."""
